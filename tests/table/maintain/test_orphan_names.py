"""Removing orphan files: names that are not ours to judge, and those that lead elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icetree
from icetree.errors import InvalidInput
from icetree.surroundings import within
from icetree.table.table import Table
from tests.table.changing import changing_table
from tests.table.maintain.history import Clock, stored
from tests.table.maintain.strays import (
    LONG,
    far_file,
    plant,
    remove,
    tidy_table,
)


def test_what_readers_of_folders_pass_over_is_left_but_our_own_temporary_files() -> None:
    clock = Clock()
    with within(clock):
        table = changing_table(partition_by=["v"])
        with table.transaction() as tx, tx.edit_schema() as schema:
            schema.rename("v", "_v")
        kept = plant(table, "_SUCCESS", "data/_checkpoint/0", ".hidden", "_delta_log/0.json")
        gone = plant(table, "data/.icetree-half.tmp", "data/v=1/stray.parquet")
    clock.at_ms += LONG
    done = remove(table, clock)
    assert set(done.orphan_file_location) == gone
    assert kept <= stored(table)


def test_a_partition_may_have_a_name_that_starts_with_a_line() -> None:
    clock = Clock()
    with within(clock):
        schema = pa.schema([("_v", pa.string())])
        lake = icetree.connect("memory://", warehouse="memory://hidden-partition")
        lake.create_namespace("db")
        table = lake.create_table("db.t", schema, partition_by=["_v"])
        gone = plant(table, "data/_v=1/stray.parquet")
        plant(table, "data/_w=1/stray.parquet")
    clock.at_ms += LONG
    assert set(remove(table, clock).orphan_file_location) == gone


def test_a_name_that_is_no_text_is_nobodys_and_left_alone(tmp_path: Path) -> None:
    lake = icetree.connect(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "lake"))
    lake.create_namespace("db")
    table = lake.create_table("db.rows", [("id", "long")])
    table.append(pa.table({"id": [1]}))
    data = tmp_path / "lake/db/rows/data"
    odd = [data / os.fsdecode(name) for name in (b"\xff.parquet", b"\xfe/x.parquet")]
    for each in (*odd, data / "stray.parquet"):
        each.parent.mkdir(exist_ok=True)
        each.write_bytes(b"")
    done = table.maintenance.remove_orphan_files(older_than="2100-01-01", force=True)
    assert [each.rpartition("/")[2] for each in done.orphan_file_location] == ["stray.parquet"]
    assert table.scan().count() == 1
    lake.drop_table("db.rows", purge=True)
    assert all(each.exists() for each in odd)


def mismatched(clock: Clock) -> tuple[Table, str]:
    """A table that names a file below another bucket, which is there below its own too."""
    with within(clock):
        table = changing_table()
        table.append_files([far_file("memory://alias/db/rows/data/a.parquet")])
        [found] = plant(table, "data/a.parquet")
        plant(table, "data/b.parquet")
    clock.at_ms += LONG
    return table, found


def test_a_file_that_is_named_under_another_prefix_is_told_and_not_guessed() -> None:
    clock = Clock()
    table, alike = mismatched(clock)
    before = stored(table)
    with pytest.raises(InvalidInput, match=r"names memory://alias/db/rows/data/a\.parquet"):
        remove(table, clock)
    assert stored(table) == before
    assert (
        alike
        not in remove(
            table, clock, dry_run=True, equal_authorities={"alias, other": "lake"}
        ).orphan_file_location
    )
    left = remove(table, clock, prefix_mismatch_mode="IGNORE")
    assert left.orphan_file_location == (f"{table.location}/data/b.parquet",)
    assert remove(table, clock, prefix_mismatch_mode="delete").orphan_file_location == (alike,)


def test_schemes_can_be_called_equal() -> None:
    clock = Clock()
    with within(clock):
        table = changing_table()
        table.append_files([far_file("other://lake/db/rows/data/a.parquet")])
        plant(table, "data/a.parquet")
    clock.at_ms += LONG
    with pytest.raises(InvalidInput, match="may be the same file"):
        remove(table, clock)
    done = remove(table, clock, equal_schemes={"other": "memory"})
    assert done.orphan_file_location == ()


def test_a_mode_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="allowed are 'error', 'ignore', 'delete'"):
        changing_table().maintenance.remove_orphan_files(prefix_mismatch_mode="guess")


def test_the_search_can_be_narrowed_to_a_folder_of_the_table() -> None:
    clock = Clock()
    table = tidy_table(clock)
    plant(table, "data/stray.parquet", "metadata/stray.parquet")
    clock.at_ms = 2**42
    for location in ("metadata", f"{table.location}/metadata/"):
        plan = remove(table, clock, dry_run=True, location=location)
        assert plan.orphan_file_location == (f"{table.location}/metadata/stray.parquet",)
    for location in ("memory://lake/db", "memory://lake/db/rows2", "memory://else"):
        with pytest.raises(InvalidInput, match="is no folder of the table"):
            remove(table, clock, location=location)
    with pytest.raises(InvalidInput, match=r"has a part '\.\.'"):
        remove(table, clock, location="data/../../other")


def test_a_folder_behind_a_link_is_left_alone(tmp_path: Path) -> None:
    """Its files are the table's by names that lead through the link."""
    clock = Clock()
    with icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        (tmp_path / "big").mkdir()
        table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
        Path(table.location, "data").symlink_to(tmp_path / "big")
        table.append(pa.table({"id": [1]}))
        clock.at_ms = 2**42
        assert remove(table, clock).orphan_file_location == ()
        assert table.scan().to_arrow()["id"].to_pylist() == [1]


