"""Buckets: the hash that the format gives values, of one column or of several.

Of several columns, each is hashed with the hash of those before as its seed, so that a bucket over one
column is the format's own; a null leaves the hash as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from icetree.errors import Unsupported

_Words = npt.NDArray[np.uint32]
_Longs = npt.NDArray[np.int64]

_LONGS: Final = (
    IntegerType,
    LongType,
    DateType,
    TimeType,
    TimestampType,
    TimestamptzType,
    TimestampNanoType,
    TimestamptzNanoType,
)
_NANOS: Final = (TimestampNanoType, TimestamptzNanoType)
_BYTES: Final = (StringType, BinaryType, FixedType, UUIDType)


def buckets(columns: Sequence[tuple[pa.Array, IcebergType]], count: int) -> pa.Int32Array:
    """Return the bucket of each row, of so many; null where all of its values are null."""
    hashes: _Words = np.zeros(len(columns[0][0]), np.uint32)
    nothing = np.ones(len(hashes), np.bool_)
    for values, source in columns:
        found = _hashes(values, source, hashes)
        is_null = values.is_null().to_numpy(zero_copy_only=False)
        hashes = np.where(is_null, hashes, found).astype(np.uint32)
        nothing &= is_null
    numbers = ((hashes & np.uint32(0x7FFFFFFF)) % np.uint32(count)).astype(np.int32)
    return pa.array(numbers, mask=nothing if nothing.any() else None)


def longs_of(values: pa.Array) -> _Longs:
    """Return whole numbers, dates and times as what they count; null is 0."""
    if not pa.types.is_integer(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    found: _Longs = pc.fill_null(values, 0).cast(pa.int64()).to_numpy()
    return found


def _hashes(values: pa.Array, source: IcebergType, seeds: _Words) -> _Words:
    if isinstance(source, _LONGS):
        longs = longs_of(values)
        if isinstance(source, _NANOS):
            longs = np.floor_divide(longs, 1000)
        return _hash_longs(longs, seeds)
    if isinstance(source, DecimalType):
        return _hash_bytes(_least_bytes(values), seeds)
    if isinstance(source, _BYTES):
        return _hash_bytes(values, seeds)
    raise Unsupported(f"no bucket is of values of type {source}")


def _least_bytes(values: pa.Array) -> pa.Array:
    """Return decimals as the fewest bytes that hold their digits, the highest first."""
    encoded = values.dictionary_encode()
    made = [_unscaled(each) for each in encoded.dictionary.to_pylist()]
    return pa.array(made, pa.binary()).take(encoded.indices)


def _unscaled(value: Decimal) -> bytes:
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits)))
    number = -number if sign else number
    bits = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def _rotate(words: _Words, by: int) -> _Words:
    return words << np.uint32(by) | words >> np.uint32(32 - by)


def _mixed(words: _Words) -> _Words:
    return _rotate(words * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)


def _absorb(hashes: _Words, words: _Words) -> _Words:
    return _rotate(hashes ^ _mixed(words), 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _finish(hashes: _Words, lengths: _Words) -> _Words:
    hashes = hashes ^ lengths
    hashes = (hashes ^ hashes >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ hashes >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return hashes ^ hashes >> np.uint32(16)


def _hash_longs(values: _Longs, seeds: _Words) -> _Words:
    """Return 32-bit Murmur3 of each number's eight bytes, lowest first."""
    words = np.ascontiguousarray(values.astype("<i8")).view("<u4").reshape(-1, 2)
    hashes = seeds
    for at in (0, 1):
        hashes = _absorb(hashes, words[:, at])
    return _finish(hashes, np.full(len(values), 8, np.uint32))


def _hash_bytes(values: pa.Array, seeds: _Words) -> _Words:
    """Return 32-bit Murmur3 of each value's bytes; one step a word, not a value."""
    binary = values.cast(pa.binary()).cast(pa.large_binary())
    offsets = np.frombuffer(binary.buffers()[1], np.int64)[binary.offset :][: len(binary) + 1]
    content = binary.buffers()[2]
    raw = np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
    # Room for the last word to be read past the end.
    raw = np.concatenate([raw, np.zeros(4, np.uint8)])
    starts, lengths = offsets[:-1], np.diff(offsets)
    hashes = seeds.copy()
    rows: npt.NDArray[np.intp] = np.arange(len(binary))
    for at in range(0, int(lengths.max(initial=0)) // 4 * 4, 4):
        rows = rows[lengths[rows] >= at + 4]
        hashes[rows] = _absorb(hashes[rows], _word(raw, starts[rows] + at, 4))
    for rest in (1, 2, 3):
        rows = np.flatnonzero(lengths % 4 == rest)
        hashes[rows] ^= _mixed(_word(raw, starts[rows] + lengths[rows] - rest, rest))
    return _finish(hashes, lengths.astype(np.uint32))


def _word(raw: npt.NDArray[np.uint8], at: _Longs, size: int) -> _Words:
    word = np.zeros(len(at), np.uint32)
    for byte in range(size):
        word |= raw[at + byte].astype(np.uint32) << np.uint32(8 * byte)
    return word
