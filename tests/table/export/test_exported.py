"""An exported table: stock clients that read manifests themselves see the rows that icetree sees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyiceberg.table import StaticTable

from icetree.catalog.memory import MemoryCatalog
from icetree.spec.metadata.layout import ExprField, PartitionSpec
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.metadata.update import AddExpression, AddPartitionSpec
from icetree.spec.schema.expressions import Expression
from icetree.store.local import LocalStore
from icetree.table.export.places import export_of
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import EFFORT, SEED
from tests.java import IcebergJava
from tests.laws.same import require_same as require_same_bits
from tests.peers.filters import random_filters, to_json
from tests.peers.plans import planned, require_same
from tests.peers.rows import RowsOf
from tests.peers.values import pools
from tests.table.export.story import COLUMNS, SMALL, append, played

FILTERS = 6 * EFFORT
TOLD = ("id", "n", "country")


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake(catalog=MemoryCatalog("m"), store=LocalStore(), warehouse=str(tmp_path)) as opened:
        yield opened


def require_same_rows(found: pa.Table, mine: pa.Table) -> None:
    require_same_bits(found.cast(mine.schema).sort_by("id"), mine.sort_by("id"))


def as_java_tells(found: pa.Table) -> list[tuple[str, ...]]:
    columns = [["null" if v is None else str(v) for v in found[name].to_pylist()] for name in TOLD]
    return sorted(zip(*columns, strict=True))


@pytest.mark.law
def test_iceberg_java_plans_and_reads_what_icetree_does(lake: Lake, java: IcebergJava) -> None:
    for chapter, table in enumerate(played(lake, equality=True)):
        told = table.export()
        theirs = java.table(told.metadata_location)
        if table.current_snapshot is None:
            assert java.plan(theirs) == {}
            continue
        everything = java.plan(theirs)
        assert everything == planned(table)
        assert java.rows(theirs, TOLD) == as_java_tells(table.scan().to_arrow())
        if chapter % 3:
            continue
        older = java.table(table.export(format_version=2).metadata_location)
        assert java.rows(older, TOLD) == as_java_tells(table.scan().to_arrow())
        rows = RowsOf(table)
        known = pools("evolved" if "cost" not in table.schema.column_names else "x_evolved")
        known = {name: each for name, each in known.items() if name != "extra"}
        for filter in random_filters(SEED + chapter, FILTERS, known):
            plan = java.plan(theirs, to_json(filter))
            if plan is None:
                continue
            require_same(filter, planned(table, filter), plan, rows)


def test_pyiceberg_reads_what_icetree_does(lake: Lake) -> None:
    for table in played(lake, equality=False):
        mine = table.scan().to_arrow()
        for version in (3, 2):
            told = table.export(format_version=version)
            theirs = StaticTable.from_metadata(told.metadata_location)
            require_same_rows(theirs.scan().to_arrow(), mine)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    """A table of which snapshots are exported."""
    place = str(tmp_path_factory.mktemp("exported"))
    with Lake(catalog=MemoryCatalog("m"), store=LocalStore(), warehouse=place) as opened:
        *_, table = played(opened, equality=True)
        for snapshot in _told_of(table):
            table.export(at=snapshot.snapshot_id)
        yield table


def _told_of(table: Table) -> list[Snapshot]:
    """Return the snapshots that are looked at: every third, or all of them, and what a tag names."""
    early = table.refs["early"].snapshot_id
    history = list(table.history())
    return [
        each
        for at, each in enumerate(history)
        if EFFORT > 1 or at % 3 == 0 or each.snapshot_id == early
    ]


@pytest.mark.law
def test_former_snapshots_and_tags_are_read_where_they_were_exported(
    exported: Table, java: IcebergJava
) -> None:
    theirs = java.table(exported.export().metadata_location)
    for snapshot in _told_of(exported):
        id = snapshot.snapshot_id
        assert java.plan(theirs, at=id) == planned(exported, at=id)
        mine = exported.scan(at=id, columns=list(TOLD)).to_arrow()
        assert java.rows(theirs, TOLD, at=id) == as_java_tells(mine)
    assert theirs.snapshot("early").snapshotId() == exported.refs["early"].snapshot_id


def test_what_a_snapshot_changed_is_told_by_its_manifests(
    exported: Table, java: IcebergJava
) -> None:
    theirs = java.table(exported.export().metadata_location)
    shape = exported.metadata.shape()
    for snapshot in _told_of(exported):
        mine = exported.files.changed(snapshot, shape)
        if snapshot.operation == "replace":
            continue
        wanted = sorted(
            [
                _change(word, entry, exported.location)
                for word, entries in (("added", mine.added), ("removed", mine.removed))
                for entry in entries.to_pylist()
            ]
        )
        found = java.changes(theirs, snapshot.snapshot_id)
        assert [each[:2] for each in found] == [each[:2] for each in wanted], snapshot.summary
        assert [e for e in found if e[0] != "removed"] == [e for e in wanted if e[0] != "removed"]


def _change(word: str, entry: dict[str, Any], location: str) -> list[str]:
    is_data = entry["content_type"] == 0
    number = entry["first_row_id"] if is_data else entry["dv_offset"]
    how = word if is_data else f"{word} deletes"
    return [how, f"{location}/{entry['location']}", "null" if number is None else str(number)]


def test_exported_twice_nothing_is_written_again(exported: Table) -> None:
    first, second = exported.export(), exported.export()
    assert second.written == ()
    assert second.metadata_location == first.metadata_location


def test_a_small_commit_writes_its_own_manifest_and_the_list(lake: Lake) -> None:
    lake.create_namespace("db")
    table = lake.create_table("db.t", COLUMNS, properties=SMALL)
    for start in range(0, 400, 12):
        append(table, start)
    first = table.export()
    assert sum("/part-" in each for each in first.written) > 3
    append(table, 400)
    second = table.export()
    names = [each.rpartition("/")[2] for each in second.written]
    snapshot = table.current_snapshot
    assert snapshot is not None
    name = f"snap-{export_of(snapshot)}"
    assert names[:2] == [f"{name}-0.avro", f"{name}.avro"]
    assert second.reused_manifests_count == sum("/part-" in each for each in first.written)


def test_a_delete_makes_new_twins_of_those_parts_of_leaves_alone_that_it_touches(
    lake: Lake,
) -> None:
    lake.create_namespace("db")
    properties = {**SMALL, "write.commit.compact-max-entries": "0"}
    table = lake.create_table("db.t", COLUMNS, properties=properties)
    for start in range(0, 400, 12):
        append(table, start)
    twins = [each for each in table.export().written if "/part-" in each]
    assert len(twins) > len({each.partition("/part-")[2].partition("-")[0] for each in twins})
    table.delete("id < 12")
    again = table.export()
    assert sum("/part-" in each for each in again.written) == 1
    assert again.reused_manifests_count == len(twins) - 1
    # What is gone from one part does not concern another that is made anew later.
    table.delete("id >= 48 and id < 60")
    later = table.export()
    assert sum("/part-" in each for each in later.written) == 1
    assert later.reused_manifests_count == len(twins) - 1


def test_v2_is_written_with_and_without_deletion_vectors(lake: Lake, java: IcebergJava) -> None:
    lake.create_namespace("db")
    table = lake.create_table("db.t", COLUMNS, partition_by=["country"], properties=SMALL)
    for start in range(0, 100, 12):
        append(table, start)
    table.delete("country = 'FR'")
    told = table.export(format_version=2)
    theirs = java.table(told.metadata_location)
    assert java.plan(theirs) == planned(table)
    found = StaticTable.from_metadata(told.metadata_location).scan().to_arrow()
    require_same_rows(found, table.scan().to_arrow())
    table.delete("id = 5")
    theirs = java.table(table.export(format_version=2).metadata_location)
    assert java.rows(theirs, TOLD) == as_java_tells(table.scan().to_arrow())


def test_a_table_may_be_exported_with_each_commit(lake: Lake) -> None:
    lake.create_namespace("db")
    table = lake.create_table("db.t", COLUMNS, properties={"export.on-commit": "true"})
    append(table, 0)
    with table.edit_schema() as schema:
        schema.add("note", "string")
    assert table.export().written == ()
    found = StaticTable.from_metadata(table.export().metadata_location).scan().to_arrow()
    require_same_rows(found, table.scan().to_arrow())


def test_a_commit_that_cannot_be_exported_stays_committed(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    lake.create_namespace("db")
    table = lake.create_table("db.t", COLUMNS, properties={"export.on-commit": "true"})
    both = Expression(expr_id=50, source_ids=(1, 2), transform="bucket[4]", name="both")
    spec = PartitionSpec(spec_id=0, fields=(ExprField(expr_id=50),))
    table.update_metadata(AddExpression(expression=both), AddPartitionSpec(spec=spec))
    append(table, 0)
    assert "though a commit has landed: this table cannot be shown as v3" in caplog.text
    assert table.scan().count() == 12


def test_no_client_takes_files_of_the_tree_for_orphans(lake: Lake, java: IcebergJava) -> None:
    lake.create_namespace("db")
    table = lake.create_table("db.t", COLUMNS)
    append(table, 0)
    theirs = java.table(table.export().metadata_location)
    with pytest.raises(Py4JJavaError, match="GC is disabled"):
        theirs.expireSnapshots()
    assert "gc.enabled" not in table.properties
