"""Where a table's files may be, and where what metadata names is looked for."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from msgspec.structs import replace as replaced

import icetree
from icetree.codec import metadata as metadata_codec
from icetree.errors import CorruptTable, InvalidInput
from icetree.rows.write.deletes import write_data_vectors
from icetree.spec.entry.entry import MANIFESTS, Entries, Status, concat, is_content, with_columns
from icetree.spec.metadata.metadata import PartitionStatisticsFile, StatisticsFile, TableMetadata
from icetree.spec.metadata.snapshot import MetadataLogEntry, Page, SnapshotPage
from icetree.spec.metadata.update import SetStatistics
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.planted import planted
from tests.table.damage import Site, make_table, open_lake, planned, rows
from tests.table.kinds import data_file as file_of
from tests.table.lake import SCHEMA, connection, data_file, new_table
from tests.table.spelling import SPELLINGS, respell

UP = "../other/x"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    opened = icetree.connect(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "lake"))
    opened.create_namespace("db")
    return opened


# --- confinement -------------------------------------------------------------------------------


def test_a_confined_table_takes_no_file_from_elsewhere_however_it_is_spelt(
    lake: Lake,
) -> None:
    table = lake.create_table("db.t", SCHEMA, properties={"write.files.confined": "true"})
    path = table.location
    for location in (
        "file:/other/x.parquet",
        "FILE:/other/x.parquet",
        "file:///other/x.parquet",
        "file://localhost/other/x.parquet",
        "s3a://elsewhere/x.parquet",
        "/other/x.parquet",
        "../other/x.parquet",
        "data/../../other/x.parquet",
        f"{path}/../other/x.parquet",
        f"{path}//../other/x.parquet",
        f"file:{path}/../other/x.parquet",
        f"{path}2/x.parquet",
    ):
        with pytest.raises(InvalidInput):
            table.append_files([replace(file_of("x"), location=location)])
    assert table.snapshot() is None


def test_a_confined_table_takes_its_own_files_however_they_are_spelt(lake: Lake) -> None:
    table = lake.create_table("db.t", SCHEMA, properties={"write.files.confined": "true"})
    path = table.location
    for number, start in enumerate(("data/", f"{path}/data/", f"file:{path}//data/./", "./")):
        table.append_files([replace(file_of("x"), location=f"{start}x{number}.parquet")])
    places = table.inspect.files()["file_path"]
    assert pc.all(pc.starts_with(places, f"{path}/")).as_py()


def test_confinement_is_on_or_off_and_nothing_else(lake: Lake) -> None:
    table = planted(lake.create_table("db.t", SCHEMA), {"write.files.confined": "yes"})
    with pytest.raises(InvalidInput, match=r"write\.files\.confined='yes'"):
        table.append_files([replace(file_of("x"), location="file:///other/x.parquet")])


# --- names in metadata ---------------------------------------------------------------------------


def _statistics(path: str) -> StatisticsFile:
    return StatisticsFile(
        snapshot_id=1,
        statistics_path=path,
        file_size_in_bytes=1,
        file_footer_size_in_bytes=1,
        blob_metadata=(),
    )


def _page(location: str) -> SnapshotPage:
    return SnapshotPage(
        location=location,
        size_in_bytes=1,
        count=1,
        first_sequence_number=1,
        last_sequence_number=1,
        first_timestamp_ms=1,
        last_timestamp_ms=1,
    )


def _with_root(metadata: TableMetadata, name: str) -> dict[str, Any]:
    return {"snapshots": tuple(replaced(each, root_manifest=name) for each in metadata.snapshots)}


@pytest.mark.parametrize("name", [UP, "metadata/../../x", "memory://w/db/t/../x", "s3://b/../x"])
def test_metadata_that_names_a_file_by_leading_up_is_refused(name: str) -> None:
    table = new_table()
    table.append_files([data_file("a")])
    good = table.metadata
    log = MetadataLogEntry(timestamp_ms=1, metadata_file=name)
    partitions = PartitionStatisticsFile(snapshot_id=1, statistics_path=name, file_size_in_bytes=1)
    changes: tuple[dict[str, Any], ...] = (
        _with_root(good, name),
        {"metadata_log": (log,)},
        {"snapshot_pages": (_page(name),)},
        {"statistics": (_statistics(name),)},
        {"partition_statistics": (partitions,)},
    )
    for change in changes:
        bad = metadata_codec.encode(replaced(good, **change))
        with pytest.raises(CorruptTable, match=r"part '\.\.'"):
            metadata_codec.decode(bad, file="m")
    page = metadata_codec.encode_page(Page(snapshots=_with_root(good, name)["snapshots"]))
    with pytest.raises(CorruptTable, match=r"part '\.\.'"):
        metadata_codec.decode_page(page, file="p", table_location=good.location)


def test_statistics_cannot_be_set_by_leading_up() -> None:
    table = new_table()
    with pytest.raises(InvalidInput, match=r"part '\.\.'"):
        table.update_metadata(SetStatistics(statistics=_statistics(UP)))


def test_a_table_is_not_made_at_a_place_that_leads_up(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"part '\.\.'"):
        lake.create_table("db.t", SCHEMA, location=f"{tmp_path}/a/../b")
    with pytest.raises(InvalidInput, match=r"part '\.\.'"):
        connection().create_table("db.t", SCHEMA, location="memory://w/../b")


def test_a_warehouse_may_be_given_by_leading_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    lake = icetree.connect(f"sqlite:///{tmp_path}/catalog.db", warehouse="../lake")
    lake.create_namespace("db")
    assert lake.create_table("db.t", SCHEMA).location == f"{tmp_path}/lake/db/t"


@pytest.mark.parametrize("spelt", ["file:{}", "file://{}", "FILE:{}"])
def test_a_warehouse_with_a_scheme_is_where_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelt: str
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    place = spelt.format(f"{tmp_path}/lake")
    lake = icetree.connect(f"sqlite:///{tmp_path}/catalog.db", warehouse=place)
    lake.create_namespace("db")
    assert lake.create_table("db.t", SCHEMA).location == f"{place}/db/t"
    assert (tmp_path / "lake/db/t/metadata").is_dir()
    assert not [*(tmp_path / "here").iterdir()]


# --- places in full ------------------------------------------------------------------------------


def _in_full(table: Table) -> Table:
    """The table with all that its metadata names spelt as plain paths, as v1-v3 may have it."""
    metadata = table.metadata
    path = table.location
    snapshots = tuple(
        replaced(each, root_manifest=f"{path}/{each.root_manifest}") for each in metadata.snapshots
    )
    log = tuple(
        replaced(each, metadata_file=f"{path}/{each.metadata_file}")
        for each in metadata.metadata_log
    )
    pages = tuple(
        replaced(each, location=f"{path}/{each.location}") for each in metadata.snapshot_pages
    )
    new = replaced(metadata, snapshots=snapshots, metadata_log=log, snapshot_pages=pages)
    table.state = replace(table.state, metadata=new)
    return table


def test_plain_paths_in_metadata_are_told_of_as_they_are(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    want = table.inspect.snapshots(), table.inspect.metadata_log_entries()
    found = _in_full(table)
    assert (found.inspect.snapshots(), found.inspect.metadata_log_entries()) == want
    legacy = replaced(
        found.metadata.snapshots[0], root_manifest=None, manifest_list="/wh/t/metadata/snap.avro"
    )
    found.state = replace(found.state, metadata=replaced(found.metadata, snapshots=(legacy,)))
    lists = found.inspect.snapshots()["manifest_list"].to_pylist()
    assert lists == ["/wh/t/metadata/snap.avro"]


def test_a_table_whose_metadata_has_plain_paths_is_read_verified_and_written(
    tmp_path: Path,
) -> None:
    table = make_table(tmp_path)
    before = table.scan().to_arrow().num_rows
    at = table.state.metadata_location
    table = _in_full(table)
    Path(at).unlink()
    table.files.store.write_new(at, metadata_codec.encode(table.metadata))
    table = open_lake(tmp_path).table("db.t")
    assert table.verify(deep=True).findings == ()
    assert table.repair().actions == ()
    table.append(rows(7000))
    assert table.scan().to_arrow().num_rows == before + 12
    assert Site(table=table).root.num_rows


def test_a_page_that_is_lost_comes_back_from_metadata_with_plain_paths() -> None:
    keep = {"write.metadata.inline-snapshots": "1", "write.metadata.previous-versions-max": "200"}
    table = new_table(properties=keep)
    for number in range(103):
        table.append_files([data_file(f"f{number}")])
    page = table.metadata.snapshot_pages[0]
    table.files.store.delete([f"{table.location}/{page.location}"])
    want = table.repair().text()
    assert f"bring back {page.count} of" in want
    log = tuple(
        replaced(each, metadata_file=f"/db/t/{each.metadata_file}")
        for each in table.metadata.metadata_log
    )
    table.state = replace(table.state, metadata=replaced(table.metadata, metadata_log=log))
    assert table.repair().text() == want


def test_a_copied_table_that_names_its_own_files_in_full_is_not_registered(
    tmp_path: Path,
) -> None:
    table = make_table(tmp_path)
    respell(table, SPELLINGS["mixed"])
    at = table.state.metadata_location
    shutil.copytree(table.location, tmp_path / "copy")
    lake = open_lake(tmp_path)
    with pytest.raises(InvalidInput, match="is named in full"):
        lake.register_table("db.copy", at.replace(table.location, str(tmp_path / "copy")))
    with pytest.raises(InvalidInput, match=r"part '\.\.'"):
        lake.register_table("db.copy", at.replace("/metadata/", "/../t/metadata/"))
    lake.register_table("db.same", f"file:{at}")
    assert lake.table("db.same").location == table.location


@pytest.mark.parametrize("column", ["location", "referenced_file"])
@pytest.mark.parametrize("where", ["root", "leaves"])
def test_one_name_in_full_wherever_it_stands_keeps_a_copied_table_from_being_registered(
    tmp_path: Path, where: str, column: str
) -> None:
    """A DV that names its file at the old place would apply to none: deleted rows would be back."""
    table = make_table(tmp_path)
    table.set_properties({"write.root.max-delete-entries": "1" if where == "leaves" else "9"})
    files = planned(table)
    vectors = write_data_vectors(
        {name: [3] for name in files["location"].to_pylist()[:4]},
        tasks=files,
        metadata=table.metadata,
        store=table.files.store,
    )
    table.row_delta(vectors)
    in_full, as_is = SPELLINGS["a URI"], lambda _, name: name
    if where == "root":
        respell(table, in_full, columns=[column], below=as_is)
    else:
        respell(table, as_is, columns=[column], below=in_full)
    at = table.state.metadata_location
    shutil.copytree(table.location, tmp_path / "copy")
    with pytest.raises(InvalidInput, match="is named in full"):
        open_lake(tmp_path).register_table(
            "db.copy", at.replace(table.location, str(tmp_path / "copy"))
        )


def test_a_name_in_full_in_a_former_snapshot_keeps_a_copied_table_from_being_registered(
    tmp_path: Path,
) -> None:
    """One could read that snapshot, or go back to it, and get rows of the table at the old place."""
    table = make_table(tmp_path)
    former = min(table.history(), key=lambda each: each.sequence_number)
    respell(table, SPELLINGS["a URI"], of=[former])
    at = table.state.metadata_location
    shutil.copytree(table.location, tmp_path / "copy")
    with pytest.raises(InvalidInput, match="is named in full"):
        open_lake(tmp_path).register_table(
            "db.copy", at.replace(table.location, str(tmp_path / "copy"))
        )


def test_what_is_lost_of_former_snapshots_keeps_no_copied_table_from_being_registered(
    tmp_path: Path,
) -> None:
    table = make_table(tmp_path)
    first = min(table.history(), key=lambda each: each.sequence_number)
    folder = tmp_path / "copy"
    shutil.copytree(table.location, folder)
    (folder / first.root_file).unlink()
    at = table.state.metadata_location.replace(table.location, str(folder))
    copy = open_lake(tmp_path).register_table("db.copy", at)
    assert copy.scan().to_arrow().num_rows == table.scan().to_arrow().num_rows


def test_a_leaf_that_is_deleted_may_be_gone_when_a_table_is_verified_or_moved(
    tmp_path: Path,
) -> None:
    table = make_table(tmp_path)
    site = Site(table=table)
    rows_before = table.scan().to_arrow().num_rows

    def with_one_gone(root: Entries) -> Entries:
        leaf = root.filter(is_content(root, *MANIFESTS))[:1]
        gone = {
            "status": pa.array([int(Status.DELETED)], pa.int32()),
            "snapshot_id": pa.array([site.snapshot.snapshot_id], pa.int64()),
            "location": pa.array(["metadata/gone.parquet"]),
        }
        return concat([root, with_columns(leaf, **gone)])

    with site.changed_root(with_one_gone):
        lake = open_lake(tmp_path)
        assert lake.table("db.t").verify(snapshots="current").findings == ()
        folder = tmp_path / "copy"
        shutil.copytree(table.location, folder)
        at = table.state.metadata_location.replace(table.location, str(folder))
        copy = lake.register_table("db.copy", at)
    assert copy.location == str(folder)
    assert copy.scan().to_arrow().num_rows == rows_before
