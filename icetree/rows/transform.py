"""Iceberg's partition transforms over whole columns."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
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

from icetree.errors import InvalidInput, Unsupported
from icetree.rows.schema import plain
from icetree.spec.types import bounds_type

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
_DAY_SECONDS: Final = 86_400


def transformed(values: pa.Array, transform: Transform[Any, Any], source: IcebergType) -> pa.Array:
    """Return the transform of each value, typed as bounds of it are; null stays null."""
    values = plain(values)
    match transform:
        case IdentityTransform():
            return values
        case VoidTransform():
            return pa.nulls(len(values), bounds_type(source) or pa.null())
        case BucketTransform():
            _require_int(transform.num_buckets, transform)
            return _bucket(values, transform, source)
        case TruncateTransform():
            _require_int(transform.width, transform)
            return _truncate(values, transform, source)
        case YearTransform() | MonthTransform() | DayTransform() | HourTransform():
            return _period(values, transform, source)
    raise Unsupported(f"the transform {transform} is not known here: write with an engine")


def _require_int(number: int, transform: Transform[Any, Any]) -> None:
    if not 0 < number < 2**31:
        raise InvalidInput(f"{transform}: its number must be from 1 to {2**31 - 1}")


def _again(numbers: npt.NDArray[Any], values: pa.Array, type: pa.DataType) -> pa.Array:
    """Return numbers as a column that is null where the values are."""
    nulls = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    return pa.array(numbers, mask=nulls).cast(type)


def _longs(values: pa.Array) -> _Longs:
    """Return whole numbers, dates and times as what they count; null is 0."""
    if not pa.types.is_integer(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    found: _Longs = pc.fill_null(values, 0).cast(pa.int64()).to_numpy()
    return found


def _per_distinct(
    values: pa.Array, transform: Transform[Any, Any], source: IcebergType, type: pa.DataType
) -> pa.Array:
    """Transform each distinct value once, for types whose transform is not plain arithmetic."""
    encoded = values.dictionary_encode()
    one = transform.transform(source)
    try:
        made = pa.array([one(value) for value in encoded.dictionary.to_pylist()], type)
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"{transform} of a value is not {source}: {error}") from None
    return made.take(encoded.indices)


# --- bucket --------------------------------------------------------------------------------


def _bucket(
    values: pa.Array, transform: BucketTransform[Any], source: IcebergType
) -> pa.Int32Array:
    if isinstance(source, _LONGS):
        longs = _longs(values)
        if isinstance(source, _NANOS):
            longs = np.floor_divide(longs, 1000)
        hashes = _hash_longs(longs)
    elif isinstance(source, _BYTES):
        hashes = _hash_bytes(values)
    else:
        return _per_distinct(values, transform, source, pa.int32())
    buckets = (hashes & np.uint32(0x7FFFFFFF)) % np.uint32(transform.num_buckets)
    return _again(buckets.astype(np.int32), values, pa.int32())


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


def _hash_longs(values: _Longs) -> _Words:
    """Return 32-bit Murmur3, seed 0, of each number's eight bytes, lowest first."""
    words = np.ascontiguousarray(values.astype("<i8")).view("<u4").reshape(-1, 2)
    hashes: _Words = np.zeros(len(values), np.uint32)
    for at in (0, 1):
        hashes = _absorb(hashes, words[:, at])
    return _finish(hashes, np.full(len(values), 8, np.uint32))


def _hash_bytes(values: pa.Array) -> _Words:
    """Return 32-bit Murmur3, seed 0, of each value's bytes; one step a word, not a value."""
    binary = values.cast(pa.binary()).cast(pa.large_binary())
    offsets = np.frombuffer(binary.buffers()[1], np.int64)[binary.offset :][: len(binary) + 1]
    content = binary.buffers()[2]
    raw = np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
    # Room for the last word to be read past the end.
    raw = np.concatenate([raw, np.zeros(4, np.uint8)])
    starts, lengths = offsets[:-1], np.diff(offsets)
    hashes = np.zeros(len(binary), np.uint32)
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


# --- truncate ------------------------------------------------------------------------------


def _truncate(values: pa.Array, transform: TruncateTransform[Any], source: IcebergType) -> pa.Array:
    width = transform.width
    match source:
        case IntegerType() | LongType():
            longs = _longs(values)
            floors = longs - np.mod(longs, width)
            # Below the least int the format wraps around, as its reference does.
            small = floors.astype(np.int32) if isinstance(source, IntegerType) else floors
            return _again(small, values, values.type)
        case StringType():
            return pc.utf8_slice_codeunits(values, 0, width)
        case BinaryType():
            return pc.binary_slice(values, 0, width)
        case DecimalType():
            return _per_distinct(values, transform, source, values.type)
    raise Unsupported(f"{transform} does not take {source}")


# --- periods -------------------------------------------------------------------------------


def _period(values: pa.Array, transform: Transform[Any, Any], source: IcebergType) -> pa.Array:
    counts = _longs(values)
    if isinstance(source, DateType):
        days, hours = counts, counts * 24
    else:
        a_second = 1_000_000_000 if isinstance(source, _NANOS) else 1_000_000
        days = np.floor_divide(counts, a_second * _DAY_SECONDS)
        hours = np.floor_divide(counts, a_second * 3600)
    match transform:
        case DayTransform():
            return _again(days.astype(np.int32), values, pa.int32()).cast(pa.date32())
        case HourTransform():
            found = hours
        case MonthTransform():
            found = days.astype("M8[D]").astype("M8[M]").astype(np.int64)
        case _:
            found = days.astype("M8[D]").astype("M8[Y]").astype(np.int64)
    return _again(found.astype(np.int32), values, pa.int32())
