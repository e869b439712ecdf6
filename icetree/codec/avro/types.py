"""Iceberg's types as Avro writes them: field ids beside names, logical types for what Avro lacks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

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
    UUIDType,
)

from icetree.errors import Unsupported

Json = dict[str, Any]

#: The property of a field whose own name Avro does not allow.
ICEBERG_NAME: Final = "iceberg-field-name"
#: What Avro lets a name be made of.
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_]")


def _long(name: str, *, utc: bool | None = None) -> Json:
    zone = {} if utc is None else {"adjust-to-utc": utc}
    return {"type": "long", "logicalType": name, **zone}


_PRIMITIVES: Final[dict[type[IcebergType], Any]] = {
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "long",
    FloatType: "float",
    DoubleType: "double",
    DateType: {"type": "int", "logicalType": "date"},
    TimeType: _long("time-micros"),
    TimestampType: _long("timestamp-micros", utc=False),
    TimestamptzType: _long("timestamp-micros", utc=True),
    TimestampNanoType: _long("timestamp-nanos", utc=False),
    TimestamptzNanoType: _long("timestamp-nanos", utc=True),
    StringType: "string",
    BinaryType: "bytes",
    GeometryType: "bytes",
    GeographyType: "bytes",
}


def decimal_width(precision: int) -> int:
    """Return how many bytes a number of so many digits takes."""
    most: int = 10**precision - 1
    return (most.bit_length() + 8) // 8


def field(name: str, id: int, type: Any, *, required: bool = False) -> Json:
    """Return a field of a record."""
    if required:
        return {"name": name, "type": type, "field-id": id}
    return {"name": name, "type": ["null", type], "default": None, "field-id": id}


def record(name: str, fields: Iterable[Json]) -> Json:
    """Return a record."""
    return {"type": "record", "name": name, "fields": list(fields)}


def storable_name(name: str, id: int, taken: set[str]) -> str:
    """Return a name that Avro allows, and that no field beside has."""
    found = _NOT_IN_NAMES.sub("_", name)
    if found != name or found[:1].isdigit() or not found or found in taken:
        found = f"_{found}_{id}"
    taken.add(found)
    return found


class Types:
    """Types of one schema: one with a name is told once; after that, it is its name."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def fields(self, fields: Iterable[NestedField]) -> list[Json]:
        """Return fields of a record, in order."""
        taken: set[str] = set()
        found = []
        for each in fields:
            name = storable_name(each.name, each.field_id, taken)
            type = self.type(each.field_type, f"r{each.field_id}")
            one = field(name, each.field_id, type, required=each.required)
            found.append(one if name == each.name else {**one, ICEBERG_NAME: each.name})
        return found

    def type(self, type: IcebergType, name: str) -> Any:
        """Return a type; `name` is that of a record, should it be one."""
        match type:
            case StructType():
                return record(name, self.fields(type.fields))
            case ListType():
                element = type.element_field
                items = self._inner(element)
                return {"type": "array", "items": items, "element-id": element.field_id}
            case MapType():
                return self._map(type)
            case UUIDType():
                return self._named(
                    {"type": "fixed", "size": 16, "logicalType": "uuid", "name": "uuid_fixed"}
                )
            case FixedType():
                return self._named(
                    {"type": "fixed", "size": len(type), "name": f"fixed_{len(type)}"}
                )
            case DecimalType(precision=precision, scale=scale):
                return self._named(
                    {
                        "type": "fixed",
                        "size": decimal_width(precision),
                        "logicalType": "decimal",
                        "precision": precision,
                        "scale": scale,
                        "name": f"decimal_{precision}_{scale}",
                    }
                )
        found = _PRIMITIVES.get(type.__class__)
        if found is None:
            raise Unsupported(f"there is no room in Avro for values of type {type}: use Parquet")
        return found

    def _map(self, type: MapType) -> Json:
        key, value = type.key_field, type.value_field
        if isinstance(type.key_type, StringType):
            ids = {"key-id": key.field_id, "value-id": value.field_id}
            return {"type": "map", "values": self._inner(value), **ids}
        pair = record(f"k{key.field_id}_v{value.field_id}", self.fields((key, value)))
        return {"type": "array", "items": pair, "logicalType": "map"}

    def _inner(self, field: NestedField) -> Any:
        type = self.type(field.field_type, f"r{field.field_id}")
        return type if field.required else ["null", type]

    def _named(self, type: Json) -> Any:
        is_told = type["name"] in self._told
        self._told.add(type["name"])
        return type["name"] if is_told else type
