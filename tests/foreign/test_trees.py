"""The law of trees of other writers: whatever is legal is read right, also beneath our commits.

A seed decides all of a tree, and the name of a test tells it.
"""

from __future__ import annotations

import pytest

from tests.effort import EFFORT, SEED
from tests.foreign.branches import require_branches
from tests.foreign.judge import open_table, require_read_right
from tests.foreign.model import EQUALITY
from tests.foreign.ours import ours_on
from tests.foreign.world import VERSIONS, draw_world

#: Two trees that find all that `tests/laws/planted.py` plants for this law.
_USUAL = (48, 39)
_MANY = 4 * EFFORT
_SEEDS = _USUAL if EFFORT == 1 else range(SEED * _MANY, SEED * _MANY + _MANY)


@pytest.mark.law
@pytest.mark.parametrize("seed", _SEEDS)
def test_any_tree_of_another_writer_reads_as_its_model_does(seed: int) -> None:
    world = draw_world(seed)
    require_read_right(world, open_table(world))


@pytest.mark.parametrize("version", [1, 3])
def test_a_table_that_was_of_another_version_reads_as_its_model_does(version: int) -> None:
    world = draw_world(VERSIONS.index(version), most=1)
    require_read_right(world, open_table(world))


def test_the_usual_seeds_draw_every_kind_of_freedom() -> None:
    worlds = [draw_world(seed) for seed in _USUAL]
    with_avro = [any(name.endswith(".avro") for name in each.stored) for each in worlds]
    assert sorted(with_avro) == [False, True]
    files = [
        file for each in worlds for snapshot in each.writer.snapshots for file in snapshot.live
    ]
    assert any(file.deleted for file in files), "no position delete file of v2"
    deletes = [file for file in files if file.content == EQUALITY]
    assert {bool(file.partition) for file in deletes} == {False, True}
    assert any(file.is_vector for file in files)
    nested = [each.parts() for world in worlds for each in world.layout.columns]
    assert any(nested), "no nested column"
    assert any(len(world.layout.schemas) > 1 for world in worlds), "no schema but the first"
    assert any(world.refs for world in worlds), "no branch but main"


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
