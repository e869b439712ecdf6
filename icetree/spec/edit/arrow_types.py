"""Arrow's types as Iceberg's; ids in nested ones mean nothing until they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
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

from icetree.errors import InvalidInput
from icetree.spec.schema.types import VariantType

_is = pa.types

#: The first that holds decides.
_PLAIN: Final[tuple[tuple[Callable[[pa.DataType], bool], type[IcebergType]], ...]] = (
    (_is.is_null, UnknownType),
    (_is.is_boolean, BooleanType),
    (lambda t: _is.is_integer(t) and t not in (pa.int64(), pa.uint32(), pa.uint64()), IntegerType),
    (lambda t: t in (pa.int64(), pa.uint32()), LongType),
    (lambda t: t in (pa.float16(), pa.float32()), FloatType),
    (_is.is_float64, DoubleType),
    (_is.is_date, DateType),
    (lambda t: _is.is_time(t) and t.unit != "ns", TimeType),
    (lambda t: _is.is_string(t) or _is.is_large_string(t) or _is.is_string_view(t), StringType),
    (lambda t: _is.is_binary(t) or _is.is_large_binary(t) or _is.is_binary_view(t), BinaryType),
)


def from_arrow(type: pa.DataType, *, where: str = "the type") -> IcebergType:
    """Return the type that holds every value of an Arrow type; InvalidInput when none does."""
    for holds, plain in _PLAIN:
        if holds(type):
            return plain()
    match type:
        case pa.DictionaryType():
            return from_arrow(type.value_type, where=where)
        case pa.StructType() if _is_variant(type):
            return VariantType()
        case pa.StructType():
            return struct_from_arrow(type, where=where)
        case pa.MapType():
            return MapType(
                key_id=0,
                key_type=from_arrow(type.key_type, where=f"{where}.key"),
                value_id=0,
                value_type=from_arrow(type.item_type, where=f"{where}.value"),
                value_required=not type.item_field.nullable,
            )
    if _is.is_list(type) or _is.is_large_list(type) or _is.is_fixed_size_list(type):
        return ListType(
            element_id=0,
            element_type=from_arrow(type.value_type, where=f"{where}.element"),
            element_required=not type.value_field.nullable,
        )
    return _with_arguments(type, where)


def _is_variant(type: pa.StructType) -> bool:
    """Tell whether a struct is what Spark makes of variants, which it notes on a part of it."""
    return {field.name for field in type} == {"metadata", "value"} and any(
        (field.metadata or {}).get(b"variant") == b"true" for field in type
    )


def _with_arguments(type: pa.DataType, where: str) -> IcebergType:
    match type:
        case pa.TimestampType(unit="ns"):
            return TimestampNanoType() if type.tz is None else TimestamptzNanoType()
        case pa.TimestampType():
            return TimestampType() if type.tz is None else TimestamptzType()
        case pa.BaseExtensionType(extension_name="arrow.uuid"):
            return UUIDType()
        case pa.BaseExtensionType(extension_name="arrow.parquet.variant" | "parquet.variant"):
            return VariantType()
    if _is.is_decimal(type) and type.precision <= 38 and type.scale >= 0:
        return DecimalType(type.precision, type.scale)
    if _is.is_fixed_size_binary(type):
        return FixedType(type.byte_width)
    raise InvalidInput(f"{where}: Iceberg has no type for Arrow's {type}; cast it first")


def struct_from_arrow(fields: pa.Schema | pa.StructType, *, where: str = "") -> StructType:
    """Return an Arrow schema or struct as Iceberg has it; a field that is not nullable is required."""
    prefix = f"{where}." if where else ""
    return StructType(
        *(
            NestedField(
                field_id=0,
                name=field.name,
                field_type=from_arrow(field.type, where=prefix + field.name),
                required=not field.nullable,
                doc=_doc(field),
            )
            for field in fields
        )
    )


def _doc(field: pa.Field) -> str | None:
    found = (field.metadata or {}).get(b"PARQUET:field_doc") or (field.metadata or {}).get(b"doc")
    return None if found is None else found.decode()
