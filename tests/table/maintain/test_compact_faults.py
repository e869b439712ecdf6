"""A compaction that fails or dies at any step: rows are as they were, and no file is missed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pytest

from icetree.catalog.memory import MemoryCatalog
from icetree.errors import IcetreeError, Unavailable
from icetree.store.local import TEMPORARY
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from icetree.table.maintain import compact as compacting
from icetree.table.table import Table
from tests.catalog.flaky import FlakyCatalog, LoseAnswer
from tests.store.flaky import Fault, FlakyStore, How, Step
from tests.table.changing import ARROW, delete_rows, some

NAME = "db.t"
#: Deletes that come while the compaction runs: they are carried over, in its own commit.
LATE = [1, 6]


class Died(BaseException):
    """The end of a process: nothing after it is carried out, and nobody catches it."""


class World:
    """A store and a catalog that can be copied, so that each run starts from the same table."""

    def __init__(self) -> None:
        self.store, self.catalog = MemoryStore(), MemoryCatalog("m")

    def copy(self) -> World:
        other = World()
        other.store._files.update(self.store._files)
        other.catalog._namespaces.update(self.catalog._namespaces)
        other.catalog._tables.update(self.catalog._tables)
        return other

    def table(self) -> Table:
        """Return the table as somebody sees it who comes fresh."""
        return Lake(catalog=self.catalog, store=self.store, warehouse="memory://w").table(NAME)

    def files(self) -> set[str]:
        return set(self.store._files)


@cache
def world() -> World:
    made = World()
    lake = Lake(catalog=made.catalog, store=made.store, warehouse="memory://w")
    lake.create_namespace("db")
    how = {"commit.status-check.num-retries": "2", "commit.status-check.max-wait-ms": "0"}
    table = lake.create_table(NAME, ARROW, properties=how)
    for number in range(3):
        table.append(some(*((3 * number + at, "a") for at in range(3))))
    delete_rows(table, [4])
    return made


class Dying(FlakyStore):
    """A store of a process that dies at a step: that one is carried out or not, none after it."""

    def __init__(self, store: MemoryStore, at: int, *, after: bool) -> None:
        super().__init__(store)
        self.at, self.after = at, after

    def _pass(self, request: object, effect: Callable[[], object]) -> object:  # type: ignore[override]
        number = len(self.steps)
        self._count(request)  # type: ignore[arg-type]
        if number > self.at or (number == self.at and not self.after):
            raise Died
        done = effect()
        if number == self.at:
            raise Died
        return done


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


@pytest.mark.parametrize("how", [How.BEFORE, How.AFTER, How.PARTIAL])
def test_a_store_that_fails_at_any_step_loses_nothing_and_keeps_nothing_of_it(how: How) -> None:
    compacted = set()
    for step in steps():
        if how is How.PARTIAL and step.operation != "write_new":
            continue
        fault = Fault(at=step.number, how=how)
        run = Run(lambda store, fault=fault: FlakyStore(store, [fault]))  # type: ignore[misc]
        is_new = run.judge()
        assert is_new or isinstance(run.error, Unavailable), step
        compacted.add(is_new)
        if not is_new:
            assert _left(run) == set(), step
    assert False in compacted


@pytest.mark.parametrize("after", [False, True])
def test_a_compaction_that_dies_at_any_step_leaves_the_table_whole(after: bool) -> None:
    seen = set()
    for step in steps():
        run = Run(lambda store, at=step.number: Dying(store, at, after=after))  # type: ignore[misc]
        seen.add(run.judge())
        assert isinstance(run.error, Died) or step.operation == "delete"
    assert seen == {False, True}


def test_when_the_answer_is_lost_it_is_there_once() -> None:
    run = Run(FlakyStore, lost=True)
    assert run.error is None
    assert run.judge()
