"""Arrow data from Spark in the types of a table, of which Spark has some otherwise."""

from __future__ import annotations

from uuid import UUID

import pyarrow as pa
from pyiceberg.types import (
    FixedType,
    IcebergType,
    TimestampNanoType,
    TimestamptzNanoType,
    UUIDType,
)

from icetree.errors import InvalidInput
from icetree.spark.nested import rebuilt


def fitting(batch: pa.RecordBatch, types: dict[str, IcebergType]) -> pa.RecordBatch:
    """Return the batch with the types that Spark lacks put back: UUIDs, fixed lengths, nanoseconds."""
    arrays = [
        restored(array, types[name]) if name in types else array
        for name, array in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def restored(array: pa.Array, type: IcebergType) -> pa.Array:
    """Return values of a column from Spark in a type that the column's own is made of."""
    return rebuilt(array, type, _leaf)


def _leaf(array: pa.Array, type: IcebergType) -> pa.Array:
    match type:
        case UUIDType() if pa.types.is_string(array.type):
            made = [None if each is None else _uuid(each) for each in array.to_pylist()]
            return pa.array(made, pa.binary(16))
        case FixedType() if pa.types.is_binary(array.type):
            return _fixed(array, len(type))
        case TimestampNanoType() | TimestamptzNanoType() if pa.types.is_int64(array.type):
            zone = "UTC" if isinstance(type, TimestamptzNanoType) else None
            return array.cast(pa.timestamp("ns", tz=zone))
    return array


def _uuid(text: str) -> bytes:
    try:
        return UUID(text).bytes
    except ValueError:
        raise InvalidInput(f"{text!r} is no UUID") from None


def _fixed(array: pa.Array, width: int) -> pa.Array:
    try:
        return array.cast(pa.binary(width))
    except pa.ArrowInvalid:
        raise InvalidInput(f"not all values have {width} bytes") from None


def restored_type(have: pa.DataType, type: IcebergType) -> pa.DataType:
    """Return the Arrow type that values from Spark are written as."""
    return restored(pa.nulls(0, have), type).type
