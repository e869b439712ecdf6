"""What changed between two snapshots: files, rows, updates, and what it comes to."""

from __future__ import annotations

from datetime import datetime, timezone
from itertools import pairwise

import pyarrow as pa
import pytest

from icetree.errors import CorruptTable, InvalidInput, NotFound
from icetree.rows.write.deletes import write_data_vectors
from icetree.spec.metadata.update import RemoveSnapshots
from icetree.table.changes.changes import ChangePlan
from icetree.table.point import time_of
from icetree.table.table import Table
from tests.table.changing import (
    LEAFY,
    changing_table,
    compact,
    data_files,
    delete_equal,
    delete_rows,
    feed,
    now,
    some,
    written,
)
from tests.table.lake import data_file
from tests.table.lake import new_table as numbers


@pytest.fixture(params=["root", "leaves"])
def table(request: pytest.FixtureRequest) -> Table:
    """Three rows in one file; with leaves, everything that is not new is in leaves."""
    found = changing_table(properties=LEAFY if request.param == "leaves" else {})
    found.append(some((1, "a"), (2, "b"), (3, "c")))
    if request.param == "leaves":
        found.append(some((10, "x")))
        found.append(some((11, "y")))
        found.append(some((12, "z")))
    return found


def test_appended_rows_are_inserts() -> None:
    table = changing_table()
    table.append(some((1, "a")))
    table.append(some((2, "b")))
    found = table.changes().to_arrow()
    assert feed(found) == [("INSERT", 1, "a"), ("INSERT", 2, "b")]
    assert found["_change_ordinal"].to_pylist() == [0, 1]
    ids = [snapshot.snapshot_id for snapshot in table.changes().snapshots]
    assert found["_commit_snapshot_id"].to_pylist() == ids


def test_rows_that_a_data_dv_removes_are_deletes(table: Table) -> None:
    since = now(table)
    delete_rows(table, [2])
    assert feed(table.changes(since).to_arrow()) == [("DELETE", 2, "b")]


def test_only_the_rows_that_a_dv_has_more_than_the_one_before_are_deletes(table: Table) -> None:
    delete_rows(table, [2])
    since = now(table)
    delete_rows(table, [3])
    assert feed(table.changes(since).to_arrow()) == [("DELETE", 3, "c")]
    [task] = table.changes(since).plan().tasks.to_pylist()
    assert (task["dv_cardinality"], task["within_dv_cardinality"]) == (1, 2)


def test_a_removed_file_deletes_the_rows_that_its_dv_had_left(table: Table) -> None:
    [file] = table.scan("id = 1").plan().tasks["location"].to_pylist()
    delete_rows(table, [2])
    since = now(table)
    table.delete_files([file])
    assert feed(table.changes(since).to_arrow()) == [("DELETE", 1, "a"), ("DELETE", 3, "c")]


def test_an_equality_delete_deletes_what_was_live_and_equal(table: Table) -> None:
    delete_rows(table, [2])
    since = now(table)
    delete_equal(table, [2, 3, 99])
    assert feed(table.changes(since).to_arrow()) == [("DELETE", 3, "c")]


def test_rows_that_an_equality_delete_removed_are_not_deleted_again(table: Table) -> None:
    [file] = table.scan("id = 1").plan().tasks["location"].to_pylist()
    delete_equal(table, [3])
    since = now(table)
    delete_equal(table, [3, 2])
    table.delete_files([file])
    assert feed(table.changes(since).to_arrow()) == [("DELETE", 2, "b"), ("DELETE", 1, "a")]


@pytest.fixture
def affiliated() -> Table:
    """Rows 1 to 3 in a file of a leaf, with row 2 in a DV of a leaf affiliated with that one."""
    found = changing_table(properties=LEAFY)
    for rows in ([(1, "a"), (2, "b"), (3, "c")], [(10, "x"), (11, "y")], [(12, "z")]):
        found.append(some(*rows))
    delete_rows(found, [2])
    delete_rows(found, [10])
    owners = found.inspect.manifests()["affiliated_with"].to_pylist()
    assert any(owners), "or else the tests below test nothing"
    return found


