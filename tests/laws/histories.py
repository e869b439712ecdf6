"""Replaying many random histories."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given, seed
from hypothesis import strategies as st

from icetree.spec.shape import Shape
from icetree.tree.policy import Policy
from tests.laws.strategies import EFFORT, SHAPES, Op, histories, law, policies
from tests.laws.table import Table
from tests.laws.world import World


def replay(part: int, examples: int) -> Counter[str]:
    """Replay random histories against the model; return how often each thing happened."""
    tally: Counter[str] = Counter()
    fresh = 0 if EFFORT == 1 else random.SystemRandom().getrandbits(32)

    @seed(fresh + part)
    @law(examples, derandomize=False)
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
    return tally
