"""A commit that lost a race waits, and then goes on from what is there by then."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext

import pytest

from icetree.catalog.base import TableName
from icetree.catalog.memory import MemoryCatalog
from icetree.errors import CommitConflict
from icetree.store.memory import MemoryStore
from icetree.surroundings import Machine, within
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.table.lake import connection, data_file, new_table


class Busy(Machine):
    """Surroundings in which somebody is always faster while one waits."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self._meanwhile = meanwhile
        self.waits = 0

    def wait(self, seconds: float) -> None:
        assert seconds >= 0
        self.waits += 1
        self._meanwhile()


class NoTurns(MemoryCatalog):
    """A catalog that cannot give turns."""

    def turn(self, *_: object, **__: object) -> AbstractContextManager[bool]:
        return nullcontext(False)


def test_a_commit_takes_up_the_head_that_is_there_after_its_wait() -> None:
    lake = Lake(catalog=NoTurns("m"), store=MemoryStore(), warehouse="memory://w")
    lake.create_namespace("db")
    slow = new_table(lake)
    others = iter(range(1_000))

    def commit_another() -> None:
        lake.table("db.t").append_files([data_file(f"other{next(others)}")])

    commit_another()
    busy = Busy(commit_another)
    with within(busy):
        done = slow.append_files([data_file("slow")])
    # Once: the wait after the first try. On the head that won the first race every try is too late.
    assert busy.waits == 1
    assert done.report.attempts == 2
    assert lake.table("db.t").snapshot().sequence_number == 3


def test_a_commit_that_sees_others_wait_waits_before_its_first_try() -> None:
    lake = connection()
    slow = new_table(lake)
    with ExitStack() as another:

        def commit_another() -> None:
            another.close()
            lake.table("db.t").append_files([data_file("other")])

        assert another.enter_context(lake.catalog.turn(_name(slow), wait_s=1))
        with within(Busy(commit_another)):
            done = slow.append_files([data_file("slow")])
    assert done.report.attempts == 1
    assert lake.table("db.t").snapshot().sequence_number == 2


class LongLine(MemoryCatalog):
    """A catalog that gives a turn only when it was asked often; others get on meanwhile."""

    def __init__(self, name: str, *, asks: int, meanwhile: Callable[[], object]) -> None:
        super().__init__(name)
        self.asks = asks
        self._meanwhile = meanwhile

    def turn_taken(self, _: TableName) -> bool:
        return self.asks > 0

    def turn(self, *_: object, **__: object) -> AbstractContextManager[bool]:
        self.asks -= 1
        if self.asks >= 0:
            self._meanwhile()
        return nullcontext(self.asks < 0)


def test_who_stands_in_a_line_that_gets_on_does_not_leave_it_to_race() -> None:
    others: list[str] = []

    def commit_another() -> None:
        catalog.asks, asks = 0, catalog.asks
        others.append(f"other{len(others)}")
        lake.table("db.t").append_files([data_file(others[-1])])
        catalog.asks = asks

    catalog = LongLine("m", asks=0, meanwhile=commit_another)
    lake = Lake(catalog=catalog, store=MemoryStore(), warehouse="memory://w")
    lake.create_namespace("db")
    slow = new_table(lake)
    catalog.asks = 5
    assert slow.append_files([data_file("slow")]).report.attempts == 1
    assert len(others) == 5


def test_who_stands_in_a_line_that_does_not_get_on_races() -> None:
    catalog = LongLine("m", asks=0, meanwhile=lambda: None)
    lake = Lake(catalog=catalog, store=MemoryStore(), warehouse="memory://w")
    lake.create_namespace("db")
    slow = new_table(lake)
    catalog.asks = 5
    slow.append_files([data_file("slow")])
    assert catalog.asks == 4


def test_an_update_that_another_made_first_while_it_waited_is_a_conflict() -> None:
    lake = connection()
    slow = new_table(lake)

    def partition(table: Table, by: str) -> None:
        with table.edit_spec() as spec:
            spec.add(by)

    with ExitStack() as another:

        def commit_another() -> None:
            another.close()
            partition(lake.table("db.t"), "bucket(4, n)")

        assert another.enter_context(lake.catalog.turn(_name(slow), wait_s=1))
        with within(Busy(commit_another)), pytest.raises(CommitConflict):
            partition(slow, "bucket(8, n)")
    assert [*lake.table("db.t").spec] == ["bucket(4, n)"]


def test_a_commit_that_lost_has_the_turn_until_it_is_done() -> None:
    lake = connection()
    slow = new_table(lake)
    lake.table("db.t").append_files([data_file("other")])
    seen = []
    swap = lake.catalog.swap

    def watched(table: TableName, *, expected: str, to: str) -> object:
        seen.append(lake.catalog.turn_taken(table))
        return swap(table, expected=expected, to=to)

    lake.catalog.swap = watched  # type: ignore[method-assign, assignment]
    slow.append_files([data_file("slow")])
    assert seen == [False, True]
    assert not lake.catalog.turn_taken(_name(slow))


def _name(table: Table) -> TableName:
    return table.state.name
