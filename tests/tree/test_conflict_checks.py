"""The checks behind the conflict matrix, one by one."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from icetree.errors import CorruptTable
from icetree.spec.entry.entry import Content, Entries, Entry
from icetree.spec.entry.stats import FieldStats
from icetree.tree.changes import Changes, Intent, Operation, removal
from icetree.tree.conflict.conflict import Conflict, Isolation, OtherCommit
from tests.tree.conflicts import (
    BY_DAY,
    CHANGES,
    DAY,
    FILTER,
    ID,
    NEW,
    OTHERS,
    UNPARTITIONED,
    A,
    conflicts,
    data,
    data_dv,
    entries,
    equality,
    live,
    names,
    other,
)

#: Who does not look at the rows of files.
BY_NAME = (Intent.APPEND, Intent.DELETE_FILES)


def test_a_removed_file_is_named_with_its_remover() -> None:
    (found,) = conflicts(CHANGES[Intent.DELETE_FILES], OTHERS["A removed"])
    assert found == Conflict(
        check="files still exist",
        snapshot_id=7,
        files=("A",),
        message="snapshot 7 removed A, which this change relies on: "
        "read the table again and redo the change",
    )


def test_a_dv_is_named_by_its_data_file() -> None:
    (found,) = conflicts(CHANGES[Intent.ROW_DELTA], OTHERS["DV on A"], isolation=Isolation.SNAPSHOT)
    assert found.check == "no second DV"
    assert found.message == (
        "snapshot 7 added the DV of A, and this change has a DV for the same data: "
        "merge with the new DV and commit again"
    )


def test_of_many_culprits_a_few_are_named_and_the_rest_counted() -> None:
    crowd = other(Operation.APPEND, added=tuple(data(f"X{n}", (0, 9), 1) for n in range(5)))
    (found,) = conflicts(CHANGES[Intent.DELETE_BY_FILTER], crowd)
    assert found.files == ("X0", "X1", "X2")
    assert found.message == (
        "snapshot 7 added X0, X1, X2 and 2 more, where rows may match the filter: "
        "read the table again and redo the change"
    )


def test_every_commit_in_the_way_is_reported() -> None:
    one = OTHERS["data there"]
    two = OtherCommit(snapshot_id=8, operation=one.operation, diff=one.diff)
    found = conflicts(CHANGES[Intent.DELETE_BY_FILTER], one, two)
    assert [each.snapshot_id for each in found] == [7, 8]


def test_a_change_without_a_filter_has_looked_at_everything() -> None:
    changes = Changes(intent=Intent.OVERWRITE_FILES, removed=removal(["A"]), added=entries(NEW))
    found = conflicts(changes, OTHERS["data elsewhere"])
    assert names(found) == {"no new data in the filter"}


def test_a_delete_that_carries_rows_over_loses_no_deletes() -> None:
    changes = Changes(intent=Intent.DELETE_FILES, removed=removal(["A"]), added=entries(NEW))
    assert names(conflicts(changes, OTHERS["DV on A"])) == {"no new deletes on replaced files"}


@pytest.mark.parametrize("what", ["DV on A", "equality on A", "equality on all"])
@pytest.mark.parametrize("intent", [Intent.DELETE_FILES, Intent.DELETE_BY_FILTER])
def test_rows_may_be_carried_by_another_change_of_the_transaction(
    intent: Intent, what: str
) -> None:
    changes = CHANGES[intent]
    assert conflicts(changes, OTHERS[what], isolation=Isolation.SNAPSHOT) == []
    found = conflicts(
        changes, OTHERS[what], isolation=Isolation.SNAPSHOT, beside=entries(NEW, data_dv("C", 2))
    )
    assert names(found) == {"no new deletes on replaced files"}


@pytest.mark.parametrize("what", ["DV of A removed", "DV of A shrunk"])
@pytest.mark.parametrize("intent", [each for each in Intent if each not in BY_NAME])
def test_who_removes_a_file_for_its_live_rows_minds_that_rows_came_back(
    intent: Intent, what: str
) -> None:
    changes = Changes(intent=intent, removed=removal(["A"]), filter=FILTER)
    assert names(conflicts(changes, OTHERS[what], isolation=Isolation.SNAPSHOT)) >= {"no rows back"}


def test_a_rewrite_carries_rows_into_its_own_files_whatever_is_beside_it() -> None:
    beside = entries(data("rewritten", (0, 9), 1, age=1), NEW)
    assert conflicts(CHANGES[Intent.REWRITE], OTHERS["equality on A"], beside=beside) == []


#: A compaction that puts a DV in the place of an equality delete.
BY_POSITION = other(
    Operation.REPLACE, added=(data_dv("A", 1),), removed=(equality("E", (3, 4), 1),)
)


@pytest.mark.parametrize("intent", [*Intent])
def test_deletes_that_a_change_saw_by_value_are_none_that_it_missed_by_position(
    intent: Intent,
) -> None:
    """Nor does it matter who deletes by other values meanwhile."""
    others = other(Operation.DELETE, added=(equality("F", (50, 59), 2),))
    for since in ([BY_POSITION], [others, BY_POSITION], [BY_POSITION, others]):
        found = names(conflicts(CHANGES[intent], *since, beside=entries(NEW)))
        assert "no new deletes on replaced files" not in found


@pytest.mark.parametrize("intent", [Intent.REWRITE, Intent.DELETE_FILES])
def test_deletes_by_value_that_a_change_missed_count_by_position_too(intent: Intent) -> None:
    """What a rewrite carries on stays within reach of the one, and not of the other."""
    found = conflicts(CHANGES[intent], OTHERS["equality on A"], BY_POSITION, beside=entries(NEW))
    missed = [each for each in found if each.files == ("the DV of A",)]
    assert names(missed) == {"no new deletes on replaced files"}


def test_a_rewrite_into_another_spec_escapes_from_equality_deletes_of_the_old_one() -> None:
    moved = replace(data("moved", (0, 9), 1, age=1), partition_spec_id=UNPARTITIONED)
    for added in ([moved], [moved, data("same", (0, 9), 1, age=1)]):
        changes = Changes(intent=Intent.REWRITE, removed=removal(["A"]), added=entries(*added))
        found = conflicts(changes, OTHERS["equality on A"])
        assert names(found) == {"no new deletes on replaced files"}
        assert conflicts(changes, OTHERS["equality on all"]) == []


def test_a_rewrite_into_another_spec_comes_within_reach_of_equality_deletes_there() -> None:
    def lookup(_: pa.Array) -> Entries:
        return entries(replace(A, partition_spec_id=UNPARTITIONED))

    changes = CHANGES[Intent.REWRITE]
    (found,) = conflicts(changes, OTHERS["equality on A"], lookup=lookup)
    assert found.message == (
        "snapshot 7 added E, which would delete rows where this change carries them, and did not "
        "where they are: read the table again and redo the change"
    )
    for elsewhere in ("equality on all", "equality beside A", "equality on C"):
        assert conflicts(changes, OTHERS[elsewhere], lookup=lookup) == []


def test_a_rewrite_loses_equality_deletes_by_a_column_that_was_dropped() -> None:
    for ids in ([9], [ID, 9]):
        by = replace(equality("E", (3, 4), None), equality_ids=ids)
        there = other(Operation.DELETE, added=(equality("F", (3, 4), None), by))
        (found,) = conflicts(CHANGES[Intent.REWRITE], there, lookup=None)
        assert (found.check, found.files) == ("no new deletes on replaced files", ("E",))


def test_a_rewrite_that_makes_data_young_again_loses_equality_deletes() -> None:
    changes = Changes(intent=Intent.REWRITE, removed=removal(["A"]), added=entries(NEW))
    (found,) = conflicts(changes, OTHERS["equality on A"])
    assert found.message == (
        "snapshot 7 added E, deleting rows that this change would bring back: "
        "read the table again and redo the change"
    )


def test_a_rewrite_as_young_as_an_equality_delete_loses_it_too() -> None:
    changes = Changes(
        intent=Intent.REWRITE,
        removed=removal(["A"]),
        added=entries(data("old", (0, 9), 1, age=1), data("young", (0, 9), 1, age=2)),
    )
    assert names(conflicts(changes, OTHERS["equality on A"])) == {
        "no new deletes on replaced files"
    }


def test_without_a_lookup_every_equality_delete_is_taken_to_reach_the_files() -> None:
    changes = CHANGES[Intent.OVERWRITE_FILES]
    found = conflicts(changes, OTHERS["equality on C"], lookup=None)
    assert names(found) == {"no new deletes on replaced files"}


def test_live_files_are_looked_up_once_and_only_for_equality_deletes() -> None:
    asked = []

    def lookup(locations: pa.Array) -> Entries:
        asked.append(locations.to_pylist())
        return live(locations)

    conflicts(CHANGES[Intent.OVERWRITE_FILES], OTHERS["DV on A"], lookup=lookup)
    assert asked == []
    conflicts(
        CHANGES[Intent.OVERWRITE_FILES],
        OTHERS["equality on A"],
        OTHERS["equality on C"],
        lookup=lookup,
    )
    assert asked == [["A"]]


def test_a_dv_removed_by_name_must_not_have_been_replaced() -> None:
    replaced = other(Operation.DELETE, added=(data_dv("A", 1),), removed=(data_dv("A", 1),))
    gone = removal(["A"], content=Content.POSITION_DELETES)
    changes = Changes(intent=Intent.ROW_DELTA, removed=gone, filter=FILTER)
    found = conflicts(changes, replaced, isolation=Isolation.SNAPSHOT)
    assert names(found) == {"files still exist"}


def test_a_dv_that_goes_with_its_data_file_may_have_been_replaced() -> None:
    replaced = other(Operation.DELETE, added=(data_dv("A", 1),), removed=(data_dv("A", 1),))
    gone = pa.concat_tables([removal(["A"]), removal(["A"], content=Content.POSITION_DELETES)])
    assert conflicts(Changes(intent=Intent.DELETE_FILES, removed=gone), replaced) == []


def test_an_equality_delete_removed_by_name_must_still_be_there() -> None:
    gone = removal(["E"], content=Content.EQUALITY_DELETES)
    changes = Changes(intent=Intent.REWRITE, removed=gone)
    taken = other(Operation.REPLACE, removed=(equality("E", (0, 9), 1),))
    assert names(conflicts(changes, taken)) == {"files still exist"}


def test_a_dv_for_a_file_added_in_the_same_change_relies_on_no_one() -> None:
    changes = Changes(intent=Intent.ROW_DELTA, added=entries(NEW, data_dv("new", 1)), filter=FILTER)
    assert conflicts(changes, *OTHERS.values(), isolation=Isolation.SNAPSHOT, lookup=None) == []


def test_files_that_overwrite_by_filter_lie_inside_the_filter() -> None:
    changes = Changes(
        intent=Intent.OVERWRITE_BY_FILTER,
        added=entries(NEW, data("wide", (5, 15), 1)),
        filter=FILTER,
    )
    (found,) = conflicts(changes)
    assert (found.check, found.snapshot_id) == ("added files inside the filter", None)
    assert found.message == (
        "wide may hold rows outside the overwrite filter: widen the filter or split the files"
    )


def test_a_file_that_goes_gets_no_dv() -> None:
    changes = Changes(
        intent=Intent.ROW_DELTA, removed=removal(["A"]), added=entries(data_dv("A", 1))
    )
    (found,) = conflicts(changes)
    assert found.message == (
        "this change adds the DV of A and removes that data file too: do one or the other"
    )


def unpartitioned(entry: Entry) -> Entry:
    return replace(entry, partition_spec_id=UNPARTITIONED)


def test_replacing_an_unpartitioned_table_conflicts_with_data_anywhere() -> None:
    changes = Changes(intent=Intent.REPLACE_PARTITIONS, added=entries(unpartitioned(NEW)))
    assert names(conflicts(changes, OTHERS["data elsewhere"])) == {
        "no new data in replaced partitions"
    }
    assert conflicts(changes, OTHERS["neighbour compacted"]) == []


def test_an_equality_delete_of_the_whole_table_is_in_every_replaced_partition() -> None:
    changes = Changes(intent=Intent.REPLACE_PARTITIONS, added=entries(NEW))
    found = conflicts(changes, OTHERS["equality on all"])
    assert names(found) == {"no deletes in replaced partitions"}
    assert conflicts(changes, OTHERS["equality on C"]) == []


@pytest.mark.parametrize("of", ["A", "neighbour", "C"])
def test_a_dv_is_in_the_partition_of_its_data_file_whatever_its_stats_tell(of: str) -> None:
    untold = other(Operation.DELETE, added=(replace(data_dv(of, 1), stats={}),))
    found = conflicts(CHANGES[Intent.REPLACE_PARTITIONS], untold)
    assert ("no deletes in replaced partitions" in names(found)) == (of != "C")


def test_the_null_partition_is_a_partition_like_others() -> None:
    nulls = {DAY: FieldStats(values=10, nulls=10)}
    mine = Entry(location="mine", partition_spec_id=BY_DAY, record_count=10, stats=nulls)
    theirs = Entry(location="theirs", partition_spec_id=BY_DAY, record_count=10, stats=nulls)
    changes = Changes(intent=Intent.REPLACE_PARTITIONS, added=entries(mine))
    assert names(conflicts(changes, other(Operation.APPEND, added=(theirs,))))
    assert conflicts(changes, OTHERS["data there"]) == []


def test_a_file_that_spans_partitions_is_corrupt_and_named() -> None:
    spread = {DAY: FieldStats(lower=1, upper=2, values=10, nulls=0)}
    wide = Entry(location="spread", partition_spec_id=BY_DAY, record_count=10, stats=spread)
    with pytest.raises(CorruptTable) as caught:
        conflicts(CHANGES[Intent.REPLACE_PARTITIONS], other(Operation.APPEND, added=(wide,)))
    assert str(caught.value) == (
        "spread: its stats do not tell its partition: day must have equal bounds, or be all null"
    )


def test_a_file_without_stats_of_its_partition_is_corrupt() -> None:
    bare = Entry(location="bare", partition_spec_id=BY_DAY, record_count=10)
    with pytest.raises(CorruptTable, match="bare: its stats do not tell its partition"):
        conflicts(CHANGES[Intent.REPLACE_PARTITIONS], other(Operation.APPEND, added=(bare,)))


def test_equality_deletes_of_nulls_reach_files_with_nulls_though_bounds_are_apart() -> None:
    def with_nulls(entry: Entry) -> Entry:
        lower, upper = entry.stats[ID].lower, entry.stats[ID].upper
        has = FieldStats(lower=lower, upper=upper, values=10, nulls=1)
        return replace(entry, stats={**entry.stats, ID: has})

    deletes = other(Operation.DELETE, added=(with_nulls(equality("E", (50, 59), 1)),))
    changes = CHANGES[Intent.OVERWRITE_FILES]
    assert conflicts(changes, deletes, isolation=Isolation.SNAPSHOT) == []
    found = conflicts(
        changes,
        deletes,
        isolation=Isolation.SNAPSHOT,
        lookup=lambda _: entries(with_nulls(A)),
    )
    assert names(found) == {"no new deletes on replaced files"}
