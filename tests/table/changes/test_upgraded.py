"""Changes and inspection of snapshots that PyIceberg made, before and after an upgrade."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table as PyIcebergTable

from icetree.catalog.memory import MemoryCatalog
from icetree.spec.metadata.update import UpgradeFormatVersion
from icetree.store.local import LocalStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.table.changing import feed, now

_SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("v", pa.string())])


def _rows(*rows: tuple[int, str]) -> pa.Table:
    return pa.Table.from_pylist([{"id": id, "v": v} for id, v in rows], _SCHEMA)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> PyIcebergTable:
    """A v2 table with an append, an append, a copy-on-write delete and an overwrite."""
    folder: Path = tmp_path_factory.mktemp("lake")
    catalog = SqlCatalog("c", uri="sqlite:///:memory:", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", _SCHEMA, properties={"format-version": "2"})
    table.append(_rows((1, "a"), (2, "b")))
    table.append(_rows((3, "c")))
    table.delete("id = 2")
    table.overwrite(_rows((3, "C")), "id = 3")
    return table


@pytest.fixture
def ours(theirs: PyIcebergTable) -> Table:
    lake = Lake(catalog=MemoryCatalog("m"), store=LocalStore())
    lake.create_namespace("db")
    return lake.register_table("db.t", theirs.metadata_location)


def test_rows_of_v2_snapshots_change_as_their_writer_changed_them(ours: Table) -> None:
    assert feed(ours.changes().to_arrow()) == [
        ("INSERT", 1, "a"),
        ("INSERT", 2, "b"),
        ("INSERT", 3, "c"),
        ("DELETE", 2, "b"),
        ("DELETE", 3, "c"),
        ("INSERT", 3, "C"),
    ]
    assert ours.scan_appends().to_arrow()["id"].to_pylist() == [1, 2, 3, 3]


def test_files_of_v2_snapshots_replay_to_what_their_writer_has(
    ours: Table, theirs: PyIcebergTable
) -> None:
    state: set[str] = set()
    snapshots = ours.changes().snapshots
    files = ours.changes().files().to_pylist()
    for ordinal, snapshot in enumerate(snapshots):
        for row in files:
            if row["change_ordinal"] == ordinal:
                (state.add if row["change"] == "added" else state.remove)(row["file_path"])
        wanted = theirs.inspect.files(snapshot_id=snapshot.snapshot_id)["file_path"].to_pylist()
        assert sorted(state) == sorted(wanted)


def test_changes_go_on_across_an_upgrade(ours: Table) -> None:
    before = now(ours)
    ours.update_metadata(UpgradeFormatVersion(format_version=4))
    ours.append(_rows((4, "d")))
    [file] = ours.scan("id = 1").plan().tasks["location"].to_pylist()
    ours.delete_files([file])
    assert feed(ours.changes(before).to_arrow()) == [("INSERT", 4, "d"), ("DELETE", 1, "a")]
    whole = ours.changes().to_arrow(net=True)
    assert sorted(feed(whole)) == [("INSERT", 3, "C"), ("INSERT", 4, "d")]
    tree = ours.inspect.tree().to_pylist()
    assert [row["live_entries"] for row in tree if row["manifest_dv_cardinality"]] == [0]


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("snapshots", set()),
        ("history", set()),
        ("refs", set()),
        ("metadata_log_entries", set()),
        # Bounds stand, typed, in readable_metrics alone.
        ("files", {"lower_bounds", "upper_bounds"}),
        ("data_files", {"lower_bounds", "upper_bounds"}),
        ("delete_files", {"lower_bounds", "upper_bounds"}),
        ("entries", set()),
        ("manifests", set()),
        ("partitions", set()),
        ("all_files", {"lower_bounds", "upper_bounds"}),
        ("all_manifests", set()),
    ],
)
def test_inspection_has_the_columns_and_as_many_rows_as_theirs(
    ours: Table, theirs: PyIcebergTable, name: str, left_out: set[str]
) -> None:
    mine, other = getattr(ours.inspect, name)(), getattr(theirs.inspect, name)()
    assert set(other.column_names) - set(mine.column_names) == left_out
    if name != "all_files":  # theirs names a file once for each manifest it is in
        assert mine.num_rows == other.num_rows
    mine.validate(full=True)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("snapshots", ["committed_at", "snapshot_id", "parent_id", "operation"]),
        ("history", ["made_current_at", "snapshot_id", "parent_id", "is_current_ancestor"]),
        ("files", ["content", "file_path", "record_count", "file_size_in_bytes"]),
        ("manifests", ["path", "length", "added_snapshot_id", "deleted_data_files_count"]),
        ("metadata_log_entries", ["timestamp", "latest_snapshot_id", "latest_sequence_number"]),
    ],
)
def test_inspection_tells_what_theirs_does(
    ours: Table, theirs: PyIcebergTable, name: str, columns: list[str]
) -> None:
    mine, other = getattr(ours.inspect, name)(), getattr(theirs.inspect, name)()
    assert _sorted(mine, columns) == _sorted(other, columns)


def test_readable_metrics_are_theirs(ours: Table, theirs: PyIcebergTable) -> None:
    mine, other = ours.inspect.files(), theirs.inspect.files()
    facts = ("value_count", "null_value_count", "lower_bound", "upper_bound")

    def told(table: pa.Table) -> dict[str, list[object]]:
        return {
            row["file_path"]: [
                row["readable_metrics"][name][fact] for name in ("id", "v") for fact in facts
            ]
            for row in table.to_pylist()
        }

    assert told(mine) == told(other)


def _sorted(table: pa.Table, columns: list[str]) -> list[str]:
    return sorted(map(repr, table.select(columns).to_pylist()))
