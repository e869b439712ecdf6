"""Numbers that are told by how they differ (DELTA_BINARY_PACKED), where lengths of texts are so told."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from icetree.codec.parquet.thrift import Broken, Data, read_unsigned

_WIDEST: Final = 32
#: So many miniblocks are unpacked at once: a bit takes some bytes on its way.
_AT_ONCE: Final = 2048


def count_of(data: Data, at: int, most: int) -> tuple[int, int, int, int]:
    """Return how many numbers are in a block and a miniblock, how many in all, and where the first is."""
    block, at = read_unsigned(data, at)
    parts, at = read_unsigned(data, at)
    count, at = read_unsigned(data, at)
    if not parts or block % parts or block // parts % 32 or not block:
        raise Broken("lengths come in blocks of a size that cannot be")
    if count > most:
        raise Broken(f"a page of {most} values has {count} lengths")
    return block, block // parts, count, at


def read_deltas(data: Data, at: int, most: int) -> tuple[npt.NDArray[np.int64], int]:
    """Return all numbers, which are `most` at the most, and where they end."""
    block, part, count, at = count_of(data, at, most)
    first, at = read_unsigned(data, at)
    if not count:
        return np.empty(0, np.int64), at
    steps = np.zeros(count, np.int64)
    steps[0] = _signed(first)
    #: By width, where miniblocks are in the bytes and what number they begin with.
    packed: dict[int, list[tuple[int, int]]] = {}
    for start in range(1, count, block):
        least, at = read_unsigned(data, at)
        widths_at, at = at, at + block // part
        end = min(start + block, count)
        steps[start:end] = _signed(least)
        for number in range(start, end, part):
            width = _byte(data, widths_at + (number - start) // part)
            if width:
                packed.setdefault(width, []).append((at, number))
                at += width * part // 8
    if at > len(data):
        raise Broken("lengths end in the middle")
    for width, places in packed.items():
        _add_packed(steps, data, width, part, places)
    # As wide as lengths are, whatever overflows on the way.
    return np.cumsum(steps).astype(np.int32).astype(np.int64), at


def _add_packed(
    steps: npt.NDArray[np.int64],
    data: Data,
    width: int,
    part: int,
    places: list[tuple[int, int]],
) -> None:
    """Add what miniblocks of one width hold to the steps that they begin at."""
    if width > _WIDEST:
        raise Broken(f"a length takes {width} bits")
    content = np.frombuffer(data, np.uint8)
    weights = np.left_shift(np.int64(1), np.arange(width, dtype=np.int64))
    # Miniblocks have any size: eight numbers take a whole number of bytes.
    every = np.array(places, np.int64)
    eighths = np.arange(part // 8)
    for first in range(0, len(places), max(1, _AT_ONCE * 32 // part)):
        some = every[first : first + max(1, _AT_ONCE * 32 // part)]
        for run in np.array_split(eighths, max(1, part // (_AT_ONCE * 32))):
            begins = (some[:, :1] + run * width).reshape(-1)
            numbers = (some[:, 1:] + run * 8).reshape(-1)
            bits = np.unpackbits(
                content[begins[:, None] + np.arange(width)], axis=1, bitorder="little"
            )
            found = (bits.reshape(-1, 8, width) @ weights).reshape(-1)
            where = (numbers[:, None] + np.arange(8)).reshape(-1)
            held = where < len(steps)
            steps[where[held]] += found[held]


def _byte(data: Data, at: int) -> int:
    if at >= len(data):
        raise Broken("lengths end in the middle")
    return data[at]


def _signed(number: int) -> int:
    value = (number >> 1) ^ -(number & 1)
    return (value + 2**63) % 2**64 - 2**63
