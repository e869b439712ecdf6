"""Boxes around geometries in well-known binary (ISO: XY, XYZ, XYM, XYZM), a column at a time.

Nothing here calls itself and no count in the bytes is believed before there is room for what it
counts, so the worst that bytes can do is not to be a geometry.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import unpack_from
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icetree.codec.edges import Reach, reach
from icetree.spec.geo import Numbers, around, widths

_Places: TypeAlias = "npt.NDArray[np.int64]"
_Flags: TypeAlias = "npt.NDArray[np.bool_]"

_POINT, _LINE, _POLYGON, _LAST = 1, 2, 3, 7
#: Byte order and kind; a number of things; a coordinate.
_HEAD: Final = 5
_COUNT: Final = 4
_NUMBER: Final = 8
#: So few values are read one by one: a step for all of them costs as much as for many.
_FEW: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes:
    """A box around each value; NaN where a value has nothing on an axis, or is no geometry."""

    #: Least and greatest, a row each; x, y, z and m. On the earth x goes from west to east.
    least: Numbers
    most: Numbers
    #: Whether a value is a geometry; null is none.
    sound: _Flags
    earth: bool

    def whole(self) -> tuple[list[float | None], list[float | None]] | None:
        """Return the least corner and the greatest of a box around all; None where there is none."""
        if not len(self.sound) or np.isnan(self.least[:, :2]).all(axis=0).any():
            return None
        with np.errstate(invalid="ignore"):
            low, high = np.fmin.reduce(self.least), np.fmax.reduce(self.most)
            if self.earth:
                west, east = self.least[:, 0], self.most[:, 0]
                low[:1], high[:1] = around(west, widths(west, east))
        return _known(low), _known(high)


def _known(corner: Numbers) -> list[float | None]:
    return [None if np.isnan(each) else each for each in corner.tolist()]


def boxes(values: pa.Array, *, edges: str | None = None) -> Boxes:
    """Return the boxes of binary values; `edges` tells how a geography goes between two places."""
    binary = values.cast(pa.large_binary())
    offsets = np.frombuffer(binary.buffers()[1] or bytes(8), np.int64)[binary.offset :]
    offsets = offsets[: len(binary) + 1]
    content = binary.buffers()[2]
    raw = np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
    # Room for a number to be read past the end.
    raw = np.concatenate([raw, np.zeros(_NUMBER, np.uint8)])
    valid = binary.is_valid().to_numpy(zero_copy_only=False)
    runs = _Walk(raw, offsets[:-1].copy(), offsets[1:], valid).runs()
    # Bytes of all kinds are numbers; what comes of strange ones is NaN, which is nowhere.
    with np.errstate(all="ignore"):
        return _boxes(raw, runs, edges)


@dataclass(frozen=True, slots=True)
class _Runs:
    """Coordinates that follow each other in a value, by value."""

    sound: _Flags
    row: _Places
    at: _Places
    count: _Places
    has_z: _Flags
    has_m: _Flags
    big: _Flags
    #: Whether there is a line from each to the next.
    edged: _Flags


class _Walk:
    """Goes through all values side by side, a step being a geometry, a ring or a line of each."""

    def __init__(self, raw: Any, at: _Places, end: _Places, valid: _Flags) -> None:
        size = len(at)
        self.raw, self.at, self.end = raw, at, end
        self.sound = valid.copy()
        #: How many geometries, and how many rings of a polygon, are still to come.
        self.pending = np.ones(size, np.int64)
        self.rings = np.zeros(size, np.int64)
        self.has_z, self.has_m, self.big = (np.zeros(size, np.bool_) for _ in range(3))
        self.found: list[tuple[Any, ...]] = []

    def runs(self) -> _Runs:
        active = np.flatnonzero(self.sound)
        while len(active) > _FEW:
            inside = self.rings[active] > 0
            self._rings(active[inside])
            self._geometries(active[~inside])
            active = self._going_on(active)
        for row in active.tolist():
            self._alone(row)
        parts: list[Any] = [np.concatenate(each) for each in zip(*self.found, strict=True)]
        if not parts:
            parts = [np.zeros(0, np.int64)] * 3 + [np.zeros(0, np.bool_)] * 4
        kept = self.sound[parts[0]]
        order = np.argsort(parts[0][kept], kind="stable")
        sorted_parts: list[Any] = [each[kept][order] for each in parts]
        return _Runs(self.sound, *sorted_parts)

    def _going_on(self, rows: _Places) -> _Places:
        rows = rows[self.sound[rows]]
        done = (self.pending[rows] == 0) & (self.rings[rows] == 0)
        self._break(rows[done & (self.at[rows] != self.end[rows])])
        going: _Places = rows[~done]
        return going

    def _break(self, rows: _Places) -> None:
        self.sound[rows] = False

    def _room(self, rows: _Places, needed: Any) -> tuple[_Places, _Flags]:
        """Return the rows that have so many bytes left, and which of these are they."""
        fits = self.at[rows] + needed <= self.end[rows]
        self._break(rows[~fits])
        return rows[fits], fits

    def _words(self, rows: _Places, ahead: int) -> _Places:
        """Return the 32-bit number at some distance."""
        at = self.at[rows] + ahead
        word = np.zeros(len(rows), np.int64)
        for byte in range(4):
            shift = np.where(self.big[rows], 24 - 8 * byte, 8 * byte)
            word |= self.raw[at + byte].astype(np.int64) << shift
        return word

    def _rings(self, rows: _Places) -> None:
        rows, _ = self._room(rows, _COUNT)
        self.rings[rows] -= 1
        self._line(rows, self._words(rows, 0), _COUNT)

    def _line(self, rows: _Places, count: _Places, ahead: int) -> None:
        """Take so many coordinates that begin at some distance, with lines between them."""
        self._take(rows, count, ahead, edged=True)

    def _take(self, rows: _Places, count: _Places, ahead: int, *, edged: bool) -> None:
        width = _NUMBER * (2 + self.has_z[rows] + self.has_m[rows])
        rows, fits = self._room(rows, ahead + count * width)
        count, width = count[fits], width[fits]
        edges = np.full(len(rows), edged)
        facts = (self.has_z[rows], self.has_m[rows], self.big[rows])
        self.found.append((rows, self.at[rows] + ahead, count, *facts, edges))
        self.at[rows] += ahead + count * width

    def _geometries(self, rows: _Places) -> None:
        rows, _ = self._room(rows, _HEAD)
        order = self.raw[self.at[rows]]
        self._break(rows[order > 1])
        rows = rows[order <= 1]
        self.big[rows] = self.raw[self.at[rows]] == 0
        more, kind = np.divmod(self._words(rows, 1), 1000)
        known = (more <= 3) & (kind >= _POINT) & (kind <= _LAST)
        self._break(rows[~known])
        rows, more, kind = rows[known], more[known], kind[known]
        self.has_z[rows], self.has_m[rows] = more % 2 == 1, more >= 2
        self.pending[rows] -= 1
        is_point = kind == _POINT
        points = rows[is_point]
        self._take(points, np.ones(len(points), np.int64), _HEAD, edged=False)
        rows, fits = self._room(rows[~is_point], _HEAD + _COUNT)
        kind = kind[~is_point][fits]
        count = self._words(rows, _HEAD)
        is_line, is_polygon = kind == _LINE, kind == _POLYGON
        self._line(rows[is_line], count[is_line], _HEAD + _COUNT)
        for some, waiting, least in (
            (is_polygon, self.rings, _COUNT),
            (kind > _POLYGON, self.pending, _HEAD),
        ):
            counted, number = rows[some], count[some]
            counted, fits = self._room(counted, _HEAD + _COUNT + number * least)
            self.at[counted] += _HEAD + _COUNT
            waiting[counted] += number[fits]

    def _alone(self, row: int) -> None:
        """Go through the rest of one value."""
        runs = [(row, *run) for run in self._steps(row) if run[1]]
        if runs:
            self.found.append(tuple(map(np.array, zip(*runs, strict=True))))

    def _steps(self, row: int) -> Iterator[tuple[int, int, bool, bool, bool, bool]]:
        raw, end = memoryview(self.raw), int(self.end[row])
        at, pending, rings = (int(each[row]) for each in (self.at, self.pending, self.rings))
        has_z, has_m, big = (bool(each[row]) for each in (self.has_z, self.has_m, self.big))
        while pending or rings:
            kind, ahead = _LINE, _COUNT
            if rings:
                rings -= 1
            else:
                pending -= 1
                ahead = _HEAD + _COUNT
                if at + _HEAD > end or raw[at] > 1:
                    break
                big = raw[at] == 0
                more, kind = divmod(unpack_from(">I" if big else "<I", raw, at + 1)[0], 1000)
                if more > 3 or not _POINT <= kind <= _LAST:
                    break
                has_z, has_m = more % 2 == 1, more >= 2
            width = _NUMBER * (2 + has_z + has_m)
            if kind == _POINT:
                count, ahead = 1, _HEAD
            elif at + ahead > end:
                break
            else:
                [count] = unpack_from(">I" if big else "<I", raw, at + ahead - _COUNT)
            each = _COUNT if kind == _POLYGON else _HEAD if kind > _POLYGON else width
            if at + ahead + count * each > end:
                break
            at += ahead
            if kind <= _LINE:
                yield at, count, has_z, has_m, big, kind == _LINE
                at += count * width
            elif kind == _POLYGON:
                rings = count
            else:
                pending += count
        else:
            self.sound[row] = at == end
            return
        self.sound[row] = False


def _boxes(raw: Any, runs: _Runs, edges: str | None) -> Boxes:
    size = len(runs.sound)
    least, most = np.full((size, 4), np.nan), np.full((size, 4), np.nan)
    if runs.count.sum():
        counted = np.flatnonzero(runs.count)
        row, at, count = runs.row[counted], runs.at[counted], runs.count[counted]
        has_z, has_m, big = (each[counted] for each in (runs.has_z, runs.has_m, runs.big))
        firsts = np.cumsum(count) - count
        within = np.arange(int(count.sum())) - np.repeat(firsts, count)
        width = _NUMBER * (2 + has_z + has_m)
        places = np.repeat(at, count) + within * np.repeat(width, count)
        axes = [
            np.zeros(len(count), np.int64),
            np.full(len(count), _NUMBER),
            np.where(has_z, 2 * _NUMBER, -1),
            np.where(has_m, width - _NUMBER, -1),
        ]
        flips = np.repeat(big, count)
        numbers = [_numbers(raw, places, np.repeat(each, count), flips) for each in axes]
        starts = np.flatnonzero(np.diff(row, prepend=-1))
        rows, first_of_row = row[starts], firsts[starts]
        for axis, values in enumerate(numbers):
            least[rows, axis] = np.fmin.reduceat(values, first_of_row)
            most[rows, axis] = np.fmax.reduceat(values, first_of_row)
        if edges is not None:
            edged = np.repeat(runs.edged[counted], count)
            last = within == np.repeat(count - 1, count)
            found: Reach = reach(numbers[0], numbers[1], edged & ~last, firsts, edges)
            least[rows, 0], most[rows, 0] = around(found.west, found.width, first_of_row)
            least[rows, 1] = np.fmin.reduceat(found.south, first_of_row)
            most[rows, 1] = np.fmax.reduceat(found.north, first_of_row)
    nowhere = np.isnan(least[:, :2]).any(axis=1) & (edges is not None)
    least[nowhere, 0], most[nowhere, 0] = np.nan, np.nan
    return Boxes(least=least, most=most, sound=runs.sound, earth=edges is not None)


def _numbers(raw: Any, places: _Places, ahead: _Places, flips: _Flags) -> Numbers:
    """Return the numbers at some distance from places; NaN where the distance is negative."""
    there = ahead >= 0
    if not there.any():
        return np.full(len(places), np.nan)
    # One number begins at every byte.
    every: Any = np.ndarray((len(raw) - _NUMBER + 1,), "<f8", raw, strides=(1,))
    found: Numbers = every[np.where(there, places + ahead, 0)]
    found = np.where(flips, found.byteswap(), found)
    found[~there] = np.nan
    return found
