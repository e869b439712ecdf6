"""A store or catalog that fails at any step of a commit: the table is old or new, never between.

The steps of each kind of commit are counted in a run without faults; then the commit is run again
for each step and a way to fail there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

import pyarrow as pa
import pytest

from icetree.errors import CommitConflict, CommitUnknown, IcetreeError, Unavailable
from icetree.store.local import TEMPORARY
from icetree.surroundings import within
from icetree.table.lake import Lake
from tests.catalog.flaky import (
    After,
    Before,
    Fault,
    FlakyCatalog,
    LoseAnswer,
    LoseRequest,
    Refuse,
)
from tests.hasty import Hasty
from tests.store.flaky import Fault as StoreFault
from tests.store.flaky import FlakyStore, How, Step
from tests.table.faults import IMPATIENT, NAME, SWAP, World, at_each
from tests.table.kinds import KINDS, Kind, data_file, reached, view
from tests.table.lake import SCHEMA


class Run:
    """One commit of a kind in a world with faults."""

    def __init__(
        self,
        kind: Kind,
        world: World,
        store_faults: Sequence[StoreFault] = (),
        catalog_faults: Mapping[tuple[str, int], Fault] | None = None,
    ) -> None:
        self.world = world
        self.store = FlakyStore(world.store, store_faults)
        self.catalog = FlakyCatalog(world.catalog, faults=catalog_faults or {})
        table = Lake(catalog=self.catalog, store=self.store, warehouse="memory://w").table(NAME)
        #: What came before the commit itself.
        self.opening = len(self.store.steps)
        if kind.meanwhile:
            kind.meanwhile(world.table())
        self.files_before = world.files()
        self.error: Exception | None = None
        try:
            kind.commit(table)
        except (IcetreeError, OSError) as error:
            self.error = error

    @property
    def steps(self) -> list[Step]:
        return self.store.steps[self.opening :]


@cache
def world_of(name: str) -> World:
    world, kind = World(), KINDS[name]
    lake = world.healthy()
    lake.create_namespace("db")
    table = lake.create_table(NAME, SCHEMA, properties={**kind.properties, **IMPATIENT})
    kind.before(table)
    return world


@cache
def dry_run(name: str) -> Run:
    run = Run(KINDS[name], world_of(name).copy())
    assert run.error is None
    return run


@cache
def old_and_new(name: str) -> tuple[dict[str, object], dict[str, object]]:
    """Return the table without the commit, and with it."""
    world, kind = world_of(name).copy(), KINDS[name]
    if kind.meanwhile:
        kind.meanwhile(world.table())
    return view(world.table()), view(dry_run(name).world.table())


def judge(name: str, run: Run) -> bool:
    """Check that the table is sound and that the caller was told the truth; tell if it is new."""
    fresh = run.world.table()
    now, (old, new) = view(fresh), old_and_new(name)
    assert now in (old, new)
    is_new = now == new
    if run.error is None:
        assert is_new
    elif not isinstance(run.error, CommitUnknown):
        assert not is_new, f"committed, but the caller was told {run.error!r}"
    assert reached(fresh) <= run.world.files()
    fresh.append_files([data_file("later")])
    assert "data/later.parquet" in view(run.world.table())["files"]  # type: ignore[operator]
    return is_new


def assert_tidy(run: Run) -> None:
    """A commit that failed for certain leaves nothing behind but what a dead writer left half."""
    left = run.world.files() - run.files_before
    assert {each for each in left if TEMPORARY not in each} == set()


@pytest.mark.law
@pytest.mark.parametrize("name", KINDS)
def test_a_store_that_fails_at_any_step_leaves_the_table_old_or_new(name: str) -> None:
    dry = dry_run(name)
    assert sum(step.operation == "write_new" for step in dry.steps) >= 1
    failed = set()
    for fault in at_each(dry.steps):
        run = Run(KINDS[name], world_of(name).copy(), [fault])
        if run.error is not None:
            failed.add(fault.at)
        if isinstance(run.error, IcetreeError):
            assert isinstance(run.error, Unavailable)
            assert_tidy(run)
        judge(name, run)
    assert failed >= {step.number for step in dry.steps if step.operation == "write_new"}


@pytest.mark.law
@pytest.mark.parametrize("name", KINDS)
def test_a_store_that_fails_for_good_at_any_step_leaves_the_table_old_or_new(name: str) -> None:
    dry = dry_run(name)
    last = dry.steps[-1].number + 20
    for step in dry.steps:
        faults = [StoreFault(at=at, how=How.BEFORE) for at in range(step.number, last)]
        judge(name, Run(KINDS[name], world_of(name).copy(), faults))


ONE_SWAP: Mapping[str, Fault] = {
    "busy": Refuse(Unavailable("busy")),
    "answer lost": LoseAnswer(),
    "request lost": LoseRequest(),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("fault", ONE_SWAP)
def test_a_swap_that_fails_once_is_asked_for_again_and_lands_once(name: str, fault: str) -> None:
    swaps = dry_run(name).catalog.steps.count(SWAP)
    assert swaps == (2 if KINDS[name].meanwhile else 1)
    for at in range(1, swaps + 1):
        run = Run(KINDS[name], world_of(name).copy(), (), {(SWAP, at): ONE_SWAP[fault]})
        assert run.error is None
        assert judge(name, run)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("fault", ONE_SWAP)
def test_a_swap_that_fails_for_good_ends_in_the_truth(name: str, fault: str) -> None:
    swaps = dry_run(name).catalog.steps.count(SWAP)
    for start in range(1, swaps + 1):
        always = {(SWAP, at): ONE_SWAP[fault] for at in range(start, start + 20)}
        run = Run(KINDS[name], world_of(name).copy(), (), always)
        # A lost first swap of a retried commit was stale, so nothing came of it.
        won = fault == "answer lost" and (start == swaps)
        assert type(run.error) is (Unavailable if fault == "busy" else CommitUnknown)
        if fault == "busy":
            assert_tidy(run)
        assert judge(name, run) == won


@pytest.mark.parametrize("name", KINDS)
def test_a_lost_answer_with_a_busy_catalog_after_it_stays_unknown(name: str) -> None:
    swaps = dry_run(name).catalog.steps.count(SWAP)
    faults: dict[tuple[str, int], Fault] = {
        (SWAP, at): Refuse(Unavailable("busy")) for at in range(swaps + 1, swaps + 20)
    }
    run = Run(KINDS[name], world_of(name).copy(), (), {**faults, (SWAP, swaps): LoseAnswer()})
    assert isinstance(run.error, CommitUnknown)
    assert judge(name, run)


@pytest.mark.parametrize("lost", [LoseAnswer(), LoseRequest()])
def test_a_lost_answer_is_waited_for_as_long_as_a_catalog_takes_to_come_back(lost: Fault) -> None:
    world = world_of("append").copy()
    world.table().set_properties({"commit.status-check.num-retries": "100"})
    away: dict[tuple[str, int], Fault] = {
        (SWAP, at): Refuse(Unavailable("starting up")) for at in range(2, 40)
    }
    run = Run(KINDS["append"], world, (), {**away, (SWAP, 1): lost})
    assert run.error is None
    assert run.catalog.steps.count(SWAP) == 40


def test_a_catalog_that_was_never_reached_is_told_soon_however_long_a_lost_answer_may_take() -> (
    None
):
    world = world_of("append").copy()
    world.table().set_properties({"commit.status-check.num-retries": "100"})
    away: dict[tuple[str, int], Fault] = {
        (SWAP, at): Refuse(Unavailable("closed")) for at in range(1, 100)
    }
    run = Run(KINDS["append"], world, (), away)
    assert isinstance(run.error, Unavailable)
    assert run.catalog.steps.count(SWAP) == 5
    assert_tidy(run)


def on_top(world: World, name: str) -> None:
    """Commit as another who waits for nobody's turn."""
    with within(Hasty()):
        world.table().append_files([data_file(name)])


