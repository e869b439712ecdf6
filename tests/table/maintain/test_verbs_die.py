"""Every verb of maintenance, ended at every step: rows are as they were, and it can be run again."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import pytest
from typing_extensions import override

from icetree.errors import IcetreeError, Unavailable
from icetree.store.memory import MemoryStore
from icetree.surroundings import InTurn, within
from icetree.table.lake import Lake
from icetree.table.maintain.maintain import Maintenance
from icetree.table.table import Table
from tests.catalog.flaky import After, Before, Fault, FlakyCatalog, LoseAnswer
from tests.effort import EFFORT, usually
from tests.hasty import Hasty
from tests.store.flaky import Fault as StoreFault
from tests.store.flaky import FlakyStore, How
from tests.table.changing import ARROW, LEAFY, delete_equal, delete_rows, some
from tests.table.faults import IMPATIENT, NAME, Died, DyingStore, World, at_each

#: By name: each finds something to do in the world below.
VERBS: Final[dict[str, Callable[[Maintenance], object]]] = {
    "expire": lambda of: of.expire_snapshots(
        older_than="2100-01-01", retain_last=2, clean_expired_metadata=True
    ),
    "deletes": lambda of: of.rewrite_position_delete_files(rewrite_equality_deletes=True),
    "manifests": lambda of: of.rewrite_manifests(by="id"),
    "optimize": lambda of: of.optimize(),
    "table stats": lambda of: of.compute_table_stats(),
    "partition stats": lambda of: of.compute_partition_stats(),
}


class Steady(Hasty):
    """Surroundings without threads, so that the steps of a run are always the same."""

    @override
    def pool(self, workers: int, name: str) -> InTurn:
        return InTurn()


@cache
def world() -> World:
    """A table with small files, deletes in many files, leaves, and a past that nobody needs."""
    made = World()
    lake = made.healthy()
    lake.create_namespace("db")
    properties = {**IMPATIENT, **LEAFY, "history.expire.max-snapshot-age-ms": "1"}
    table = lake.create_table(NAME, ARROW, partition_by="truncate(1, v)", properties=properties)
    for number in range(5):
        table.append(some(*((3 * number + at, "ab"[number % 2]) for at in range(3))))
    delete_rows(table, [4])
    delete_equal(table, [7, 10])
    table.create_branch("aside", at=next(iter(table.history())).snapshot_id)
    return made


def _rows(table: Table) -> list[dict[str, Any]]:
    columns = ["id", "v", "_row_id", "_last_updated_sequence_number"]
    found: list[dict[str, Any]] = (
        table.scan(columns=columns).to_arrow().sort_by("_row_id").to_pylist()
    )
    return found


@cache
def rows() -> list[dict[str, Any]]:
    return _rows(world().table())


class Run:
    """A verb in a world of its own, whose store or catalog may end it."""

    def __init__(
        self,
        verb: str,
        store: Callable[[MemoryStore], FlakyStore] = FlakyStore,
        swap: Fault | None = None,
    ) -> None:
        self.verb, self.world = verb, world().copy()
        self.store = store(self.world.store)
        catalog = FlakyCatalog(
            self.world.catalog, faults={} if swap is None else {("swap", 1): swap}
        )
        before = self.world.table().state.metadata_location
        self.error: BaseException | None = None
        try:
            with within(Steady()):
                lake = Lake(catalog=catalog, store=self.store, warehouse="memory://w")
                VERBS[verb](lake.table(NAME).maintenance)
        except (IcetreeError, OSError, Died) as error:
            self.error = error
        self.is_new = self.world.table().state.metadata_location != before

    def judge(self) -> None:
        """Hold the table against what it must be, then run the verb to its end."""
        table = self.world.table()
        assert _rows(table) == rows()
        assert table.verify(deep=True).is_clean
        with within(Steady()):
            VERBS[self.verb](table.maintenance)
        assert _rows(self.world.table()) == rows()
        assert self.world.table().verify().is_clean
        table.append(some((100, "a")))
        assert table.scan().count() == len(rows()) + 1


@cache
def steps(verb: str) -> tuple[Any, ...]:
    """Return what is tried at: all steps of a verb, or usually one in the midst and the last."""
    run = Run(verb)
    assert run.error is None
    assert run.is_new, "there is something to do"
    run.judge()
    every = tuple(run.store.steps)
    return every if EFFORT > 1 else (every[len(every) // 2], every[-1])


@pytest.mark.law
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_dies_at_any_step_leaves_the_table_whole(verb: str) -> None:
    """After one step is before the next."""
    for step in steps(verb):
        run = Run(verb, lambda store, at=step.number: DyingStore(store, at, after=True))  # type: ignore[misc]
        assert isinstance(run.error, Died), step
        run.judge()


@pytest.mark.parametrize("verb", usually(VERBS, "expire", "deletes"))
def test_a_verb_that_dies_at_its_swap_leaves_the_table_whole(verb: str) -> None:
    def die() -> None:
        raise Died

    for swap in (Before(die), After(die)):
        run = Run(verb, swap=swap)
        assert isinstance(run.error, Died)
        assert run.is_new == isinstance(swap, After)
        run.judge()


@pytest.mark.law
@pytest.mark.parametrize("verb", usually(VERBS, "expire"))
def test_a_store_that_fails_a_verb_at_any_step_loses_nothing(verb: str) -> None:
    for fault in at_each(steps(verb)):
        run = Run(verb, lambda store, fault=fault: FlakyStore(store, [fault]))  # type: ignore[misc]
        told = Unavailable if fault.error is Unavailable else (IcetreeError, OSError)
        assert run.is_new or isinstance(run.error, told), fault
        run.judge()


@pytest.mark.parametrize("verb", ["expire", "table stats", "partition stats"])
def test_a_verb_that_has_landed_tells_of_no_failure(verb: str) -> None:
    """Of a verb that commits once: `Unavailable` says that nothing was changed."""
    clean = Run(verb)
    written = [step.number for step in clean.store.steps if step.operation == "write_new"]
    for at in range(written[0], len(clean.store.steps)):
        fault = StoreFault(at=at, how=How.BEFORE)
        run = Run(verb, lambda store, fault=fault: FlakyStore(store, [fault]))  # type: ignore[misc]
        assert not (run.is_new and run.error), (clean.store.steps[at], run.error)


@pytest.mark.parametrize("verb", usually(VERBS, "expire", "optimize"))
def test_a_verb_whose_answer_is_lost_is_done_once(verb: str) -> None:
    run = Run(verb, swap=LoseAnswer())
    assert run.error is None
    assert run.is_new
    run.judge()
