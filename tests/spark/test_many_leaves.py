"""Maintenance of many leaves on the executors: what comes out is what one process makes of the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from icetree.errors import CorruptTable, InvalidInput, Unavailable
from icetree.spark import local
from icetree.spark.lake import SparkLake
from icetree.spark.leaves import SETTING
from icetree.spec.entry.entry import is_live
from icetree.spec.metadata.update import UpgradeFormatVersion
from icetree.store.local import LocalStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from icetree.tree.manifest_dvs import read_manifest_dvs
from icetree.tree.reading import Leaf, leaves_in
from tests.effort import usually
from tests.table.maintain.history import stored
from tests.table.maintain.strays import far_file

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int64())])
#: Few entries to a leaf, and leaves that stay as they were made.
SMALL = {
    "write.root.max-data-entries": "2",
    "write.root.max-delete-entries": "1",
    "write.leaf.max-entries": "4",
    "write.flush.affinity-min-entries": "1",
    "write.commit.compact-max-entries": "0",
    "write.commit.compact-removed-percent": "99",
}
SOON = "2100-01-01"


def some(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "k": [id % 3 for id in ids]}, SCHEMA)


@pytest.fixture
def spread(spark: SparkSession) -> Iterator[None]:
    """One file is enough for a job."""
    spark.conf.set(SETTING, "1")
    yield
    spark.conf.unset(SETTING)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> SparkLake:
    """A table of PyIceberg's that was upgraded: leaves of Avro and of ours, all kinds of deletes."""
    with SqlCatalog("c", uri="sqlite:///:memory:", warehouse=f"file://{tmp_path}/old") as catalog:
        catalog.create_namespace("db")
        theirs = catalog.create_table("db.t", SCHEMA, properties={"format-version": "2"})
        for first in (0, 10):
            theirs.append(some(*range(first, first + 5)))
        at = theirs.metadata_location
    made = local(tmp_path, spark=spark)
    made.create_namespace("db", exist_ok=True)
    table = made.register_table("db.t", at)
    table.update_metadata(UpgradeFormatVersion(format_version=4))
    table.set_properties(SMALL)
    for number in (2, 9, 3, 8, 4, 7, 5, 6):  # leaves lie across each other
        table.append(some(*range(10 * number, 10 * number + 6)))
    table.delete("id >= 40 and id < 50")  # a file, whose entry is in a leaf
    table.delete("id in (21, 31, 51, 61, 71)")  # rows of files
    return made


def leaves(table: Table, at: str | None = None) -> list[Leaf]:
    root = table.files.root(table.snapshot(at), table.metadata.shape())
    return leaves_in(root.filter(is_live(root)))


def shape_of(table: Table, at: str) -> list[Any]:
    """Every leaf of a branch by what is in it, and what it is of: all but its name."""
    shape = table.metadata.shape()
    snapshot = table.snapshot(at)
    root, reader = table.files.root(snapshot, shape), table.files.reader(shape)
    gone = read_manifest_dvs(root, reader)
    found = leaves_in(root.filter(is_live(root)))
    content = {
        each.location: (
            each.content_type,
            each.file_format,
            reader.leaf(each).drop_columns(["status"]).to_pylist(),
            sorted(gone.get(each.location, ())),
        )
        for each in found
    }
    told = [(content[each.location], content.get(each.referenced_file or "")) for each in found]
    return sorted(told, key=repr)


def content(table: Table, at: str | None = None) -> list[dict[str, Any]]:
    columns = ["id", "k", "_row_id", "_last_updated_sequence_number"]
    found = table.scan(at=at, columns=columns).to_arrow().sort_by("id").to_pylist()
    return list(found)


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("by", usually([None, "id"], "id"))
def test_leaves_are_the_same_whoever_makes_them(lake: SparkLake, by: str | None) -> None:
    table = lake.table("db.t")
    table.create_branch("here")
    was = content(table)
    assert {each.file_format for each in leaves(table)} == {"avro", "parquet"}
    here = table.maintenance.rewrite_manifests(by=by, branch="here")
    done = lake.rewrite_manifests("db.t", by=by)
    assert done == here
    assert done.added_manifests_count > 2
    table.refresh()
    assert shape_of(table, "main") == shape_of(table, "here")
    new = {each.location for each in leaves(table) if "-r" in Path(each.location).name}
    assert any(each.referenced_file in new for each in leaves(table))
    assert content(table) == was
    again = lake.rewrite_manifests("db.t", by=by, dry_run=True)
    assert again.rewritten_manifests_count == 0
    assert [each for each in table.verify(deep=True).findings if each.severity == "error"] == []


class Full(LocalStore):
    """A disk on which one of the new leaves finds no place."""

    def write_new(self, location: str, content: bytes) -> None:
        if "-r2-" in location:
            raise Unavailable(f"{location}: the disk is full")
        super().write_new(location, content)


