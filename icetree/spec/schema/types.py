"""Iceberg's types: PyIceberg's classes, plus what it lacks, and their Arrow bounds types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
import pyarrow as pa
from pydantic import Field
from pyiceberg.conversions import from_json
from pyiceberg.exceptions import ValidationError
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
    PrimitiveType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from icetree.errors import InvalidInput
from icetree.spec.fields import GEO_AXES
from icetree.spec.texts import did_you_mean


class VariantType(PrimitiveType):
    """Semi-structured values (v3); PyIceberg has no class for it."""

    root: Literal["variant"] = Field(default="variant")


#: The reference system of coordinates, and the way between two points, where none is told.
CRS84: Final = "OGC:CRS84"
SPHERICAL: Final = "spherical"
#: Ways between two points of a geography, as Parquet numbers them.
EDGES: Final = (SPHERICAL, "vincenty", "thomas", "andoyer", "karney")


GEO_BOUND = pa.struct([pa.field(axis, pa.float64()) for axis in GEO_AXES])

#: Bounds of a variant are bytes that hold bounds of its fields; the type tells them from all others,
#: for the least and the greatest of them mean nothing.
VARIANT_BOUND: Final = pa.large_binary()

_BOUNDS: dict[type[IcebergType], pa.DataType] = {
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
    UUIDType: pa.binary(16),
    BinaryType: pa.binary(),
    GeometryType: GEO_BOUND,
    GeographyType: GEO_BOUND,
    VariantType: VARIANT_BOUND,
}


def bounds_type(type: IcebergType) -> pa.DataType | None:
    """Return the Arrow type of a field's bounds, or None for a type that has no bounds."""
    if isinstance(type, DecimalType):
        return pa.decimal128(type.precision, type.scale)
    if isinstance(type, FixedType):
        return pa.binary(len(type))
    return _BOUNDS.get(type.__class__)


def has_nans(type: IcebergType) -> bool:
    """Tell whether values of the type can be NaN."""
    return isinstance(type, FloatType | DoubleType)


def is_variable_length(type: IcebergType) -> bool:
    """Tell whether value sizes of the type are worth tracking."""
    return isinstance(type, StringType | BinaryType | GeometryType | GeographyType | VariantType)


def edges_of(type: IcebergType) -> str | None:
    """Return how a geography goes between two places; None for what is not on the earth."""
    return type.algorithm if isinstance(type, GeographyType) else None


def parse_type(json: Any) -> IcebergType:
    """Read a type as Iceberg writes it in JSON: a name, or an object for a nested type."""
    match json:
        case "variant":
            return VariantType()
        case str():
            return _parse_primitive(json)
        case {"type": "struct", "fields": [*fields]}:
            return StructType(*(parse_field(field) for field in fields))
        case {"type": "list"}:
            return ListType(
                element_id=json["element-id"],
                element_type=parse_type(json["element"]),
                element_required=json["element-required"],
            )
        case {"type": "map"}:
            return MapType(
                key_id=json["key-id"],
                key_type=parse_type(json["key"]),
                value_id=json["value-id"],
                value_type=parse_type(json["value"]),
                value_required=json["value-required"],
            )
        case _:
            raise InvalidInput(f"{json!r} is not a type that Iceberg knows")


def type_text(type: IcebergType) -> str:
    """Return a type that is not nested as metadata has it; PyIceberg quotes what is in brackets."""
    match type:
        case GeometryType():
            return "geometry" if type.crs == CRS84 else f"geometry({type.crs})"
        case GeographyType():
            plain = (type.crs, type.algorithm) == (CRS84, SPHERICAL)
            return "geography" if plain else f"geography({type.crs}, {type.algorithm})"
    return str(type)


#: The types whose names are all that is said of them.
_PLAIN: Final = (
    *("boolean", "int", "long", "float", "double", "date", "time", "string", "uuid", "binary"),
    *("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns", "variant", "unknown"),
)

#: A reference system has no comma, no bracket and no quotes; some writers put quotes around it.
_GEO: Final = re.compile(
    r"""(geometry|geography)\s*
    (?:\(\s*(?P<q>['"]?)([^,()'"]+?)(?P=q)\s*(?:,\s*(?P<r>['"]?)(\w+)(?P=r)\s*)?\))?""",
    re.IGNORECASE | re.VERBOSE,
)


def _parse_geo(name: str) -> IcebergType | None:
    """Return the geometry or geography that a name tells, None where it tells none."""
    found = _GEO.fullmatch(name.strip())
    if found is None:
        return None
    kind, _, crs, _, edges = found.groups()
    # PyIceberg would read on in such a name.
    if (crs or "").startswith("geo"):
        return None
    if kind.lower() == "geometry":
        return None if edges else GeometryType(crs or CRS84)
    edges = (edges or SPHERICAL).lower()
    return GeographyType(crs or CRS84, edges) if edges in EDGES else None


def _parse_primitive(name: str) -> IcebergType:
    if name.lower().startswith("geo"):
        geo = _parse_geo(name)
        if geo is None:
            raise InvalidInput(
                f"{name!r} is not a type that Iceberg knows: geometry(srid:4326) has a reference "
                f"system, geography(srid:4326, spherical) has edges too, one of {', '.join(EDGES)}"
            )
        return geo
    probe = {"id": 1, "name": "probe", "required": False, "type": name}
    try:
        found = NestedField.model_validate(probe).field_type
    except (ValueError, ValidationError):
        hint = did_you_mean(name, _PLAIN)
        raise InvalidInput(f"{name!r} is not a type that Iceberg knows{hint}") from None
    # Neither Arrow nor Parquet can hold longer values.
    if isinstance(found, FixedType) and len(found) > 2**31 - 1:
        raise InvalidInput(f"{name!r} is longer than any value can be")
    return found


def parse_field(json: Mapping[str, Any]) -> NestedField:
    """Read one column of a schema.

    Defaults become Python values, except where PyIceberg has none: those of nanosecond types
    stay in JSON form, those of nested types are text of it.
    """
    column = NestedField(
        field_id=json["id"],
        name=json["name"],
        field_type=parse_type(json["type"]),
        required=json["required"],
        doc=json.get("doc"),
    )
    defaults = {
        name: _parse_default(json[name.replace("_", "-")], column.field_type)
        for name in ("initial_default", "write_default")
        if json.get(name.replace("_", "-")) is not None
    }
    return column.model_copy(update=defaults) if defaults else column


def _parse_default(json: Any, type: IcebergType) -> Any:
    if isinstance(type, TimestampNanoType | TimestamptzNanoType):
        return json
    if isinstance(type, PrimitiveType):
        return from_json(type, json)
    # PyIceberg hashes columns, which lists and dicts do not allow.
    return msgspec.json.encode(json).decode()


def parse_schema(json: Mapping[str, Any]) -> Schema:
    """Read a schema of table metadata."""
    try:
        return Schema(
            *(parse_field(field) for field in json["fields"]),
            schema_id=json.get("schema-id", 0),
            identifier_field_ids=list(json.get("identifier-field-ids", ())),
        )
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise InvalidInput(f"not a schema: {error!s}") from None