def test_a_dv_in_an_affiliated_leaf_counts_when_its_file_goes(affiliated: Table) -> None:
    [file] = affiliated.scan("id = 1").plan().tasks["location"].to_pylist()
    since = now(affiliated)
    affiliated.delete_files([file])
    assert feed(affiliated.changes(since).to_arrow()) == [("DELETE", 1, "a"), ("DELETE", 3, "c")]


def test_a_dv_in_an_affiliated_leaf_counts_when_an_equality_delete_comes(
    affiliated: Table,
) -> None:
    since = now(affiliated)
    delete_equal(affiliated, [2, 3])
    assert feed(affiliated.changes(since).to_arrow()) == [("DELETE", 3, "c")]


def test_rows_carried_over_by_an_overwrite_have_not_changed(table: Table) -> None:
    [file] = table.scan("id = 1").plan().tasks["location"].to_pylist()
    since = now(table)
    table.overwrite_files([file], written(table, some((1, "a"), (2, "B"), (3, "c"))))
    found = table.changes(since)
    assert feed(found.to_arrow()) == [("DELETE", 2, "b"), ("INSERT", 2, "B")]


def test_updates_are_paired_by_row_id() -> None:
    table = changing_table(identified=False)
    table.append(some((1, "a"), (2, "b")))
    rows = table.scan(columns=["id", "v", "tags", "_row_id"]).to_arrow()
    changed = rows.set_column(1, "v", pa.array(["a", "B"]))
    changed = changed.append_column(
        "_last_updated_sequence_number", pa.array([1, None], pa.int64())
    )
    since = now(table)
    table.overwrite_files(data_files(table), written(table, changed, keep_lineage=True))
    found = table.changes(since).to_arrow(images=True, columns=["id", "v", "_row_id"])
    assert feed(found) == [("UPDATE_BEFORE", 2, "b"), ("UPDATE_AFTER", 2, "B")]
    assert found["_row_id"].to_pylist() == [1, 1]


def test_updates_are_paired_by_identifier_fields_where_row_ids_differ(table: Table) -> None:
    since = now(table)
    delete_equal(table, [1, 2], add=some((2, "B"), (4, "d")))
    assert feed(table.changes(since).to_arrow(images=True)) == [
        ("DELETE", 1, "a"),
        ("INSERT", 4, "d"),
        ("UPDATE_BEFORE", 2, "b"),
        ("UPDATE_AFTER", 2, "B"),
    ]
    assert table.changes(since).plan().pair_by == (("_row_id",), ("id",))


def test_without_identifier_fields_nothing_is_paired_that_has_another_row_id() -> None:
    table = changing_table(identified=False)
    table.append(some((1, "a")))
    since = now(table)
    delete_equal(table, [1], add=some((1, "A")))
    found = table.changes(since).to_arrow(images=True)
    assert feed(found) == [("DELETE", 1, "a"), ("INSERT", 1, "A")]


def test_a_compaction_changes_files_but_no_rows(table: Table) -> None:
    since = now(table)
    compact(table)
    found = table.changes(since)
    assert found.to_arrow().num_rows == 0
    assert found.plan().tasks.num_rows == 0
    assert set(found.files()["change"].to_pylist()) == {"added", "removed"}
    assert set(found.files()["operation"].to_pylist()) == {"replace"}


def test_rows_come_back_when_their_dv_goes() -> None:
    table = changing_table()
    table.append(some((1, "a"), (2, "b")))
    delete_rows(table, [2])
    since = now(table)
    removed = pa.table(
        {
            "content_type": pa.array([1], pa.int32()),
            "key": data_files(table),
            "leaf": pa.nulls(1, pa.string()),
            "position": pa.nulls(1, pa.int64()),
            "record_count": pa.nulls(1, pa.int64()),
            "file_size_in_bytes": pa.nulls(1, pa.int64()),
        }
    )
    table.row_delta([], remove=removed)
    assert feed(table.changes(since).to_arrow()) == [("INSERT", 2, "b")]