def on_disk(folder: Path, **properties: str) -> tuple[Table, Clock]:
    """An empty table on a disk, with a folder `sub` that `link`, beside the table, leads to."""
    lake = icetree.connect(f"sqlite:///{folder}/c.db", warehouse=str(folder / "lake"))
    lake.create_namespace("db")
    place = folder / "lake/db/t"
    (place / "sub").mkdir(parents=True)
    (folder / "link").symlink_to(place / "sub")
    schema = pa.schema([("id", pa.int64())])
    table = lake.create_table("db.t", schema, location=f"file://{place}", properties=properties)
    clock = Clock()
    clock.at_ms = 2**42
    return table, clock


def require_kept(table: Table, clock: Clock, **how: str) -> None:
    """See that one stray file goes, and that a table of one row keeps it."""
    where = how.get("location", table.location)
    Path(where.removeprefix("file://"), "stray.parquet").write_bytes(b"nobody's")
    done = remove(table, clock, **how)
    assert done.orphan_file_location == (f"{where}/stray.parquet",)
    assert table.scan().to_arrow()["id"].to_pylist() == [1]


def test_files_that_a_table_names_through_a_link_into_its_folder_are_needed(tmp_path: Path) -> None:
    table, clock = on_disk(tmp_path, **{"write.data.path": f"file://{tmp_path}/link"})
    table.append(pa.table({"id": [1]}))
    require_kept(table, clock)


@pytest.mark.parametrize("link", ["link/x.parquet", "lake/db/t/inner/x.parquet", "one.parquet"])
def test_files_that_were_added_through_a_link_are_needed(tmp_path: Path, link: str) -> None:
    """Through one beside the table, through one in its folder, and through a link to the file."""
    table, clock = on_disk(tmp_path)
    pq.write_table(pa.table({"id": pa.array([1], pa.int64())}), tmp_path / "link/x.parquet")
    Path(table.location.removeprefix("file://"), "inner").symlink_to("sub")
    (tmp_path / "one.parquet").symlink_to(tmp_path / "link/x.parquet")
    table.add_files(f"file://{tmp_path}/{link}")
    require_kept(table, clock)


def test_a_folder_that_a_link_in_the_table_leads_to_is_listed_by_the_name_asked_for(
    tmp_path: Path,
) -> None:
    table, clock = on_disk(tmp_path, **{"write.data.path": f"file://{tmp_path}/lake/db/t/sub"})
    inner = Path(table.location.removeprefix("file://"), "inner")
    inner.symlink_to("sub")
    table.append(pa.table({"id": [1]}))
    require_kept(table, clock, location=f"file://{inner}")
