"""The law of trees of other writers: whatever is legal is read right, also beneath our commits.

A seed decides all of a tree, and the name of a test tells it.
"""

from __future__ import annotations

import pytest

from tests.effort import EFFORT, SEED
from tests.foreign.branches import require_branches
from tests.foreign.judge import open_table, require_read_right
from tests.foreign.ours import ours_on
from tests.foreign.world import draw_world

_MANY = 2 * EFFORT
_SEEDS = range(SEED * _MANY, SEED * _MANY + _MANY)


@pytest.mark.law
@pytest.mark.parametrize("seed", _SEEDS)
def test_any_tree_of_another_writer_reads_as_its_model_does(seed: int) -> None:
    world = draw_world(seed)
    require_read_right(world, open_table(world))


@pytest.mark.law
@pytest.mark.parametrize("seed", _SEEDS)
def test_any_tree_of_another_writer_can_be_committed_to(seed: int) -> None:
    world = draw_world(seed)
    ours_on(world, open_table(world)).commit(6)


@pytest.mark.law
@pytest.mark.parametrize("seed", _SEEDS)
def test_any_tree_of_another_writer_can_be_branched_and_expired(seed: int) -> None:
    world = draw_world(seed)
    require_branches(world, open_table(world))
