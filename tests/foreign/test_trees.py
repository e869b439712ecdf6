"""The law of trees of other writers: whatever is legal is read right, also beneath our commits.

A seed decides all of a tree, and the name of a test tells it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.effort import EFFORT, SEED
from tests.foreign.branches import require_branches
from tests.foreign.by_hand import Hand, plain_file
from tests.foreign.judge import open_table, require_kept, require_read_right
from tests.foreign.model import DATA, EQUALITY
from tests.foreign.ours import ours_on
from tests.foreign.stored import FORMATS
from tests.foreign.transforms import UNKNOWN
from tests.foreign.tree import EXISTING
from tests.foreign.world import VERSIONS, draw_world

#: Two trees that find what `tests/laws/planted.py` plants for this law, but for bounds that touch.
_USUAL = (31, 90)
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
    with_old = [any(re.search(r"/metadata/\d+\.avro", name) for name in w.stored) for w in worlds]
    assert sorted(with_old) == [False, True]
    files = [
        file for each in worlds for snapshot in each.writer.snapshots for file in snapshot.live
    ]
    assert any(file.deleted for file in files), "no position delete file of v2"
    assert {file.format for file in files if file.content == DATA} == set(FORMATS)
    deletes = [file for file in files if file.content == EQUALITY]
    assert {bool(file.partition) for file in deletes} == {False, True}
    assert any(file.is_vector for file in files)
    parts = [
        part
        for world in worlds
        for snapshot in world.writer.snapshots
        for file in snapshot.live
        for part in world.layout.specs[file.spec_id]
    ]
    assert any(part.others for part in parts), "no partition by several columns"
    assert any(part.transform == UNKNOWN for part in parts), "no transform that nobody knows"
    inside = {each.id for world in worlds for each in world.layout.schema.counted()}
    assert any(not inside.isdisjoint(file.stats) for file in files), "no stats within lists"
    nested = [each.parts() for world in worlds for each in world.layout.columns]
    assert any(nested), "no nested column"
    assert any(len(world.layout.schemas) > 1 for world in worlds), "no schema but the first"
    assert any(world.refs for world in worlds), "no branch but main"


@pytest.mark.law
@pytest.mark.parametrize("pick", [min, max])
def test_an_equality_delete_whose_bounds_touch_those_of_a_file_applies(
    pick: Callable[[list[int]], int],
) -> None:
    hand = Hand()
    file, key = plain_file(hand, 4), hand.layout.column("id").id
    ids = [row["id"] for row in file.rows]
    no_null = {"null_value_count": 0}
    file.stats = {key: {"lower_bound": min(ids), "upper_bound": max(ids), **no_null}}
    hand.snapshot([hand.file_row(file)], [file])
    delete = hand.writer.shop.equality(file, by=("id",))
    while delete.values != {(pick(ids),)}:
        delete = hand.writer.shop.equality(file, by=("id",))
    delete.stats = {key: {"lower_bound": pick(ids), "upper_bound": pick(ids), **no_null}}
    delete.snapshot_id = delete.sequence_number = delete.file_sequence_number = 2
    hand.snapshot([hand.file_row(file, EXISTING), hand.file_row(delete)], [file, delete])
    require_read_right(hand.world(), hand.open())


@pytest.mark.law
@pytest.mark.parametrize("seed", _SEEDS)
def test_any_tree_of_another_writer_can_be_committed_to(seed: int) -> None:
    world = draw_world(seed)
    table = open_table(world)
    ours_on(world, table).commit(6)
    require_kept(world, table)


@pytest.mark.law
@pytest.mark.parametrize("seed", _SEEDS)
def test_any_tree_of_another_writer_can_be_branched_and_expired(seed: int) -> None:
    world = draw_world(seed)
    require_branches(world, open_table(world))
