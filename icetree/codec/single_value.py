"""Values as v1-v3 metadata stores them, into typed Arrow arrays, a column at a time.

Bounds use Iceberg's binary single-value serialization. It does not say the type at write time,
so a value as wide as a narrower type that may have been promoted to today's is read as such.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
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

from icetree.errors import CorruptTable
from icetree.spec.schema.types import GEO_BOUND, VARIANT_BOUND, VariantType, bounds_type

_DAY_US: Final = 86_400_000_000
_DAY_NS: Final = _DAY_US * 1000

#: Stored width -> (stored dtype, factor to today's unit).
_NUMBERS: Final[dict[type[IcebergType], dict[int, tuple[str, int]]]] = {
    IntegerType: {4: ("<i4", 1)},
    LongType: {8: ("<i8", 1), 4: ("<i4", 1)},
    FloatType: {4: ("<f4", 1)},
    DoubleType: {8: ("<f8", 1), 4: ("<f4", 1)},
    DateType: {4: ("<i4", 1)},
    TimeType: {8: ("<i8", 1)},
    TimestampType: {8: ("<i8", 1), 4: ("<i4", _DAY_US)},
    TimestamptzType: {8: ("<i8", 1)},
    TimestampNanoType: {8: ("<i8", 1), 4: ("<i4", _DAY_NS)},
    TimestamptzNanoType: {8: ("<i8", 1)},
}
_MAX_LONG: Final = 2**63 - 1

#: Avro types whose plain values may stand for an Iceberg type in a partition tuple.
_INTEGERS: Final = frozenset({"int", "long"})
_REALS: Final = frozenset({"float", "double"})
_BYTES: Final = frozenset({"bytes", "fixed"})


def decode_bounds(stored: pa.Array, type: IcebergType, *, file: str, what: str) -> pa.Array:
    """Return the values of a binary array; null stays null, and NaN becomes null.

    `what` names the values in the error that bytes of no possible width or meaning raise.
    """
    try:
        return _decode_present(stored, type)
    except (ValueError, pa.ArrowException) as error:
        raise CorruptTable(file, f"{what} is not a serialized {type}: {error}") from error


def decode_pair(
    lower: pa.Array, upper: pa.Array, type: IcebergType, *, file: str, what: str
) -> tuple[pa.Array, pa.Array]:
    """Return lower and upper bounds; where one of them is NaN, neither is relied on."""
    low = decode_bounds(lower, type, file=file, what=f"the lower bound of {what}")
    high = decode_bounds(upper, type, file=file, what=f"the upper bound of {what}")
    if not isinstance(type, FloatType | DoubleType):
        return low, high
    is_nan = pc.or_(
        pc.and_(pc.is_null(low), pc.is_valid(lower)),
        pc.and_(pc.is_null(high), pc.is_valid(upper)),
    )
    unknown = pa.scalar(None, low.type)
    return pc.if_else(is_nan, unknown, low), pc.if_else(is_nan, unknown, high)


def decode_plain(
    values: list[Any], avro: str, type: IcebergType, *, file: str, what: str
) -> pa.Array:
    """Return the values of a partition field, read from Avro type `avro` without logical types.

    NaN stays NaN: it is a partition of its own.
    """
    try:
        return _plain(values, avro, type)
    except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
        raise CorruptTable(file, f"{what} is not a {type} stored as {avro}: {error}") from error


def plain_array(values: list[Any], *, file: str, what: str) -> pa.Array:
    """Return the values of a partition field whose type nobody knows, as they are stored."""
    try:
        return pa.array(values)
    except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
        raise CorruptTable(file, f"{what} holds values of several types: {error}") from error


def scatter(values: pa.Array, rows: np.ndarray[Any, Any], size: int) -> pa.Array:
    """Return an array of `size` with `values` at `rows` and null elsewhere."""
    if len(values) == size and size and rows[0] == 0 and rows[-1] == size - 1:
        return values
    at = np.full(size, -1, np.int64)
    at[rows] = np.arange(len(rows))
    return values.take(pa.array(at, mask=at < 0))


def _decode_present(stored: pa.Array, type: IcebergType) -> pa.Array:
    if not stored.null_count:
        return _decode(stored, type)
    present = pc.is_valid(stored)
    rows = np.flatnonzero(present.to_numpy(zero_copy_only=False))
    return scatter(_decode(stored.filter(present), type), rows, len(stored))


def _decode(stored: pa.Array, type: IcebergType) -> pa.Array:
    match type:
        case StringType():
            return stored.cast(pa.string())
        case BinaryType():
            return stored
        case FixedType():
            return _padded(stored, len(type))
        case UUIDType():
            return _fixed_binary(_matrix(stored, 16), 16)
        case DecimalType():
            return _decimals(stored, type)
        case BooleanType():
            return pa.array(_matrix(stored, 1)[:, 0] != 0)
        case GeometryType() | GeographyType():
            return _points(stored)
        case VariantType():
            return stored.cast(VARIANT_BOUND)
        case _ if type.__class__ in _NUMBERS:
            return _numbers(stored, type)
        case _:
            raise ValueError("the type has no bounds")


def _plain(values: list[Any], avro: str, type: IcebergType) -> pa.Array:
    bounds = bounds_type(type)
    match type:
        case DecimalType() if avro in _BYTES:
            return _decode_present(pa.array(values, pa.binary()), type)
        case UUIDType() | FixedType() | BinaryType() if avro in _BYTES:
            return pa.array(values, bounds)
        case StringType() if avro == "string":
            return pa.array(values, bounds)
        case BooleanType() if avro == "boolean":
            return pa.array(values, bounds)
        case FloatType() | DoubleType():
            if avro not in _REALS:
                raise ValueError("the types do not agree")
            return pa.array(values, bounds)
        case TimestampType() | TimestampNanoType() if avro == "int":
            factor = _NUMBERS[type.__class__][4][1]
            return pc.multiply_checked(pa.array(values, pa.int64()), factor).cast(bounds)
        case IntegerType() | DateType() if avro in _INTEGERS:
            return pa.array(values, pa.int32()).cast(bounds)
        case _ if avro in _INTEGERS and type.__class__ in _NUMBERS:
            return pa.array(values, pa.int64()).cast(bounds)
        case _:
            raise ValueError("the types do not agree")


def _lengths(stored: pa.Array) -> np.ndarray[Any, Any]:
    return pc.binary_length(stored).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _matrix(stored: pa.Array, width: int) -> np.ndarray[Any, Any]:
    """Return bytes of equal width as a matrix; the array has no nulls."""
    wrong = _lengths(stored) != width
    if wrong.any():
        raise ValueError(f"{_lengths(stored)[wrong][0]} bytes wide, not {width}")
    _, offsets, data = stored.buffers()
    if not len(stored):
        return np.empty((0, width), np.uint8)
    start = int(np.frombuffer(offsets, np.int32)[stored.offset])
    flat = np.frombuffer(data, np.uint8)[start : start + len(stored) * width]
    return flat.reshape(len(stored), width)


def _numbers(stored: pa.Array, type: IcebergType) -> pa.Array:
    widths = _NUMBERS[type.__class__]
    target = next(iter(widths.values()))[0]
    values = np.empty(len(stored), target)
    lengths = _lengths(stored)
    for width in np.unique(lengths).tolist():
        if width not in widths:
            raise ValueError(f"{width} bytes wide")
        dtype, factor = widths[width]
        at = lengths == width
        found = np.frombuffer(_matrix(stored.filter(pa.array(at)), width).tobytes(), dtype)
        found = found.astype(target)
        if factor != 1:
            # Days beyond the ends of the type they were promoted to: as `spec.entry.stats.widened` has it.
            last = _MAX_LONG // factor
            ends = np.where(np.abs(found) > last, np.sign(found) * _MAX_LONG, 0)
            found = np.where(ends == 0, np.clip(found, -last, last) * factor, ends)
        values[at] = found
    array = pa.array(values, from_pandas=True)
    return array.cast(bounds_type(type))


def _padded(stored: pa.Array, width: int) -> pa.Array:
    # Writers truncate bounds of fixed types too. Zeros are the least continuation of a prefix:
    # a lower bound stays below, and an upper bound, which was rounded up, stays above.
    rows = np.zeros((len(stored), width), np.uint8)
    lengths = _lengths(stored)
    for length in np.unique(lengths).tolist():
        if length > width:
            raise ValueError(f"{length} bytes wide")
        at = lengths == length
        rows[at, :length] = _matrix(stored.filter(pa.array(at)), length)
    return _fixed_binary(rows, width)


def _fixed_binary(rows: np.ndarray[Any, Any], width: int) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(width), len(rows), [None, pa.py_buffer(rows.tobytes())])


def _decimals(stored: pa.Array, type: DecimalType) -> pa.Array:
    rows = np.zeros((len(stored), 16), np.uint8)
    lengths = _lengths(stored)
    for length in np.unique(lengths).tolist():
        if not 0 < length <= 16:
            raise ValueError(f"{length} bytes wide")
        at = lengths == length
        found = _matrix(stored.filter(pa.array(at)), length)
        rows[at, 16 - length :] = found
        rows[at, : 16 - length] = np.where(found[:, :1] >= 0x80, 0xFF, 0)
    little_endian = np.ascontiguousarray(rows[:, ::-1])
    array = pa.Array.from_buffers(
        bounds_type(type), len(stored), [None, pa.py_buffer(little_endian.tobytes())]
    )
    array.validate(full=True)
    return array


def _points(stored: pa.Array) -> pa.Array:
    points = np.full((len(stored), 4), np.nan)
    lengths = _lengths(stored)
    for length in np.unique(lengths).tolist():
        if length not in (16, 24, 32):
            raise ValueError(f"{length} bytes wide")
        at = lengths == length
        found = np.frombuffer(_matrix(stored.filter(pa.array(at)), length).tobytes(), "<f8")
        points[at, : length // 8] = found.reshape(-1, length // 8)
    axes = [pa.array(points[:, axis], from_pandas=True) for axis in range(4)]
    no_box = np.isnan(points[:, 0]) | np.isnan(points[:, 1])
    return pa.StructArray.from_arrays(axes, fields=list(GEO_BOUND), mask=pa.array(no_box))
