"""Illegal trees: whatever breaks a rule is refused, or `verify` names it."""

from __future__ import annotations

from functools import cache, partial

import pytest

from icetree.errors import CorruptTable
from icetree.table.findings import Severity
from tests.foreign.forgery import FORGERIES, Forge, begin
from tests.foreign.judge import open_table
from tests.foreign.world import World, draw_world
from tests.laws.strategies import EFFORT

#: Trees are looked through until so many had what is to be broken.
_EACH = EFFORT
_SEEDS = range(1000, 1000 + 60 * EFFORT)
_world = cache(partial(draw_world, most=4))


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


def _is_noticed(world: World) -> bool:
    try:
        table = open_table(world)
    except CorruptTable:
        return True
    reports = (table.verify(deep=deep) for deep in (False, True))
    return any(f.severity is Severity.ERROR for report in reports for f in report.findings)
