"""Which leaves gain from being rewritten, and into how many: numbers in, numbers out.

A leaf is rewritten when it must be (it is worn, or of an older format), when it is small and
another one is too, or when it lies across others: where looking a value up reads over half as many
entries again as in leaves that do not cross. Who is rewritten is sorted and cut anew. So whatever
comes out gains nothing from being rewritten once more, and what is well clustered stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

#: A leaf is small when it holds less than this share of what it could.
SMALL: Final = 0.25
#: Crossing leaves stay as they are while no more than this is read, over what one leaf holds.
_READ: Final = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What becomes of entries: which leaves go, and how their entries stand in new ones."""

    #: One flag a leaf.
    goes: Flags
    #: Entries of leaves that go, by number, in their new order.
    order: Rows
    #: Where each new leaf starts in that order, and last where all ends.
    starts: Rows


@dataclass(frozen=True, slots=True)
class _Leaves:
    """The ranges of leaves, old or to be."""

    size: Rows
    lower: Rows
    upper: Rows
    #: Entries at either end of a leaf's range.
    at_ends: Rows


def cut(ranks: Rows, ends: Rows, must: Flags, most: int) -> Cut:
    """Return which leaves to rewrite, and how.

    Entries stand leaf after leaf, none of which is empty: `ends` has where each starts, and last
    where all end. `ranks` says where each entry comes in the order, `most` how many one leaf holds.
    """
    sizes = np.diff(ends)
    goes = must.copy()
    small = sizes < SMALL * most
    if goes.any() or small.sum() > 1:
        goes |= small
    in_order = np.sort(ranks)
    leaf_of = np.repeat(np.arange(len(sizes)), sizes)
    now = _ranges(ranks, ends[:-1])
    while True:
        order, starts = _pieces(ranks, goes[leaf_of], _some(now, ~goes), most)
        made = _ranges(ranks[order], starts[:-1])
        more = _crossed(_some(now, ~goes), made, in_order)
        if not more.any():
            return Cut(goes=goes, order=order, starts=starts)
        goes[np.flatnonzero(~goes)[more]] = True


def pieces(count: int, most: int) -> Rows:
    """Return where leaves of about equal size start, and last where they end."""
    leaves = -(-count // most)
    return np.arange(leaves + 1) * count // max(1, leaves)


def _pieces(ranks: Rows, bag: Flags, staying: _Leaves, most: int) -> tuple[Rows, Rows]:
    """Return the order of entries that are rewritten, and where new leaves start.

    A new leaf does not reach across one that stays, unless it would be small.
    """
    numbers = np.flatnonzero(bag)
    order = numbers[np.argsort(ranks[numbers], kind="stable")]
    values = ranks[order]
    after = np.searchsorted(values, staying.lower, side="right")
    inside = (after > 0) & (after < len(values))
    inside[inside] &= values[after[inside]] >= staying.upper[inside]
    starts = [0]
    for gap in np.unique(after[inside]).tolist():
        if gap - starts[-1] >= SMALL * most:
            starts.append(gap)
    starts.append(len(order))
    made = [start + pieces(end - start, most)[:-1] for start, end in pairwise(starts)]
    return order, np.concatenate([*made, [len(order)]]).astype(np.int64)


def _ranges(ranks: Rows, starts: Rows) -> _Leaves:
    if not len(starts):
        none = np.zeros(0, np.int64)
        return _Leaves(none, none, none, none)
    size = np.diff([*starts, len(ranks)])
    lower, upper = np.minimum.reduceat(ranks, starts), np.maximum.reduceat(ranks, starts)
    ends = (ranks == np.repeat(lower, size)) | (ranks == np.repeat(upper, size))
    return _Leaves(size, lower, upper, np.add.reduceat(ends.astype(np.int64), starts))


def _some(leaves: _Leaves, mask: Flags) -> _Leaves:
    return _Leaves(leaves.size[mask], leaves.lower[mask], leaves.upper[mask], leaves.at_ends[mask])


def _crossed(staying: _Leaves, made: _Leaves, in_order: Rows) -> Flags:
    """Tell which leaves that were to stay lie across others too much."""
    every = _Leaves(
        *(np.concatenate([getattr(each, name) for each in (staying, made)]) for name in _NAMES)
    )
    if not len(every.size):
        return np.zeros(0, np.bool_)
    by_lower = np.lexsort((every.upper, every.lower))
    reach = np.maximum.accumulate(every.upper[by_lower])
    # Leaves that only meet at a value do not cross.
    apart = np.concatenate([[True], every.lower[by_lower][1:] >= reach[:-1]])
    heap = np.empty(len(by_lower), np.int64)
    heap[by_lower] = np.cumsum(apart) - 1
    inside = np.searchsorted(in_order, every.upper, side="left") - np.searchsorted(
        in_order, every.lower, side="right"
    )
    read = np.bincount(heap, (np.maximum(inside, 0) + every.at_ends) * every.size)
    held = np.bincount(heap, every.size * every.size)
    found: Flags = (read > _READ * held)[heap[: len(staying.size)]]
    return found


_NAMES: Final = ("size", "lower", "upper", "at_ends")
