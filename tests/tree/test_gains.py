"""Which leaves gain from being rewritten: all entries stay, and a second time nothing does."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from icetree.tree.leaves.gains import SMALL, Cut, Flags, Rows, cut
from tests.effort import law

#: Leaves, each the ranks of its entries.
LEAVES = st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=12), min_size=1, max_size=12)


def _flat(leaves: list[list[int]]) -> tuple[Rows, Rows]:
    ranks = np.array([rank for leaf in leaves for rank in leaf], np.int64)
    return ranks, np.cumsum([0, *map(len, leaves)])


def _after(leaves: list[list[int]], done: Cut) -> list[list[int]]:
    ranks, _ = _flat(leaves)
    made = np.split(ranks[done.order], done.starts[1:-1]) if len(done.order) else []
    stay = [leaf for leaf, goes in zip(leaves, done.goes, strict=True) if not goes]
    return [*stay, *(part.tolist() for part in made)]


def _none(leaves: list[list[int]]) -> Flags:
    return np.zeros(len(leaves), np.bool_)


@law(200)
@given(LEAVES, st.integers(4, 16), st.data())
def test_every_entry_stays_and_a_second_time_nothing_gains(
    leaves: list[list[int]], most: int, data: st.DataObject
) -> None:
    must = np.array([data.draw(st.booleans()) for _ in leaves])
    done = cut(*_flat(leaves), must, most)
    assert (done.goes | ~must).all()
    after = _after(leaves, done)
    assert sorted(_flat(after)[0].tolist()) == sorted(_flat(leaves)[0].tolist())
    assert all(0 < len(leaf) <= most for leaf in after[int((~done.goes).sum()) :])
    assert not cut(*_flat(after), _none(after), most).goes.any()


def test_leaves_that_only_meet_at_a_value_stay() -> None:
    leaves = [[0, 1, 2, 3], [3, 3, 3, 4], [4, 5, 6, 7]]
    assert not cut(*_flat(leaves), _none(leaves), 4).goes.any()


def test_leaves_that_hold_the_same_range_are_put_in_order() -> None:
    leaves = [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert _after(leaves, cut(*_flat(leaves), _none(leaves), 4)) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_small_leaf_across_large_ones_leaves_them_alone() -> None:
    large = [[*range(start, start + 40)] for start in range(0, 400, 40)]
    leaves = [*large, [0, 200], [7, 399]]
    done = cut(*_flat(leaves), _none(leaves), 40)
    assert done.goes.tolist() == [False] * 10 + [True] * 2
    assert _after(leaves, done)[-1] == [0, 7, 200, 399]


def test_a_worn_leaf_is_not_stretched_to_where_a_small_one_is() -> None:
    leaves = [[*range(30)], [*range(30, 70)], [*range(70, 110)], [110, 111]]
    must = np.array([True, False, False, False])
    done = cut(*_flat(leaves), must, 40)
    assert done.goes.tolist() == [True, False, False, True]
    assert _after(leaves, done)[-2:] == [[*range(30)], [110, 111]]
    assert len(leaves[-1]) < SMALL * 40
