"""Replaying many random histories."""

from __future__ import annotations

from collections import Counter
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from icetree.spec.schema.shape import Shape
from icetree.tree.policy import Policy
from tests.effort import EFFORT, SEED, tried
from tests.laws.strategies import SHAPES, Op, histories, policies
from tests.laws.table import Table
from tests.laws.world import World

#: Histories that Hypothesis makes at a time: it repeats itself the more it has made.
_ROUND = 7
#: More rounds than any part has, so that no two parts or seeds share one.
_MANY = 1_000_000


def replay(part: int, operations: int) -> Counter[str]:
    """Replay random histories of at least so many operations against the model.

    Return how often each thing happened.
    """
    tally: Counter[str] = Counter()
    for turn in count(SEED * _MANY + part, 100):
        _replay(turn, tally)
        if tally["operations"] >= operations * EFFORT:
            return tally
    raise AssertionError


def _replay(start: int, tally: Counter[str]) -> None:
    @tried(_ROUND, start)
    @given(st.sampled_from(SHAPES), policies(), histories(16, 24))
    def hold(shape: Shape, turns: list[Policy], ops: list[Op]) -> None:
        world = World(table=Table(shape=shape), tally=tally)
        for op in ops:
            world.table.policy = turns[op.policy % len(turns)]
            if op.salt % 4 == 0:
                world.refuse(op)
            world.commit(op)
        world.reread()

    hold()
