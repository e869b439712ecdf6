"""One verb for all of maintenance: it says why, does what is worth it, and then finds nothing."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from typing_extensions import override

from icetree.errors import InvalidInput
from icetree.surroundings import within
from icetree.table.rounds import rounds
from icetree.table.table import Table
from tests.hasty import Hasty
from tests.rows.lake import new_lake
from tests.table.changing import changing_table, delete_rows, some
from tests.table.maintain.history import Clock

DAY = 86_400_000
_SMALL = 20


def _lived(clock: Clock, **how: Any) -> Table:
    """A table of many small appends and some deletes."""
    table = changing_table(
        properties={"write.root.max-data-entries": "4", "write.root.max-delete-entries": "2"}, **how
    )
    with within(clock):
        for number in range(12):
            clock.tick()
            table.append(some((2 * number, "a"), (2 * number + 1, "b")))
            if number % 3 == 2:
                delete_rows(table, [2 * number])
    return table


def _rows(table: Table) -> list[dict[str, Any]]:
    columns = ["id", "v", "_row_id", "_last_updated_sequence_number"]
    found = table.scan(columns=columns).to_arrow().sort_by("_row_id").to_pylist()
    return list(found)


def test_a_table_that_lived_gets_few_files_and_leaves_and_the_same_rows() -> None:
    clock = Clock()
    table = _lived(clock)
    before = _rows(table)
    clock.at_ms += 10 * DAY
    with within(clock):
        done = table.maintenance.optimize()
        assert [each.verb for each in done.steps if each.left is None][:1] == ["rewrite_data_files"]
        assert "expire_snapshots" in [each.verb for each in done.steps]
        assert done.health.data_files == 12
        assert done.health.deleted_rows == 4
        assert _rows(table) == before
        assert table.scan().plan().tasks.num_rows == 1
        # Those that it made itself are young.
        made = [each for each in done.steps if each.verb.startswith("rewrite_")]
        assert len([*table.history()]) == len(made)
        assert table.verify(deep=True).is_clean
        # What is done is done.
        again = table.maintenance.optimize()
    assert again.steps == ()
    assert str(again) == "nothing is worth doing"


def test_a_dry_run_tells_reasons_and_changes_nothing() -> None:
    clock = Clock()
    table = _lived(clock)
    at = table.state.metadata_location
    with within(clock):
        told = table.maintenance.optimize(dry_run=True)
    assert table.refresh().state.metadata_location == at
    assert told.steps[0].reason.startswith("12 of 12 data files are small, oversized or worn")
    assert told.steps[0].cost_bytes > 0
    assert str(told).startswith("would do:\n  rewrite_data_files: 12 of 12")
    assert told.as_dict()["health"]["data_files"] == 12


def test_nothing_is_begun_that_the_budget_does_not_allow() -> None:
    clock = Clock()
    table = _lived(clock)
    before = _rows(table)
    with within(clock):
        [data, *_] = table.maintenance.optimize(max_bytes=10).steps
    assert data.left is not None
    assert "bytes are more than the 10 that are left" in data.left
    assert table.scan().plan().tasks.num_rows == 12
    assert _rows(table) == before


def test_a_compaction_stops_between_groups_once_the_budget_is_spent() -> None:
    table = changing_table(partition_by="truncate(1, v)")
    for number in range(60):
        table.append(some((number, "abcdefghij"[number % 10])))
    before = _rows(table)
    whole = table.maintenance.optimize(dry_run=True).steps[0].cost_bytes
    [data, *_] = table.maintenance.optimize(max_bytes=whole // 2).steps
    assert data.left is not None
    assert data.left.startswith("30 of 60 data files: ")
    assert data.left.endswith("that are left")
    assert table.scan().plan().tasks.num_rows == 35
    assert _rows(table) == before
    table.maintenance.optimize()
    assert table.scan().plan().tasks.num_rows == 10


def _many_small(**how: Any) -> Table:
    table = changing_table(**how)
    for number in range(_SMALL):
        table.append(some((number, "a"), (number + 1000, "b" * number)))
    return table


@pytest.mark.parametrize("part", [2, 3])
def test_a_budget_bounds_what_a_table_without_partitions_rewrites(part: int) -> None:
    table = _many_small()
    before = _rows(table)
    whole = table.maintenance.optimize(dry_run=True).steps[0].cost_bytes
    budget = whole // part
    for _ in range(_SMALL):
        files = table.scan().plan().tasks.num_rows
        steps = table.maintenance.optimize(max_bytes=budget).steps
        [data] = [each for each in steps if each.verb == "rewrite_data_files"] or [None]
        if data is None or data.result is None:
            break
        assert 2 * data.result["rewritten_bytes_count"] <= budget
        rewritten = data.result["rewritten_data_files_count"]
        added = data.result["added_data_files_count"]
        assert table.scan().plan().tasks.num_rows == files - rewritten + added
        # Who has a budget for a part is told of the rest.
        assert (data.left is None) == (rewritten == files)
        assert data.left is None or f"{files - rewritten:,} of {files:,} data files" in data.left
    assert table.scan().plan().tasks.num_rows < _SMALL
    assert _rows(table) == before
    assert table.verify(deep=True).is_clean


def test_a_group_that_the_budget_does_not_allow_is_left_and_smaller_ones_are_not() -> None:
    table = changing_table(partition_by="truncate(1, v)")
    for number in range(10):
        # Values that nothing packs.
        table.append(some((number, "a" + "".join(map(chr, range(200, 5000))))))
        table.append(some((number + 100, "b")))
    sizes = table.inspect.files().to_pylist()
    small = sum(each["file_size_in_bytes"] for each in sizes if each["file_size_in_bytes"] < 5_000)
    [data, *_] = table.maintenance.optimize(max_bytes=2 * small).steps
    assert data.result is not None
    assert data.result["rewritten_bytes_count"] == small
    assert data.left is not None
    assert data.left.startswith("10 of 20 data files")


class Slow(Hasty):
    """Surroundings in which every look at the clock takes a second."""

    @override
    def elapsed_s(self) -> float:
        self.wait(1)
        return super().elapsed_s()


def test_a_compaction_stops_between_groups_once_the_time_is_up() -> None:
    table = _many_small()
    size = max(table.scan().plan().tasks["file_size_in_bytes"].to_pylist())
    # Files of twice the size: groups are of eight small ones.
    table.set_properties({"write.target-file-size-bytes": str(2 * size)})
    before = _rows(table)
    with within(Slow()):
        [data, *_] = table.maintenance.optimize(max_seconds=4).steps
    assert data.result is not None
    assert 0 < data.result["rewritten_data_files_count"] < _SMALL
    assert data.left is not None
    assert data.left.endswith("the time is up")
    assert _rows(table) == before


def test_a_partition_is_sorted_whole_or_not_at_all_and_small_files_are_not_left_for_it() -> None:
    table = _mixed()
    for number in range(6):
        table.append(some((number, "small")))
    before = _rows(table)
    whole = table.maintenance.optimize(dry_run=True).steps[0].cost_bytes
    [sort, small, *_] = table.maintenance.optimize(max_bytes=whole - 1).steps
    assert "sort all" in sort.reason
    assert sort.result is None
    assert sort.left is not None
    assert "are more than" in sort.left
    assert small.result is not None
    assert small.result["rewritten_data_files_count"] == 6
    assert _rows(table) == before


def _mixed() -> Table:
    """Six files of full size, each over the whole range of the sort column."""
    rows = 1_000
    table = changing_table(order_by="id")
    for number in range(6):
        ids = range(number, 6 * rows, 6)
        table.append(some(*((id, str(id)) for id in ids)))
    size = table.scan().plan().tasks["file_size_in_bytes"][0].as_py()
    table.set_properties({"write.target-file-size-bytes": str(size)})
    return table


def _mixed_partitions(count: int) -> Table:
    """Partitions of four files of full size, each over the whole range of the sort column."""
    rows = 1_000
    table = changing_table(order_by="id", partition_by="v")
    for number in range(4):
        ids = range(number, 4 * rows, 4)
        table.append(some(*((id, f"p{at}") for at in range(count) for id in ids)))
    size = min(table.scan().plan().tasks["file_size_in_bytes"].to_pylist())
    table.set_properties({"write.target-file-size-bytes": str(size)})
    return table


@pytest.mark.parametrize("bound", ["bytes", "seconds"])
def test_runs_with_a_small_budget_go_on_with_the_next_partitions_until_all_are_sorted(
    bound: str,
) -> None:
    table = _mixed_partitions(5)
    before = _rows(table)
    whole = table.maintenance.optimize(dry_run=True).steps[0]
    assert whole.reason.startswith("in partitions of 20 of 20 data files")
    budget = {"bytes": {"max_bytes": whole.cost_bytes // 2}, "seconds": {"max_seconds": 5}}
    sorted_anew = []
    for _ in range(9):
        with within(Slow()):
            steps = table.maintenance.optimize(**budget[bound]).steps  # type: ignore[arg-type]
        data = [each for each in steps if each.verb == "rewrite_data_files"]
        if not data:
            break
        results = [each.result for each in data if "sort all" in each.reason and each.result]
        sorted_anew += [each["rewritten_data_files_count"] for each in results]
    else:
        raise AssertionError(f"there is no end to it: {data}")
    assert sum(sorted_anew) == 20, "each file once"
    assert len(sorted_anew) > 1
    assert _rows(table) == before
    assert table.verify(deep=True).is_clean


def test_files_of_full_size_that_lie_across_each_other_are_sorted() -> None:
    table = _mixed()
    before = _rows(table)
    done = table.maintenance.optimize()
    assert done.health.sort_column == "id"
    assert done.health.sort_overlap == pytest.approx(6)
    assert "sort all" in done.steps[0].reason
    assert _rows(table) == before
    after = table.maintenance.optimize(dry_run=True)
    assert after.health.sort_overlap is not None
    assert after.health.sort_overlap < 1.5


def test_a_table_whose_files_may_be_anothers_keeps_them() -> None:
    clock = Clock()
    table = _lived(clock)
    table.set_properties({"gc.enabled": "false"})
    clock.at_ms += 10 * DAY
    with within(clock):
        left = {each.verb: each.left for each in table.maintenance.optimize().steps}
    assert "gc.enabled is false" in str(left["expire_snapshots"])
    assert "gc.enabled is false" in str(left["remove_orphan_files"])
    assert table.verify(deep=True).is_clean


@pytest.mark.parametrize("wrong", [{"max_seconds": 0}, {"max_bytes": 0}, {"max_seconds": True}])
def test_a_budget_of_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        changing_table().maintenance.optimize(**wrong)


def test_rounds_go_over_all_tables_whatever_is_wrong_with_one() -> None:
    lake = new_lake()
    lake.create_namespace("db", exist_ok=True)
    for name in ("one", "two"):
        table = lake.create_table(f"db.{name}", pa.schema([("id", pa.int64())]))
        for number in range(6):
            table.append(pa.table({"id": [number]}))
    told = [*rounds(lake, ["db.one", "db.gone", "db.two"], every_seconds=0, max_rounds=2)]
    assert [each.table for each in told] == ["db.one", "db.gone", "db.two"] * 2
    assert [each.done is not None for each in told] == [True, False, True] * 2
    assert "db.gone" in str(told[1].error)
    assert [len(lake.table(f"db.{name}").scan().plan().tasks) for name in ("one", "two")] == [1, 1]
