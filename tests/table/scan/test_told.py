"""What metadata tells of rows is worked out once, in parts, of the stats that are asked for alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import date, datetime

import pyarrow as pa
import pytest

from icetree.spec.entry.stats import column, parse_column
from icetree.table.scan.told import End, told
from icetree.table.table import Table
from icetree.tree.plan.plan import LeafCall, LeafRead
from icetree.tree.reading import Leaf
from tests.rows.lake import new_table

SMALL = {"write.root.max-data-entries": "1", "write.leaf.max-entries": "4"}


class Read:
    """Reads leaves one after the other, and notes what of them."""

    def __init__(self) -> None:
        self.plans: list[Collection[str] | None] = []
        self.leaves = 0

    def __call__(
        self, call: Callable[[Leaf], LeafRead], leaves: Iterable[Leaf]
    ) -> Iterator[LeafRead]:
        if isinstance(call, LeafCall):
            self.plans.append(call.columns)
        for leaf in leaves:
            self.leaves += 1
            yield call(leaf)


@pytest.fixture
def table() -> Table:
    """A table of sixteen files in four leaves or more, a value of `p` in each."""
    made = new_table(
        [("p", "long"), ("a", "long"), ("b", "string"), ("x", "double")],
        partition_by=["p"],
        properties=SMALL,
    )
    for start in (0, 8):
        ids = list(range(start, start + 8))
        made.append(
            pa.table(
                {
                    "p": ids,
                    "a": ids,
                    "b": [f"b{id:02}" for id in ids],
                    "x": [float(id) for id in ids],
                }
            )
        )
    return made


def ends(table: Table, *names: str) -> list[End]:
    ids = [table.schema.find_field(name).field_id for name in names]
    return [End(what=what, field_id=id) for id in ids for what in ("min", "max")]


def test_however_much_is_asked_is_planned_once_with_the_stats_of_that_alone(table: Table) -> None:
    asked, read = ends(table, "a", "b"), Read()
    known = told(table.scan(), asked, run=read)
    assert known is not None
    assert known.rows == 16
    assert [known.ends[end].as_py() for end in asked] == [0, 15, "b00", "b15"]
    [columns] = read.plans
    assert read.leaves >= 4
    stats = {name for name in columns or () if parse_column(name)}
    wanted = {"values", "nulls", "tight", "lower", "upper"}
    assert stats == {column(end.field_id, stat) for end in asked for stat in wanted}


def test_the_first_leaf_that_does_not_tell_is_the_last_that_is_read(table: Table) -> None:
    table.append(pa.table({"p": [3, 3], "a": [-1, -2], "b": ["", ""], "x": [0.0, 0.0]}))
    every, some = Read(), Read()
    assert told(table.scan("a > -3"), run=every) is not None
    assert told(table.scan("a > -2"), run=some) is None
    assert some.leaves < every.leaves


def test_a_day_that_became_a_time_out_of_reach_is_not_told() -> None:
    table = new_table([("d", "date")])
    table.append(pa.table({"d": pa.array([date(2026, 1, 1)])}))
    with table.edit_schema() as edit:
        edit.widen("d", "timestamp")
    [least, most] = ends(table, "d")
    known = told(table.scan(), [least, most])
    assert known is not None
    assert (
        known.ends[least].as_py()
        == known.ends[most].as_py()
        == datetime.fromisoformat("2026-01-01")
    )
    far = new_table([("d", "date")])
    far.append(pa.table({"d": pa.array([200_000_000], pa.int32()).cast(pa.date32())}))
    with far.edit_schema() as edit:
        edit.widen("d", "timestamp")
    assert told(far.scan(), ends(far, "d")) is None
    assert told(far.scan()) is not None


def test_rows_that_a_filter_leaves_whole_are_told_of_and_no_others(table: Table) -> None:
    [least, most] = ends(table, "a")
    known = told(table.scan("p >= 4 and a < 9"), [least, most])
    assert known is not None
    assert (known.rows, known.ends[least].as_py(), known.ends[most].as_py()) == (5, 4, 8)
    none = told(table.scan("p > 100"), [least])
    assert none is not None
    assert (none.rows, none.ends[least].as_py()) == (0, None)
    table.append(pa.table({"p": [4, 4], "a": [None, 70], "b": ["", ""], "x": [0.0, 0.0]}))
    assert told(table.scan("p = 4"), [least, most]) is not None
    assert told(table.scan("p = 4 and a > 1")) is None
