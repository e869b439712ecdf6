"""Which rows a snapshot inserts and deletes, told as tasks."""

from __future__ import annotations

from typing import Any

from icetree.tree.plan.row_changes import CHANGE_TASK, DELETE, INSERT
from tests.golden.drawing import History, Snapshot, tree

_TOLD = ("_change_type", "location", "dv_location", "within_dv_location")


def told(snapshot: Snapshot) -> list[tuple[Any, ...]]:
    """Tell (change, data file, the DV whose rows do not count, the DV whose rows alone do)."""
    tasks = snapshot.row_tasks().tasks
    return list(zip(*(tasks[name].to_pylist() for name in _TOLD), strict=True))


def test_rows_of_a_new_file_come_without_those_its_own_dv_takes() -> None:
    both = tree("D1 ADDED", "DV1 ADDED [3] -> D1", "D2 ADDED")
    assert told(both) == [(INSERT, "D1", "DV1", None), (INSERT, "D2", None, None)]
    assert both.row_tasks().tasks["dv_cardinality"].to_pylist() == [1, None]


def test_rows_of_a_removed_file_go_without_those_its_dv_had_taken() -> None:
    history = History()
    history.snapshot("D1 ADDED", "DV1 ADDED [3, 4] -> D1")
    gone = history.snapshot("D1 DELETED", "DV1 DELETED -> D1")
    assert told(gone) == [(DELETE, "D1", "DV1", None)]
    assert gone.row_tasks().tasks["dv_cardinality"].to_pylist() == [2]


def test_a_replaced_dv_is_told_with_its_place_and_that_of_the_one_before() -> None:
    history = History()
    history.snapshot("D1 ADDED", "DV1 ADDED [3] -> D1")
    two = history.snapshot("D1 EXISTING", "DV1 DELETED -> D1", "DV2 ADDED [3, 5] -> D1")
    [row] = two.row_tasks().tasks.to_pylist()
    place = {"dv_location": "DV1", "dv_offset": 4, "dv_size_in_bytes": 50, "dv_cardinality": 1}
    within = {"dv_location": "DV2", "dv_offset": 4, "dv_size_in_bytes": 50, "dv_cardinality": 2}
    expected = place | {f"within_{name}": value for name, value in within.items()}
    assert row | expected == row


def test_a_dv_that_went_alone_gives_its_rows_back() -> None:
    history = History()
    history.snapshot("D1 ADDED", "DV1 ADDED [3] -> D1")
    back = history.snapshot("D1 EXISTING", "DV1 DELETED -> D1")
    assert told(back) == [(INSERT, "D1", None, "DV1")]


def test_new_equality_deletes_are_asked_which_rows_of_older_files_they_take() -> None:
    history = History()
    history.snapshot("D1 ADDED")
    two = history.snapshot("D1 EXISTING", "E1 ADDED", "D2 ADDED").row_tasks()
    assert two.deletes["location"].to_pylist() == ["E1"]
    columns = ["_change_type", "location", "equality_deletes", "within_equality_deletes"]
    assert [tuple(row.values()) for row in two.tasks.select(columns).to_pylist()] == [
        (DELETE, "D1", [], [0]),
        (INSERT, "D2", [], []),
    ]


def test_tasks_have_one_schema_whether_or_not_rows_changed() -> None:
    history = History()
    some = history.snapshot("D1 ADDED").row_tasks().tasks
    none = history.snapshot("D1 EXISTING").row_tasks().tasks
    assert (some.num_rows, none.num_rows) == (1, 0)
    assert some.schema == none.schema == CHANGE_TASK
