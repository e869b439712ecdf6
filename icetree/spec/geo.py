"""Boxes around places: on a plane, and on the earth, where west may be east of east.

A box on the earth goes from its west eastwards to its east, and where west is the greater number it
crosses the antimeridian. 180 and -180 are one meridian.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from icetree.errors import InvalidInput

Numbers: TypeAlias = "npt.NDArray[np.float64]"
#: The least corner of a box and the greatest.
Corners: TypeAlias = "tuple[Numbers, Numbers]"
_CIRCLE: Final = 360.0
#: What arithmetic may lose: to keep a file that has nothing to show costs little.
_SLACK: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """What lies between two longitudes and two latitudes, the ends among it."""

    west: float
    south: float
    east: float
    north: float
    #: The least z and the greatest, and so for m; None leaves an axis open.
    heights: tuple[float, float] | None = None
    measures: tuple[float, float] | None = None

    @property
    def ends(self) -> tuple[float | None, ...]:
        """The least corner, then the greatest; None for those of an axis that is open."""
        others = [self.heights, self.measures] if self.measures else [self.heights]
        told = [each or (None, None) for each in others if each or self.measures]
        least, most = ([each[end] for each in told] for end in (0, 1))
        return self.west, self.south, *least, self.east, self.north, *most


def box_of(ends: Sequence[float | None]) -> Box:
    """Return the box between a least corner and a greatest, given one after the other.

    A corner has x and y, or z too, or z and m. None for both ends of z or m leaves the axis open.
    """
    if len(ends) not in (4, 6, 8):
        raise InvalidInput(
            f"a box has {len(ends)} ends: give the least corner, then the greatest, each of x and y, "
            "of x, y and z or of x, y, z and m"
        )
    if any(end is not None and math.isnan(end) for end in ends):
        raise InvalidInput("an end of a box is a number, not NaN")
    half = len(ends) // 2
    axes = list(zip(ends[:half], ends[half:], strict=True))
    (west, east), (south, north) = axes[:2]
    if west is None or east is None or south is None or north is None:
        raise InvalidInput(
            "x and y of a box are numbers: null stands for a z or an m, at both ends"
        )
    heights, measures = ([_closed(*ends) for ends in axes[2:]] + [None, None])[:2]
    return Box(west=west, south=south, east=east, north=north, heights=heights, measures=measures)


def _closed(least: float | None, most: float | None) -> tuple[float, float] | None:
    if least is None and most is None:
        return None
    if least is None or most is None:
        raise InvalidInput("a box has both ends of an axis or, with null for both, none")
    return least, most


def widths(west: Numbers, east: Numbers) -> Numbers:
    """Return how far it is from west to east, going east."""
    return np.where(east < west, east - west + _CIRCLE, east - west)


def meet(low: Numbers, high: Numbers, box: Box, *, earth: bool) -> npt.NDArray[np.bool_]:
    """Tell which boxes share a place with a box; one without an end, NaN, on an axis of it, none.

    A row each: x and y of the least corner and of the greatest, and z and m where the box has them.
    """
    west, east = low[:, 0], high[:, 0]
    beside = np.ones(len(low), np.bool_)
    for axis, ends in enumerate(((box.south, box.north), box.heights, box.measures), start=1):
        if ends is not None:
            beside &= (low[:, axis] <= ends[1]) & (high[:, axis] >= ends[0])
    if not earth:
        return np.asarray(beside & (west <= box.east) & (east >= box.west))
    width = float(widths(np.array(box.west), np.array(box.east)))
    after = np.mod(box.west - west, _CIRCLE) <= widths(west, east) + _SLACK
    before = np.mod(west - box.west, _CIRCLE) <= width + _SLACK
    return np.asarray(beside & (after | before))


def within(inner: Corners, outer: Corners, *, earth: bool) -> bool:
    """Tell whether a box lies within another; corners are x, y, z and m, NaN where one has none."""
    (low, high), (least, most) = inner, outer
    first = 1 if earth else 0
    # What is not told of an axis leaves it open.
    if (low[first:] < least[first:]).any() or (high[first:] > most[first:]).any():
        return False
    if not earth:
        return True
    [ours], [theirs] = widths(low[:1], high[:1]), widths(least[:1], most[:1])
    return bool(np.mod(low[0] - least[0], _CIRCLE) + ours <= theirs + _SLACK or theirs >= _CIRCLE)


def around(
    west: Numbers, width: Numbers, starts: npt.NDArray[np.intp] | None = None
) -> tuple[Numbers, Numbers]:
    """Return west and east of the arcs of each run, which begin at `starts`; of all without.

    Cut where longitudes jump, at 180, or on the other side of the earth, at 0: whichever is less.
    What crosses both cuts goes all around. An arc of NaN is nowhere.
    """
    first = np.zeros(1, np.intp) if starts is None else starts
    ends = [_cut(west, width, at, first) for at in (-180.0, 0.0)]
    (low, high), (other_low, other_high) = ends
    turned = (other_high - other_low) < (high - low)
    found_west = np.where(turned, _canonical(other_low), low)
    return found_west, np.where(turned, _canonical(other_high), high)


def _cut(
    west: Numbers, width: Numbers, at: float, starts: npt.NDArray[np.intp]
) -> tuple[Numbers, Numbers]:
    low = np.mod(west - at, _CIRCLE) + at
    # The last meridian is the first one: what ends there need not begin there.
    low = np.where((west == at + _CIRCLE) & (width == 0), west, low)
    high = low + width
    beyond = high > at + _CIRCLE
    low, high = np.where(beyond, at, low), np.where(beyond, at + _CIRCLE, high)
    return np.fmin.reduceat(low, starts), np.fmax.reduceat(high, starts)


def _canonical(longitude: Numbers) -> Numbers:
    return np.where(longitude > 180, longitude - _CIRCLE, longitude)


def text(box: Box) -> str:
    """Return a box as filters have it."""
    ends = ("null" if each is None else repr(each).removesuffix(".0") for each in box.ends)
    return f"box({', '.join(ends)})"
