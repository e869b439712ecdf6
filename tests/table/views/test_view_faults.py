"""A store or catalog that fails at any step of a change of views: a view is old or new.

What was told as failed for certain has not happened; whatever happened, nothing that is named is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import pytest

from icetree.catalog.memory import MemoryCatalog
from icetree.errors import CommitUnknown, CorruptTable, IcetreeError, Unavailable
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from tests.catalog.flaky import Before, Fault, FlakyCatalog, LoseAnswer, LoseRequest, Refuse
from tests.store.flaky import Fault as StoreFault
from tests.store.flaky import FlakyStore, How
from tests.table.views.verbs import VERBS, again, prepare, seen, told

WRITES = ("create", "swap", "rename", "drop")


class Run:
    """One verb, on a lake with faults."""

    def __init__(
        self,
        verb: str,
        store: Sequence[StoreFault] = (),
        catalog: Mapping[tuple[str, int], Fault] | None = None,
    ) -> None:
        self.files, self.names = MemoryStore(), MemoryCatalog("m")
        self.lake = Lake(catalog=self.names, store=self.files, warehouse="memory://w")
        prepare(self.lake)
        self.before = set(self.files._files)
        self.store = FlakyStore(self.files, store)
        self.catalog = FlakyCatalog(self.names, faults=catalog or {})
        self.error: Exception | None = None
        try:
            VERBS[verb](Lake(catalog=self.catalog, store=self.store, warehouse="memory://w"))
        except (IcetreeError, OSError) as error:
            self.error = error

    def left(self) -> set[str]:
        return set(self.files._files) - self.before


@cache
def old_and_new(verb: str) -> tuple[object, object]:
    lake = Lake(catalog=MemoryCatalog("m"), store=MemoryStore(), warehouse="memory://w")
    prepare(lake)
    run = Run(verb)
    assert run.error is None
    return seen(lake), seen(run.lake)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("how", [How.BEFORE, How.AFTER, How.PARTIAL])
def test_a_store_that_fails_at_any_step_leaves_views_old_or_new(verb: str, how: How) -> None:
    old, new = old_and_new(verb)
    for at in range(len(Run(verb).store.steps)):
        run = Run(verb, [StoreFault(at=at, how=how)])
        # A store's request may be tried again by it: then nobody hears of the fault.
        assert seen(run.lake) == (old if run.error else new), (at, run.error)
        again(run.lake, verb)
        assert seen(run.lake) == new


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("fault", [LoseAnswer(), LoseRequest(), Refuse(Unavailable("busy"))])
def test_a_catalog_that_fails_at_any_step_leaves_views_old_or_new(verb: str, fault: Fault) -> None:
    old, new = old_and_new(verb)
    steps = Run(verb).catalog.steps
    assert set(steps) & set(WRITES)
    for step in [(each, steps[: at + 1].count(each)) for at, each in enumerate(steps)]:
        run = Run(verb, catalog={step: fault})
        found = seen(run.lake)
        if run.error is None:
            assert found == new, step
        elif isinstance(run.error, CommitUnknown):
            assert found in (old, new), step
        else:
            assert found == old, step
            # What certainly came to nothing leaves nothing behind.
            assert run.left() == set(), step


@pytest.mark.parametrize("fault", [LoseAnswer(), LoseRequest()])
def test_a_swap_whose_answer_is_lost_is_asked_for_again_and_happens_once(fault: Fault) -> None:
    run = Run("replace", catalog={("swap", 1): fault})
    assert run.error is None
    assert run.catalog.steps.count("swap") == 2
    assert seen(run.lake) == old_and_new("replace")[1]


@pytest.mark.parametrize("verb", ["replace", "create"])
def test_a_catalog_that_never_answers_leaves_the_outcome_unknown_and_deletes_nothing(
    verb: str,
) -> None:
    method = "swap" if verb == "replace" else "create"
    for fault in (LoseAnswer(), LoseRequest()):
        run = Run(verb, catalog={(method, count): fault for count in range(1, 9)})
        assert isinstance(run.error, CommitUnknown)
        assert len(run.left()) == 1
        assert seen(run.lake) in old_and_new(verb)


def test_a_replacement_that_loses_its_race_is_made_on_what_won() -> None:
    slow = Run("drop")
    lake = Lake(catalog=slow.names, store=slow.files, warehouse="memory://w")
    made = lake.create_view("db.v", "SELECT 1", "a int")

    def win() -> None:
        lake.view("db.v").set_properties({"won": "yes"})

    catalog = FlakyCatalog(slow.names, faults={("swap", 1): Before(win)})
    loser = Lake(catalog=catalog, store=slow.files, warehouse="memory://w").view("db.v")
    loser.replace("SELECT 2", "a int")
    text, _, properties, log = told(lake, "db.v")  # type: ignore[misc]
    assert (text, properties, log) == ("SELECT 2", {"won": "yes"}, [1, 2])
    mine = {name for name in slow.files._files if name.startswith(made.location)}
    # The first one, the winner's and ours: not the one that lost.
    assert len(mine) == 3


def test_a_change_in_doubt_on_a_view_that_is_renamed_meanwhile_deletes_nothing() -> None:
    """The file that may have become the head is the head, under another name."""
    run = Run("set properties")
    lake = run.lake

    def rename() -> None:
        lake.rename_view("db.old", "db.elsewhere")

    faults: dict[tuple[str, int], Fault] = {("swap", 1): LoseAnswer(), ("swap", 2): Before(rename)}
    catalog = FlakyCatalog(run.names, faults=faults)
    held = Lake(catalog=catalog, store=run.files, warehouse="memory://w").view("db.old")
    with pytest.raises(CommitUnknown):
        held.set_properties({"a": "1"})
    assert lake.view("db.elsewhere").properties["a"] == "1"


def test_a_change_in_doubt_on_a_catalog_that_is_damaged_then_deletes_nothing() -> None:
    run = Run("set properties")
    broken = Refuse(CorruptTable("lake.db", "malformed"))
    faults: dict[tuple[str, int], Fault] = {("swap", 1): LoseAnswer(), ("swap", 2): broken}
    catalog = FlakyCatalog(run.names, faults=faults)
    held = Lake(catalog=catalog, store=run.files, warehouse="memory://w").view("db.old")
    with pytest.raises(CommitUnknown):
        held.set_properties({"a": "1"})
    assert run.lake.view("db.old").properties["a"] == "1"
