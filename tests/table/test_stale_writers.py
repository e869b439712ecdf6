"""Whoever commits from a stale view loses no row, brings none back, and fails only by a conflict."""

from __future__ import annotations

import pytest

from icetree.errors import CommitConflict
from tests.effort import EFFORT, SEED
from tests.table.changing import changing_table, data_files, delete_rows, some
from tests.table.stale_writers import World

STEPS = 50
#: A seed that has found what was planted, and others for each round of `make laws`.
SEEDS = [5] if EFFORT == 1 else [6, 10, *range(1_000 * SEED, 1_000 * SEED + 2 * EFFORT)]


@pytest.mark.law
@pytest.mark.parametrize("seed", SEEDS)
def test_stale_handles_do_what_a_plain_model_allows(seed: int) -> None:
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    assert world.reader.refresh().verify().is_clean


@pytest.mark.law
@pytest.mark.parametrize("seed", SEEDS)
def test_nor_where_the_name_is_made_to_stand_for_former_states_meanwhile(seed: int) -> None:
    world = World(seed, goes_back=True)
    for _ in range(STEPS):
        world.step()
    assert world.tally["back"]
    assert world.reader.refresh().verify(deep=True).is_clean


def test_a_staged_snapshot_is_held_against_what_it_will_follow() -> None:
    """It follows the head of its time, which may be published with it by moving there."""
    table = changing_table()
    table.append(some((1, "a"), (2, "b")))
    stale = table.transaction(branch=None)
    stale.overwrite_files(data_files(table), some((1, "A"), (2, "B")))
    delete_rows(table, [1])
    with pytest.raises(CommitConflict, match="deleting rows that this change would bring back"):
        stale.commit()
    assert table.refresh().scan().to_arrow()["id"].to_pylist() == [2]