def test_a_dv_that_gives_rows_back_behind_the_plan_is_refused() -> None:
    table = changing_table()
    table.append(some((1, "a"), (2, "b")))
    bare = table.scan().plan().tasks
    delete_rows(table, [2])
    since = now(table)
    other = write_data_vectors(
        {data_files(table)[0]: [0]}, tasks=bare, metadata=table.metadata, store=table.files.store
    )
    table.row_delta(other)
    with pytest.raises(CorruptTable, match="gives rows back"):
        table.changes(since).to_arrow()


def test_net_changes_leave_out_what_came_and_went(table: Table) -> None:
    since = now(table)
    table.append(some((20, "new"), (21, "gone")))
    delete_rows(table, [21, 1])
    delete_equal(table, [20, 2], add=some((20, "newer")))
    compact(table, keep_lineage=False)
    delete_equal(table, [3], add=some((3, "c")))
    found = table.changes(since).to_arrow(net=True)
    assert sorted(feed(found)) == [("DELETE", 1, "a"), ("DELETE", 2, "b"), ("INSERT", 20, "newer")]


def test_net_updates_go_from_the_first_image_to_the_last(table: Table) -> None:
    since = now(table)
    delete_equal(table, [1], add=some((1, "b1")))
    delete_equal(table, [1], add=some((1, "b2")))
    found = table.changes(since).to_arrow(net=True, images=True)
    assert feed(found) == [("UPDATE_BEFORE", 1, "a"), ("UPDATE_AFTER", 1, "b2")]


def test_changes_can_be_read_by_column(table: Table) -> None:
    since = now(table)
    delete_equal(table, [1], add=some((1, "A")))
    ids = table.changes(since).to_arrow(columns=["id"])
    assert ids.num_rows == 0, "the column asked for has not changed"
    values = table.changes(since).to_arrow(columns=["v"])
    assert values["v"].to_pylist() == ["a", "A"]


def test_batches_hold_what_the_table_of_changes_does(table: Table) -> None:
    delete_rows(table, [2])
    found = table.changes()
    assert pa.Table.from_batches(found.to_batches()).equals(found.to_arrow())


def test_file_changes_tell_which_dv_went_and_which_came(table: Table) -> None:
    [file] = table.scan("id = 1").plan().tasks["location"].to_pylist()
    delete_rows(table, [1])
    since = now(table)
    delete_rows(table, [2])
    found = table.changes(since).files().to_pylist()
    assert [(row["change"], row["content"], row["record_count"]) for row in found] == [
        ("removed", 1, 1),
        ("added", 1, 2),
    ]
    assert {row["referenced_data_file"] for row in found} == {f"{table.location}/{file}"}
    assert {row["operation"] for row in found} == {"delete"}


def test_net_file_changes_leave_out_files_that_came_and_went() -> None:
    table = numbers()
    table.append_files([data_file("a")])
    since = now(table)
    table.append_files([data_file("b"), data_file("c")])
    table.delete_files(["data/b.parquet", "data/a.parquet"])
    found = table.changes(since).net()
    assert list(zip(*found.select(["change", "file_path"]).to_pydict().values(), strict=True)) == [
        ("removed", f"{table.location}/data/a.parquet"),
        ("added", f"{table.location}/data/c.parquet"),
    ]


# --- which snapshots -------------------------------------------------------------------------


def test_a_range_excludes_its_start_and_includes_its_end() -> None:
    table = numbers()
    ids = []
    for name in "abcd":
        table.append_files([data_file(name)])
        ids.append(now(table))
    table.create_tag("first", at=ids[0])
    table.create_branch("third", at=ids[2])
    assert _ids(table, ids[0], ids[2]) == ids[1:3]
    assert _ids(table, "first", "third") == ids[1:3]
    assert _ids(table, ids[3]) == []
    assert _ids(table) == ids


def test_times_stand_for_the_snapshot_that_was_current_then() -> None:
    table = numbers()
    for name in "abc":
        table.append_files([data_file(name)])
    made = table.changes().snapshots
    last = made[-1]
    end = time_of(last.timestamp_ms)
    assert _ids(table, end) == []
    every = [each.snapshot_id for each in made]
    assert _ids(table, datetime(2020, 1, 1, tzinfo=timezone.utc), end) == every
    assert _ids(table, "2020-01-01", end.isoformat()) == every
    with pytest.raises(InvalidInput, match="no ancestor"):
        table.changes(last.timestamp_ms)  # a number is an id