@pytest.mark.usefixtures("spread")
def test_what_goes_wrong_on_an_executor_leaves_nothing_and_changes_nothing(
    lake: SparkLake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Several tasks: what the others made goes too.
    monkeypatch.setattr("icetree.spark.maintain.manifests.AT_ONCE", 4)
    table = lake.table("db.t")
    files, state = stored(table), table.refresh().state
    full = SparkLake(spark, Lake(catalog=lake.catalog, store=Full(), warehouse=lake.warehouse))
    with pytest.raises(Unavailable, match="the disk is full"):
        full.rewrite_manifests("db.t")
    assert (stored(table), table.refresh().state) == (files, state)
    [*_, leaf] = (each for each in leaves(table) if each.file_format == "parquet")
    stray = Path(table.location.removeprefix("file://"), "data", "stray.parquet")
    stray.write_bytes(b"nobody's")
    Path(table.location.removeprefix("file://"), leaf.location).write_bytes(b"no Parquet")
    fresh = SparkLake(spark, Lake(catalog=lake.catalog, store=lake.store))
    with pytest.raises(CorruptTable, match=Path(leaf.location).name):
        fresh.rewrite_manifests("db.t")
    with pytest.raises(CorruptTable, match=Path(leaf.location).name):
        fresh.remove_orphan_files("db.t", older_than=SOON, force=True)
    assert stray.exists()
    assert stored(table) - files == {f"{table.location}/data/stray.parquet"}
    assert table.refresh().state == state


@pytest.mark.usefixtures("spread")
def test_orphans_are_the_same_whoever_looks_for_them(lake: SparkLake) -> None:
    table = lake.table("db.t")
    place = Path(table.location.removeprefix("file://"))
    strays = [place / "data" / "stray.parquet", place / "metadata" / "left.parquet"]
    for each in (*strays, place / "data" / "_notes" / "kept.txt"):
        each.parent.mkdir(exist_ok=True)
        each.write_bytes(b"nobody's")
    lake.rewrite_manifests("db.t")
    how: dict[str, Any] = {"older_than": SOON, "force": True}
    here = table.maintenance.remove_orphan_files(**how, dry_run=True)
    would = lake.remove_orphan_files("db.t", **how, dry_run=True)
    assert sorted(would.orphan_file_location) == sorted(here.orphan_file_location)
    assert {str(each) for each in strays} <= {
        each.removeprefix("file://") for each in would.orphan_file_location
    }
    was = content(table)
    call = "CALL system.remove_orphan_files(table => 'db.t', older_than => TIMESTAMP '2100-01-01', force => true)"
    done = [name for [name] in lake.sql(call).collect()]
    assert sorted(done) == sorted(would.orphan_file_location)
    assert not any(each.exists() for each in strays)
    assert content(lake.table("db.t")) == was
    assert lake.remove_orphan_files("db.t", **how).orphan_file_location == ()
    narrow = lake.remove_orphan_files("db.t", **how, location="data", dry_run=True)
    assert narrow.orphan_file_location == ()


@pytest.mark.long
@pytest.mark.usefixtures("spread")
def test_files_that_the_table_names_elsewhere_are_refused_or_left(lake: SparkLake) -> None:
    table = lake.table("db.t")
    Path(table.location.removeprefix("file://"), "data", "there.parquet").write_bytes(b"whose?")
    table.append_files([far_file("file:///elsewhere/x/data/there.parquet")])
    how: dict[str, Any] = {"older_than": SOON, "force": True, "dry_run": True}
    for each in (lake.remove_orphan_files, None):
        ask = each or (lambda _, **more: table.maintenance.remove_orphan_files(**more))
        with pytest.raises(InvalidInput, match=r"file:///elsewhere/x/data/there\.parquet"):
            ask("db.t", **how)
        left = ask("db.t", **how, prefix_mismatch_mode="ignore").orphan_file_location
        assert not any(name.endswith("/there.parquet") for name in left)
        gone = ask("db.t", **how, prefix_mismatch_mode="delete").orphan_file_location
        assert {*gone} == {*left, f"{table.location}/data/there.parquet"}


def test_few_files_start_no_job(lake: SparkLake, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_job(*_: object, **__: object) -> None:
        raise AssertionError("a job was started")

    monkeypatch.setattr("icetree.spark.maintain.manifests.spread", no_job)
    monkeypatch.setattr("icetree.spark.maintain.orphans.spread", no_job)
    lake.remove_orphan_files("db.t", older_than=SOON, force=True)
    assert lake.rewrite_manifests("db.t").rewritten_manifests_count > 0
    lake.spark.conf.set(SETTING, "many")
    try:
        with pytest.raises(InvalidInput, match=f"{SETTING}='many': give how many"):
            lake.rewrite_manifests("db.t")
    finally:
        lake.spark.conf.unset(SETTING)
