"""Iceberg's types and default values as Arrow has them, in memory and in Parquet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
from pyiceberg.schema import Schema
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
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)

from icetree.errors import InvalidInput, Unsupported
from icetree.rows.variant import PAIR
from icetree.spec.fields import FIELD_ID_KEY
from icetree.spec.schema.default_values import default_json
from icetree.spec.schema.types import VariantType

_PLAIN: Final[Mapping[type[IcebergType], pa.DataType]] = {
    BooleanType: pa.bool_(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    DateType: pa.date32(),
    TimeType: pa.time64("us"),
    TimestampType: pa.timestamp("us"),
    TimestamptzType: pa.timestamp("us", tz="UTC"),
    TimestampNanoType: pa.timestamp("ns"),
    TimestamptzNanoType: pa.timestamp("ns", tz="UTC"),
    StringType: pa.string(),
    UUIDType: pa.uuid(),
    BinaryType: pa.binary(),
    # Well-known binary.
    GeometryType: pa.binary(),
    GeographyType: pa.binary(),
    UnknownType: pa.null(),
    VariantType: PAIR,
}


def arrow_type(type: IcebergType) -> pa.DataType:
    """Return the Arrow type of a column's values; nested fields carry their ids."""
    match type:
        case StructType():
            return pa.struct([arrow_field(field) for field in type.fields])
        case ListType():
            return pa.list_(arrow_field(type.element_field))
        case MapType():
            return pa.map_(arrow_field(type.key_field), arrow_field(type.value_field))
        case DecimalType():
            return pa.decimal128(type.precision, type.scale)
        case FixedType():
            return pa.binary(len(type))
    found = _PLAIN.get(type.__class__)
    if found is None:
        raise Unsupported(f"columns of type {type} cannot be read or written here: use an engine")
    return found


def arrow_field(field: NestedField) -> pa.Field:
    """Return a column as Arrow has it, with its id where Parquet wants it."""
    return pa.field(
        field.name,
        arrow_type(field.field_type),
        nullable=not field.required,
        metadata={FIELD_ID_KEY: str(field.field_id).encode()},
    )


def arrow_schema(schema: Schema) -> pa.Schema:
    """Return a schema as Arrow has it, with field ids."""
    return pa.schema([arrow_field(field) for field in schema.fields])


def plain(array: pa.Array) -> pa.Array:
    """Return the values without an extension type around them, which few kernels take."""
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def null_array(type: IcebergType, size: int) -> pa.Array:
    """Return nulls of the type; below a null struct, required fields hold no nulls of their own."""
    if isinstance(type, VariantType):
        nothing = pa.repeat(pa.scalar(b"", pa.binary()), size)
        absent = pa.repeat(pa.scalar(True), size)
        return pa.StructArray.from_arrays([nothing] * 2, fields=list(PAIR), mask=absent)
    if not isinstance(type, StructType):
        return pa.nulls(size, arrow_type(type))
    members = [null_array(field.field_type, size) for field in type.fields]
    return pa.StructArray.from_arrays(
        [
            without_nulls(member) if field.required else member
            for field, member in zip(type.fields, members, strict=True)
        ],
        fields=[arrow_field(field) for field in type.fields],
        mask=pa.repeat(pa.scalar(True), size),
    )


def without_nulls(array: pa.Array) -> pa.Array:
    """Return the array as if every slot held a value; what the null ones hold means nothing."""
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(array.type, without_nulls(array.storage))
    if isinstance(array, pa.StructArray):
        members = [array.field(at) for at in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(members, fields=list(array.type))
    children: list[pa.Array] | None = None
    buffers = array.buffers()
    if isinstance(array, pa.MapArray):
        ends = [array.type.key_field, array.type.item_field]
        children = [pa.StructArray.from_arrays([array.keys, array.items], fields=ends)]
        buffers = buffers[:2]
    elif isinstance(array, pa.ListArray):
        children = [array.values]
        buffers = buffers[:2]
    return pa.Array.from_buffers(
        array.type, len(array), [None, *buffers[1:]], 0, array.offset, children=children
    )


def default_array(json: Any, type: IcebergType, size: int, *, where: str) -> pa.Array:
    """Return a default value, given in JSON form, as often as asked for.

    A struct's default is what its fields' own defaults make.
    """
    try:
        # PyIceberg has parsed some of them already.
        return _default(default_json(json, type, where=where), type, size)
    except (ValueError, TypeError, KeyError, ArithmeticError, pa.ArrowException) as error:
        raise InvalidInput(f"{where}: {json!r} is no default of type {type}: {error}") from None


def _default(json: Any, type: IcebergType, size: int) -> pa.Array:
    if json is None:
        return null_array(type, size)
    match type:
        case StructType():
            return pa.StructArray.from_arrays(
                [
                    _default(
                        default_json(each.initial_default, each.field_type, where=each.name),
                        each.field_type,
                        size,
                    )
                    for each in type.fields
                ],
                fields=[arrow_field(each) for each in type.fields],
            )
        case ListType():
            values = _joined(
                [_default(each, type.element_type, 1) for each in json], type.element_type
            )
            one = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
            return pa.repeat(one[0], size).cast(arrow_type(type))
        case MapType():
            made = arrow_type(type)
            keys = _joined(
                [_default(each, type.key_type, 1) for each in json["keys"]], type.key_type
            )
            values = _joined(
                [_default(each, type.value_type, 1) for each in json["values"]], type.value_type
            )
            ends = pa.array([0, len(keys)], pa.int32())
            return pa.repeat(pa.MapArray.from_arrays(ends, keys, values, type=made)[0], size)
    parse = _PARSERS.get(type.__class__)
    value = json if parse is None else parse(json, type)
    return pa.repeat(pa.scalar(value, arrow_type(type)), size)


def _joined(parts: list[pa.Array], type: IcebergType) -> pa.Array:
    return pa.concat_arrays(parts) if parts else pa.nulls(0, arrow_type(type))


def _moment(json: Any, type: IcebergType) -> pa.Scalar:
    return pa.scalar(json, pa.string()).cast(arrow_type(type))


_PARSERS: Final[Mapping[type[IcebergType], Callable[[Any, IcebergType], Any]]] = {
    DecimalType: lambda json, _: Decimal(json),
    DateType: _moment,
    TimestampType: _moment,
    TimestamptzType: _moment,
    TimestampNanoType: _moment,
    TimestamptzNanoType: _moment,
    TimeType: lambda json, _: time.fromisoformat(json),
    UUIDType: lambda json, _: UUID(json).bytes,
    FixedType: lambda json, _: bytes.fromhex(json),
    BinaryType: lambda json, _: bytes.fromhex(json),
}