@pytest.mark.parametrize("log", ["1", "100"])
@pytest.mark.parametrize("others", [1, 3])
@pytest.mark.parametrize("lost", ["answer", "request"])
def test_a_lost_answer_is_found_out_though_others_commit_before_it_is_asked_for_again(
    lost: str, others: int, log: str
) -> None:
    world = world_of("append").copy()
    world.table().set_properties({"write.metadata.previous-versions-max": log})

    def meanwhile() -> None:
        for number in range(others):
            on_top(world, f"other{number}")

    faults: dict[tuple[str, int], Fault] = {
        (SWAP, 1): LoseAnswer() if lost == "answer" else LoseRequest(),
        (SWAP, 2): Before(meanwhile),
    }
    run = Run(KINDS["append"], world, (), faults)
    assert run.error is None
    files = view(world.table())["files"]
    expected = ["a", "b", *(f"other{number}" for number in range(others))]
    assert files == [f"data/{each}.parquet" for each in expected]
    assert run.catalog.steps.count(SWAP) == (2 if lost == "answer" else 3)


@pytest.mark.parametrize("log", ["1", "100"])
def test_a_metadata_change_whose_answer_is_lost_is_never_told_wrong(log: str) -> None:
    world = world_of("append").copy()
    world.table().set_properties({"write.metadata.previous-versions-max": log})

    def meanwhile() -> None:
        for number in range(3):
            on_top(world, f"other{number}")

    faults = {(SWAP, 1): LoseAnswer(), (SWAP, 2): Before(meanwhile)}
    run = Run(KINDS["metadata only"], world, (), faults)
    # With a log as short as that nobody can tell any more, and the caller is told so.
    assert (run.error is None) == (log == "100")
    assert run.error is None or isinstance(run.error, CommitUnknown)
    assert view(world.table())["columns"] == ["n", "country", "note"]


