"""How far the edges of geographies reach: the short way between two places leaves their latitudes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from icetree.spec.geo import Numbers
from icetree.spec.schema.types import SPHERICAL

#: Between places so far apart in longitude the way may lead over either pole.
_FAR: Final = {True: 180.0 - 1e-9, False: 170.0}
#: Ways on an ellipsoid leave those on a sphere by less, in degrees.
_ASIDE: Final = {True: 1e-9, False: 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The arc of longitudes and the range of latitudes that each place reaches with its edge."""

    west: Numbers
    width: Numbers
    south: Numbers
    north: Numbers


def reach(
    x: Numbers,
    y: Numbers,
    has_edge: npt.NDArray[np.bool_],
    firsts: npt.NDArray[np.int64],
    edges: str,
) -> Reach:
    """Return what places reach, the marked ones by an edge to the next; lines begin at `firsts`.

    Never less than what is there. A line that goes around the earth has a pole within.
    """
    x = np.where(np.abs(x) <= 180, x, np.mod(x + 180.0, 360.0) - 180.0)
    y = np.clip(y, -90.0, 90.0)
    nowhere = np.isnan(x) | np.isnan(y)
    found = Reach(
        west=np.where(nowhere, np.nan, x), width=np.zeros(len(x)), south=y.copy(), north=y.copy()
    )
    at = np.flatnonzero(has_edge)
    if not len(at):
        return found
    step = np.zeros(len(x))
    step[at] = np.mod(x[at + 1] - x[at] + 180.0, 360.0) - 180.0
    found.west[at] = np.where(step[at] < 0, x[at] + step[at], x[at])
    found.width[at] = np.abs(step[at])
    sphere = edges == SPHERICAL
    low, high = _bulge(x[at], y[at], x[at + 1], y[at + 1])
    found.south[at] = np.fmax(np.fmin(found.south[at], low - _ASIDE[sphere]), -90.0)
    found.north[at] = np.fmin(np.fmax(found.north[at], high + _ASIDE[sphere]), 90.0)
    turns = np.abs(np.add.reduceat(np.nan_to_num(step), firsts)) > 180.0
    lines = np.repeat(turns, np.diff(firsts, append=len(x)))
    over = lines & has_edge
    over[at] |= np.abs(step[at]) >= _FAR[sphere]
    found.south[over], found.north[over] = -90.0, 90.0
    found.width[over] = 360.0
    return found


def _bulge(x: Numbers, y: Numbers, to_x: Numbers, to_y: Numbers) -> tuple[Numbers, Numbers]:
    """Return the least and the greatest latitude on the great circles between places."""
    one, other = _on_sphere(x, y), _on_sphere(to_x, to_y)
    across = np.cross(one, other)
    top = np.degrees(np.arctan2(np.hypot(across[:, 0], across[:, 1]), np.abs(across[:, 2])))
    # Whether the way rises where it begins, and where it ends.
    rises, falls = np.cross(across, one)[:, 2], np.cross(across, other)[:, 2]
    low, high = np.fmin(y, to_y), np.fmax(y, to_y)
    high = np.where((rises > 0) & (falls < 0), np.fmax(high, top), high)
    low = np.where((rises < 0) & (falls > 0), np.fmin(low, -top), low)
    return low, high


def _on_sphere(x: Numbers, y: Numbers) -> npt.NDArray[np.float64]:
    longitude, latitude = np.radians(x), np.radians(y)
    flat = np.cos(latitude)
    return np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=1)