def test_a_start_that_is_no_ancestor_of_the_end_is_refused() -> None:
    table = numbers()
    table.append_files([data_file("a")])
    table.create_branch("side")
    table.append_files([data_file("b")], branch="side")
    with pytest.raises(InvalidInput, match="no ancestor"):
        table.changes("side", "main")
    with pytest.raises(NotFound, match="since='nowhere'"):
        table.changes("nowhere")


def test_expired_ancestors_are_named_as_a_gap() -> None:
    table = numbers()
    ids = []
    for name in "abc":
        table.append_files([data_file(name)])
        ids.append(now(table))
    table.update_metadata(RemoveSnapshots(snapshot_ids=(ids[0],)))
    with pytest.raises(NotFound, match=f"gap: snapshot {ids[0]}, which snapshot {ids[1]} was"):
        table.changes()
    assert _ids(table, ids[0]) == ids[1:], "the start itself need not be there"
    assert table.changes(ids[0]).files().num_rows == 2


def test_rows_removed_from_an_expired_snapshot_cannot_be_told() -> None:
    table = changing_table()
    table.append(some((1, "a"), (2, "b")))
    first = now(table)
    delete_equal(table, [1])
    table.update_metadata(RemoveSnapshots(snapshot_ids=(first,)))
    assert table.changes(first).files().num_rows == 1
    with pytest.raises(NotFound, match="the rows that it removed cannot be told"):
        table.changes(first).to_arrow()


def test_an_empty_table_has_no_changes() -> None:
    table = changing_table()
    assert table.changes().to_arrow().num_rows == 0
    assert table.changes().files().num_rows == 0
    assert table.changes().net().num_rows == 0
    assert table.scan_appends().to_arrow().num_rows == 0


# --- appends ---------------------------------------------------------------------------------


def test_an_append_scan_reads_only_what_append_snapshots_added(table: Table) -> None:
    since = now(table)
    table.append(some((20, "new"), (21, "newer")))
    delete_equal(table, [1], add=some((1, "not by an append")))
    compact(table)
    table.append(some((22, "newest")))
    scan = table.scan_appends(since)
    assert scan.to_arrow()["id"].to_pylist() == [20, 21, 22]
    assert scan.plan().tasks.num_rows == 2
    assert table.scan_appends(since, where="id > 21").plan().tasks.num_rows == 1
    filtered = table.scan_appends(since, where="id > 20", columns=["v"]).to_arrow()
    assert filtered.to_pylist() == [{"v": "newer"}, {"v": "newest"}]


def _ids(table: Table, *range: int | str | datetime) -> list[int]:
    return [snapshot.snapshot_id for snapshot in table.changes(*range).snapshots]


def test_tasks_of_a_range_have_the_deletes_that_they_have_in_their_own_commit() -> None:
    table = changing_table()
    table.append(some(*((id, "old") for id in range(8))))
    snapshots = [now(table)]
    for id in range(3):
        delete_equal(table, [id])
        delete_rows(table, [id + 3])
        snapshots += [each.snapshot_id for each in table.changes(snapshots[-1]).snapshots]
    together = _named_deletes(table.changes(snapshots[0]).plan())
    apart = [_named_deletes(table.changes(*ends).plan()) for ends in pairwise(snapshots)]
    assert together == [task for each in apart for task in each]
    assert len({name for task in together for names in task.values() for name in names}) == 3


def _named_deletes(plan: ChangePlan) -> list[dict[str, list[str]]]:
    """Return, for each task, the delete files that it points to."""
    names = plan.deletes["location"].to_pylist()
    pointers = [name for name in plan.tasks.column_names if name.endswith("_deletes")]
    return [
        {pointer: [names[at] for at in task[pointer] or ()] for pointer in pointers}
        for task in plan.tasks.to_pylist()
    ]
