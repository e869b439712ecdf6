"""A compaction that fails or dies at any step: rows are as they were, and no file is missed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pytest

from icetree.errors import IcetreeError, Unavailable
from icetree.store.local import TEMPORARY
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from icetree.table.maintain.compact import groups as compacting
from icetree.table.table import Table
from tests.catalog.flaky import FlakyCatalog, LoseAnswer
from tests.effort import usually
from tests.store.flaky import FlakyStore, Step
from tests.table.changing import ARROW, delete_rows, some
from tests.table.faults import IMPATIENT, NAME, Died, DyingStore, World, at_each

#: Deletes that come while the compaction runs: they are carried over, in its own commit.
LATE = [1, 6]


@cache
def world() -> World:
    made = World()
    lake = made.healthy()
    lake.create_namespace("db")
    table = lake.create_table(NAME, ARROW, properties=IMPATIENT)
    for number in range(3):
        table.append(some(*((3 * number + at, "a") for at in range(3))))
    delete_rows(table, [4])
    return made


class Run:
    """One compaction, with a delete of another between its reading and its commit."""

    def __init__(self, store: Callable[[MemoryStore], FlakyStore], *, lost: bool = False) -> None:
        self.world = world().copy()
        self.store = store(self.world.store)
        faults = {("swap", 1): LoseAnswer()} if lost else {}
        catalog = FlakyCatalog(self.world.catalog, faults=faults)
        self.error: BaseException | None = None
        inner = compacting.write_packed

        def late(*args: object, **how: object) -> object:
            made = inner(*args, **how)  # type: ignore[arg-type]
            delete_rows(self.world.table(), LATE)
            self.between = self.world.files() - self.files_before
            return made

        compacting.write_packed = late  # type: ignore[assignment]
        self.files_before, self.between = self.world.files(), set[str]()
        options = {"rewrite-all": True, "max-concurrent-file-group-rewrites": 1}
        try:
            table = Lake(catalog=catalog, store=self.store, warehouse="memory://w").table(NAME)
            table.maintenance.rewrite_data_files(options=options)
        except (IcetreeError, OSError, Died) as error:
            self.error = error
        finally:
            compacting.write_packed = inner

    def judge(self) -> bool:
        """Hold the table against what it must be; tell whether it is compacted."""
        table = self.world.table()
        ids = sorted(table.scan().to_arrow()["id"].to_pylist())
        came_late = not set(LATE) & set(ids)
        assert ids == [id for id in range(9) if id != 4 and not (came_late and id in LATE)]
        report = table.verify(deep=True)
        assert report.is_clean
        last = table.current_snapshot
        table.append(some((100, "later")))
        assert table.scan().count() == len(ids) + 1
        return last is not None and last.operation == "replace"


@cache
def steps() -> tuple[Step, ...]:
    run = Run(FlakyStore)
    assert run.error is None
    assert run.judge()
    made = [each.location for each in run.store.steps if each.operation == "write_new"]
    assert any(each.endswith(".puffin") for each in made), "deletes were carried over"
    return tuple(run.store.steps)


def _left(run: Run) -> set[str]:
    """What is stored that nobody names, but for what a dead writer left half, and the other's."""
    table = run.world.table()
    new = run.world.files() - run.files_before
    named = {f"{table.location}/{each}" for each in _named(table)}
    return {
        each
        for each in new
        if TEMPORARY not in each and each not in named and "/metadata/" not in each
    }


def _named(table: Table) -> Iterator[str]:
    for snapshot in table.history():
        tasks = table.scan(at=snapshot.snapshot_id).plan().tasks
        yield from tasks["location"].to_pylist()
        yield from tasks["dv_location"].drop_null().to_pylist()


@pytest.mark.law
def test_a_store_that_fails_at_any_step_loses_nothing_and_keeps_nothing_of_it() -> None:
    compacted = set()
    for fault in at_each(steps()):
        run = Run(lambda store, fault=fault: FlakyStore(store, [fault]))  # type: ignore[misc]
        is_new = run.judge()
        foreseen = fault.error is Unavailable
        told = Unavailable if foreseen else (IcetreeError, OSError)
        assert is_new or isinstance(run.error, told), fault
        compacted.add(is_new)
        if not is_new and foreseen:
            assert _left(run) == set(), fault
    assert False in compacted


@pytest.mark.law
@pytest.mark.parametrize("after", usually([False, True], True))
def test_a_compaction_that_dies_at_any_step_leaves_the_table_whole(after: bool) -> None:
    """After one step is before the next."""
    seen = set()
    for step in steps():
        run = Run(lambda store, at=step.number: DyingStore(store, at, after=after))  # type: ignore[misc]
        seen.add(run.judge())
        assert isinstance(run.error, Died) or step.operation == "delete"
    assert seen == {False, True}


def test_when_the_answer_is_lost_it_is_there_once() -> None:
    run = Run(FlakyStore, lost=True)
    assert run.error is None
    assert run.judge()
