"""Illegal trees: whatever breaks a rule is refused, or `verify` names it."""

from __future__ import annotations

from functools import cache, partial

import pytest

from icetree.errors import CorruptTable
from icetree.table.verify.findings import Severity
from tests.effort import EFFORT, SEED
from tests.foreign import (
    forged_deletes,
    forged_entries,
    forged_files,
    forged_leaves,
    forged_metadata,
    forged_trees,
)
from tests.foreign.forgery import Forge, Forgery, begin
from tests.foreign.judge import open_table, require_sound
from tests.foreign.world import World, draw_world

#: Trees are looked through until so many had what is to be broken.
_EACH = EFFORT
_MANY = 60 * EFFORT
_SEEDS = range(1000 + SEED * _MANY, 1000 + SEED * _MANY + _MANY)
FORGERIES: tuple[Forge, ...] = tuple(
    forge
    for module in (
        forged_entries,
        forged_files,
        forged_deletes,
        forged_leaves,
        forged_metadata,
        forged_trees,
    )
    for name, forge in vars(module).items()
    if getattr(forge, "__module__", "") == module.__name__ and not name.startswith("_")
)
_world = cache(partial(draw_world, most=4))


@pytest.mark.law
@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_what_breaks_a_rule_is_refused_or_named(forge: Forge) -> None:
    broken = 0
    for seed in _SEEDS:
        forgery = begin(_world(seed))
        if not forge(forgery):
            continue
        broken += 1
        assert _is_noticed(forgery.finish()), f"{forge.__name__} of seed {seed} went unnoticed"
        if broken == _EACH:
            return
    assert broken, "no tree had what is to be broken"


def nothing(_: Forgery) -> bool:
    return True


def leaf_anew(f: Forgery) -> bool:
    found = f.leaf(3, 4)
    if found is not None:
        f.rewrite(*found, f.entries(found[0]))
    return found is not None


@pytest.mark.law
@pytest.mark.parametrize("rewrite", [nothing, leaf_anew])
def test_what_is_written_anew_without_a_lie_stays_legal(rewrite: Forge) -> None:
    for seed in _SEEDS[:6]:
        forgery = begin(_world(seed))
        if rewrite(forgery):
            world = forgery.finish()
            require_sound(open_table(world))


def _is_noticed(world: World) -> bool:
    try:
        table = open_table(world)
    except CorruptTable:
        return True
    reports = (table.verify(deep=deep) for deep in (False, True))
    return any(f.severity is Severity.ERROR for report in reports for f in report.findings)
