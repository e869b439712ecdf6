"""Running many random histories, shared out over processes."""

from __future__ import annotations

import multiprocessing
import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from hypothesis import given, seed
from hypothesis import strategies as st

from icetree.spec.shape import Shape
from icetree.tree.policy import Policy
from tests.laws.strategies import EFFORT, SHAPES, Op, histories, law, policies
from tests.laws.world import Table, World

WORKERS = 2


def in_parallel(task: Callable[[int, int], Counter[str]], examples: int) -> Counter[str]:
    """Share out examples over processes; return all that they tell to have done."""
    fresh = 0 if EFFORT == 1 else random.SystemRandom().getrandbits(32)
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(WORKERS, mp_context=spawned) as pool:
        tasks = [pool.submit(task, fresh + i, examples // WORKERS) for i in range(WORKERS)]
        return sum((each.result() for each in tasks), Counter())


def replay(first: int, examples: int) -> Counter[str]:
    """Replay random histories against the model."""
    tally: Counter[str] = Counter()

    @seed(first)
    @law(examples, derandomize=False)
    @given(st.sampled_from(SHAPES), policies(), histories(10, 30))
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
