"""Iceberg's partition transforms over whole columns."""

from __future__ import annotations

from collections.abc import Sequence
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
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestamptzNanoType,
)

from icetree.codec.bucket import buckets, longs_of
from icetree.errors import InvalidInput, Unsupported
from icetree.rows.schema import plain
from icetree.spec.schema.types import bounds_type

_NANOS: Final = (TimestampNanoType, TimestamptzNanoType)
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
            return buckets([(values, source)], transform.num_buckets)
        case TruncateTransform():
            _require_int(transform.width, transform)
            return _truncate(values, transform, source)
        case YearTransform() | MonthTransform() | DayTransform() | HourTransform():
            return _period(values, transform, source)
    raise Unsupported(
        f"the transform {transform} is not known here: write with an engine that knows it"
    )


def _require_int(number: int, transform: Transform[Any, Any]) -> None:
    if not 0 < number < 2**31:
        raise InvalidInput(f"{transform}: its number must be from 1 to {2**31 - 1}")


def _again(numbers: npt.NDArray[Any], values: pa.Array, type: pa.DataType) -> pa.Array:
    """Return numbers as a column that is null where the values are."""
    nulls = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    return pa.array(numbers, mask=nulls).cast(type)


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


def bucketed(columns: Sequence[tuple[pa.Array, IcebergType]], count: int) -> pa.Int32Array:
    """Return the bucket of each row by the values of several columns; null where all are null."""
    return buckets([(plain(values), source) for values, source in columns], count)


# --- truncate ------------------------------------------------------------------------------


def _truncate(values: pa.Array, transform: TruncateTransform[Any], source: IcebergType) -> pa.Array:
    width = transform.width
    match source:
        case IntegerType() | LongType():
            longs = longs_of(values)
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
    counts = longs_of(values)
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
