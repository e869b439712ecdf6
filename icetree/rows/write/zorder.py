"""Z-order: rows that are near in several columns at once stand near each other.

Each column's values become ranks among a sample, so that a column of few values or of a narrow
range counts as much as any other. The bits of the ranks are interleaved to one number, by which
rows are sorted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icetree.errors import InvalidInput

Words: TypeAlias = npt.NDArray[np.uint64]

#: As many columns as there are bits for with four each.
MOST_COLUMNS: Final = 16
_MOST_BITS: Final = 16
_WORD_BITS: Final = 64
_SIGN: Final = np.uint64(1 << 63)
#: Texts and bytes count with as many of their first bytes.
_PREFIX: Final = 8


def ordinals(values: pa.Array) -> Words:
    """Return numbers that are in the order of the values, nulls least and NaN greatest.

    Values that differ may have one number: texts that differ after the eighth byte, decimals of
    more than 18 digits that are nearly equal.
    """
    type = values.type
    if isinstance(type, pa.BaseExtensionType):
        return ordinals(values.storage)
    if pa.types.is_boolean(type):
        return _numbers(values.cast(pa.int64()))
    if pa.types.is_integer(type) or pa.types.is_temporal(type):
        return _numbers(_whole(values))
    if pa.types.is_floating(type):
        return _floats(values.cast(pa.float64()))
    if pa.types.is_decimal(type):
        return _decimals(values.cast(pa.decimal128(type.precision, type.scale)))
    if pa.types.is_fixed_size_binary(type) or pa.types.is_string(type) or pa.types.is_binary(type):
        return _prefixes(values)
    raise InvalidInput(f"rows cannot be in z-order by a column of type {type}: choose others")


@dataclass(frozen=True, slots=True, kw_only=True)
class ZOrder:
    """Numbers by which rows are in z-order, once it has been fitted to a sample of them."""

    #: For each column, numbers as `ordinals` gives them, between which values have one rank.
    bounds: tuple[Words, ...]

    @classmethod
    def fitted(cls, sample: Sequence[pa.Array]) -> ZOrder:
        """Return an order for rows like those of a sample, given by its columns."""
        if not 1 <= len(sample) <= MOST_COLUMNS:
            raise InvalidInput(
                f"z-order is by 1 to {MOST_COLUMNS} columns, not {len(sample)}: choose fewer"
            )
        most = (1 << _bits(len(sample))) - 1
        return cls(bounds=tuple(_quantiles(ordinals(each), most) for each in sample))

    def numbers(self, columns: Sequence[pa.Array]) -> Words:
        """Return a number for each row; sorted by them, rows are in z-order."""
        bits = _bits(len(self.bounds))
        return interleaved(
            [
                _ranks(ordinals(values), bounds, bits)
                for values, bounds in zip(columns, self.bounds, strict=True)
            ],
            bits,
        )


def interleaved(ranks: Sequence[Words], bits: int) -> Words:
    """Return the bits of several numbers in turn, highest first, as one."""
    found = np.zeros(len(ranks[0]), np.uint64)
    one = np.uint64(1)
    for bit in range(bits - 1, -1, -1):
        for each in ranks:
            found = (found << one) | ((each >> np.uint64(bit)) & one)
    return found


def _bits(columns: int) -> int:
    return min(_MOST_BITS, _WORD_BITS // columns)


def _quantiles(numbers: Words, most: int) -> Words:
    """Return numbers that part others like these evenly, at most so many of them."""
    if not len(numbers):
        return numbers
    at = np.linspace(0, len(numbers) - 1, min(most, len(numbers))).astype(np.int64)
    return np.unique(np.sort(numbers)[at])


def _ranks(numbers: Words, bounds: Words, bits: int) -> Words:
    """Return each number's place among the bounds, spread over all that the bits can tell."""
    place = np.searchsorted(bounds, numbers, side="right").astype(np.uint64)
    return place * np.uint64((1 << bits) - 1) // np.uint64(max(len(bounds), 1))


def _whole(values: pa.Array) -> pa.Array:
    if pa.types.is_date32(values.type) or pa.types.is_time32(values.type):
        values = values.cast(pa.int32())
    return values.cast(pa.int64())


def _numbers(values: pa.Array) -> Words:
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return _nulls_least(numbers.view(np.uint64) ^ _SIGN, values)


def _floats(values: pa.Array) -> Words:
    """Return numbers in the order of floats: those below zero are stored the other way round."""
    floats = values.fill_null(0).to_numpy(zero_copy_only=False)
    floats = np.where(np.isnan(floats), np.nan, floats)  # all NaN alike, and the greatest
    bits = np.ascontiguousarray(floats, np.float64).view(np.uint64)
    return _nulls_least(np.where(bits & _SIGN, ~bits, bits | _SIGN), values)


def _decimals(values: pa.Array) -> Words:
    filled = values.fill_null(pa.scalar(0, values.type))
    _, buffer = filled.buffers()
    start, stop = 2 * filled.offset, 2 * (filled.offset + len(filled))
    words = np.frombuffer(buffer, np.int64)[start:stop]
    low, high = np.ascontiguousarray(words[::2]), words[1::2]
    if values.type.precision <= 18:
        return _nulls_least(low.view(np.uint64) ^ _SIGN, values)
    # A float cannot tell the low word where the high one fills it.
    rest = np.where(np.abs(high) < 2**52, low.view(np.uint64).astype(np.float64), 0.0)
    return _floats(pa.array(high.astype(np.float64) * 2.0**64 + rest, mask=_is_null(values)))


def _prefixes(values: pa.Array) -> Words:
    """Return the first bytes as a number, shorter ones filled up with zeros."""
    filled = values.cast(pa.binary()).cast(pa.large_binary()).fill_null(b"")
    _, offsets, content = filled.buffers()
    count = len(filled)
    ends = np.frombuffer(offsets, np.int64)[filled.offset : filled.offset + count + 1]
    if content is None or not count or ends[-1] == ends[0]:
        return np.zeros(count, np.uint64)
    at = ends[:-1, None] + np.arange(_PREFIX)
    inside = at < ends[1:, None]
    letters = np.frombuffer(content, np.uint8)[np.where(inside, at, ends[0])]
    letters = np.ascontiguousarray(np.where(inside, letters, 0), np.uint8)
    return letters.view(">u8").reshape(-1).astype(np.uint64)


def _nulls_least(numbers: Words, values: pa.Array) -> Words:
    return np.where(_is_null(values), np.uint64(0), numbers)


def _is_null(values: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = values.is_null().to_numpy(zero_copy_only=False)
    return found