def test_a_lost_answer_that_cannot_be_looked_up_stays_unknown() -> None:
    """The head was made on top of ours, but every read of it fails: nothing is deleted."""
    world = world_of("append").copy()
    dry = dry_run("append")
    after = dry.steps[-1].number + 1
    faults = {(SWAP, 1): LoseAnswer(), (SWAP, 2): Before(lambda: on_top(world, "other"))}
    reads = [StoreFault(at=at, how=How.BEFORE) for at in range(after, after + 20)]
    run = Run(KINDS["append"], world, reads, faults)
    assert isinstance(run.error, CommitUnknown)
    fresh = world.table()
    assert view(fresh)["files"] == [f"data/{each}.parquet" for each in ("a", "b", "other")]
    assert reached(fresh) <= world.files()


def test_a_table_renamed_after_its_answer_was_lost_keeps_its_files() -> None:
    world = world_of("append").copy()
    moved = Before(lambda: world.healthy().rename_table(NAME, "db.moved"))
    run = Run(KINDS["append"], world, (), {(SWAP, 1): LoseAnswer(), (SWAP, 2): moved})
    assert isinstance(run.error, CommitUnknown)
    fresh = world.healthy().table("db.moved")
    assert view(fresh)["files"] == ["data/a.parquet", "data/b.parquet"]
    assert reached(fresh) <= world.files()


def test_a_table_dropped_before_the_swap_is_told_and_leaves_no_files() -> None:
    world = world_of("append").copy()
    dropped = Before(lambda: world.healthy().drop_table(NAME))
    run = Run(KINDS["append"], world, (), {(SWAP, 1): dropped})
    assert "no table" in str(run.error)
    assert_tidy(run)


ROWS = pa.table({"n": [1, 2], "country": ["DE", "FR"]})


def test_an_error_that_nobody_foresaw_before_the_swap_leaves_no_files() -> None:
    world = world_of("append").copy()
    before = world.files()
    table = world.table()
    # The first file holds the rows, the second is a root that does get written.
    fault = StoreFault(at=1, operation="write_new", how=How.AFTER, error=TimeoutError)
    table.files = replace(table.files, store=FlakyStore(world.store, [fault]))
    with pytest.raises(TimeoutError):
        table.append(ROWS)
    assert world.files() == before


@pytest.mark.parametrize("fault", [Before, After])
def test_an_error_that_nobody_foresaw_in_a_swap_leaves_every_file(
    fault: Callable[[Callable[[], object]], Fault],
) -> None:
    def fail() -> None:
        raise RuntimeError("boom")

    world = world_of("append").copy()
    before = world.files()
    table = world.table()
    table.catalog = FlakyCatalog(world.catalog, faults={(SWAP, 1): fault(fail)})
    with pytest.raises(RuntimeError, match="boom"):
        table.append(ROWS)
    folders = [name.rpartition("/")[0] for name in world.files() - before]
    assert sorted(folders) == [f"{table.location}/{name}" for name in ("data", *2 * ["metadata"])]


def test_an_answer_that_comes_late_is_still_an_answer() -> None:
    world = world_of("append").copy()
    late = After(lambda: on_top(world, "other"))
    run = Run(KINDS["append"], world, (), {(SWAP, 1): late})
    assert run.error is None
    expected = [f"data/{each}.parquet" for each in ("a", "b", "other")]
    assert view(world.table())["files"] == expected


def test_a_job_that_runs_again_after_an_unknown_outcome_applies_once() -> None:
    for fault in (LoseAnswer(), LoseRequest()):
        world = world_of("append").copy()
        always: dict[tuple[str, int], Fault] = {(SWAP, at): fault for at in range(1, 9)}
        flaky = Lake(catalog=FlakyCatalog(world.catalog, faults=always), store=world.store).table(
            NAME
        )
        with pytest.raises(CommitUnknown, match="may or may not"):
            flaky.append_files([data_file("b")], key="job-1")
        again = world.table().append_files([data_file("b")], key="job-1")
        assert again.repeated == isinstance(fault, LoseAnswer)
        assert view(world.table())["files"] == ["data/a.parquet", "data/b.parquet"]


def test_a_commit_that_loses_every_race_leaves_nothing_behind() -> None:
    world = world_of("append").copy()
    world.table().set_properties({"commit.retry.num-retries": "2", "commit.retry.max-wait-ms": "1"})
    numbers = iter(range(100))
    faults: dict[tuple[str, int], Fault] = {
        (SWAP, at): Before(lambda: on_top(world, f"other{next(numbers)}")) for at in range(1, 9)
    }
    run = Run(KINDS["append"], world, (), faults)
    assert isinstance(run.error, CommitConflict)
    assert "3 tries lost" in str(run.error)
    fresh = world.table()
    assert view(fresh)["files"] == [f"data/{each}.parquet" for each in ("a", *_others(3))]
    # Three commits of others, of two files each, and nothing of ours.
    assert len(world.files() - run.files_before) == 6
    assert reached(fresh) <= world.files()


def _others(count: int) -> list[str]:
    return [f"other{number}" for number in range(count)]


def test_a_retried_commit_removes_what_its_lost_tries_wrote() -> None:
    for name in ("retried append", "retried append to leaves", "retried row delta"):
        run = dry_run(name)
        fresh = run.world.table()
        new = run.world.files() - run.files_before
        assert new <= reached(fresh)
