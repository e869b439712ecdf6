"""Avro schemas as Arrow columns: the types that they mean, and decimals, which Arrow has otherwise.

Field ids stand in the metadata of Arrow's fields, where Parquet has them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icetree.codec.avro.avro import Json, kind_of
from icetree.codec.avro.types import ICEBERG_NAME
from icetree.spec.fields import FIELD_ID_KEY

_PLAIN: Final[Mapping[str, pa.DataType]] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
#: What an object tells more of than a name.
_COMPLEX: Final = ("record", "error", "fixed", "enum", "array", "map")
#: What a number means, by the name of its logical type and the type that it is stored in.
_LOGICAL: Final[Mapping[tuple[str, str], pa.DataType]] = {
    ("date", "int"): pa.date32(),
    ("time-millis", "int"): pa.time32("ms"),
    ("time-micros", "long"): pa.time64("us"),
    ("local-timestamp-millis", "long"): pa.timestamp("ms"),
    ("local-timestamp-micros", "long"): pa.timestamp("us"),
    ("local-timestamp-nanos", "long"): pa.timestamp("ns"),
}
_UNITS: Final = {"timestamp-millis": "ms", "timestamp-micros": "us", "timestamp-nanos": "ns"}
_MOST_DIGITS: Final = 38
_DECIMAL_BYTES: Final = 16


class ArrowColumns:
    """The fields of a record schema as columns; ValueError for a schema that has no such meaning."""

    def __init__(self, schema: Json) -> None:
        self._named: dict[str, Json] = {}
        record = self.resolved(schema)
        self.schema = pa.schema([self._field(each) for each in record["fields"]])
        #: The Avro types of fields, in order, by their names as columns.
        self.fields = {_name(each): each["type"] for each in record["fields"]}
        if len(self.fields) < len(record["fields"]):
            raise ValueError("two columns of one name")

    def resolved(self, schema: Json) -> Json:
        """Return a type itself: not its name, and none of null beside it."""
        if isinstance(schema, list):
            rest = [each for each in schema if not is_null(each)]
            if len(rest) > 1:
                raise ValueError("a union of several types")
            return self.resolved(rest[0]) if rest else "null"
        if isinstance(schema, str):
            known = self._named.get(schema.rpartition(".")[2])
            if schema not in _PLAIN and known is None:
                raise ValueError(f"a type {schema!r} that is not told")
            return schema if known is None else known
        inner = schema["type"]
        # A type's name may stand by itself, or as what an object tells.
        if inner not in _COMPLEX and (not isinstance(inner, str) or "logicalType" not in schema):
            return self.resolved(inner)
        if inner in ("record", "fixed", "enum", "error"):
            self._named[schema["name"].rpartition(".")[2]] = schema
        return schema

    def _field(self, field: Json) -> pa.Field:
        return _with_id(_name(field), self.type(field["type"]), field.get("field-id"))

    def type(self, schema: Json) -> pa.DataType:
        """Return what values of a type are in Arrow."""
        found = self.resolved(schema)
        if isinstance(found, str):
            return _PLAIN[found]
        match found["type"]:
            case "record" | "error":
                return pa.struct([self._field(each) for each in found["fields"]])
            case "array" if found.get("logicalType") == "map":
                key, value = self.resolved(found["items"])["fields"]
                return pa.map_(self._field(key).with_nullable(False), self._field(value))
            case "array":
                type = self.type(found["items"])
                return pa.list_(_with_id("element", type, found.get("element-id")))
            case "map":
                key = _with_id("key", pa.string(), found.get("key-id")).with_nullable(False)
                type = self.type(found["values"])
                return pa.map_(key, _with_id("value", type, found.get("value-id")))
            case "enum":
                return pa.string()
            case "fixed":
                return _decimal(found) or pa.binary(found["size"])
        return _logical(found)


def is_null(schema: Json) -> bool:
    """Tell whether a type is that of null, in any spelling."""
    return bool(kind_of(schema) == "null")


def _name(field: Json) -> str:
    found: str = field.get(ICEBERG_NAME, field["name"])
    return found


def _with_id(name: str, type: pa.DataType, id: Any) -> pa.Field:
    told = {FIELD_ID_KEY: str(id).encode()} if isinstance(id, int) else None
    return pa.field(name, type, metadata=told)


def _logical(schema: Json) -> pa.DataType:
    kind, name = schema["type"], schema.get("logicalType")
    decimal = _decimal(schema) if kind == "bytes" else None
    if decimal is not None:
        return decimal
    if name in _UNITS and kind == "long":
        return pa.timestamp(_UNITS[name], "UTC" if schema.get("adjust-to-utc", True) else None)
    found = _LOGICAL.get((name, kind)) if isinstance(name, str) else None
    return _PLAIN[kind] if found is None else found


def _decimal(schema: Json) -> pa.DataType | None:
    if schema.get("logicalType") != "decimal":
        return None
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int):
        return None
    if not 0 < precision <= _MOST_DIGITS or not 0 <= scale <= precision:
        raise ValueError(f"a decimal({precision}, {scale})")
    return pa.decimal128(precision, scale)


def decimals(type: pa.DataType, stored: pa.BinaryArray) -> pa.Array:
    """Return numbers that are stored as bytes, the highest first; none of them is null."""
    lengths = pc.binary_length(stored).to_numpy(zero_copy_only=False)
    content = np.frombuffer(stored.buffers()[2] or b"", np.uint8)
    starts = np.frombuffer(stored.buffers()[1], np.int32)[:-1].astype(np.int64)
    if len(stored) and not 0 < lengths.min() <= lengths.max() <= _DECIMAL_BYTES:
        raise ValueError("a decimal of no bytes, or of more than 16")
    found = np.zeros((len(stored), _DECIMAL_BYTES), np.uint8)
    if len(stored):
        found[content[starts] >= 0x80] = 0xFF
    for byte in range(int(lengths.max(initial=0))):
        (rows,) = np.nonzero(lengths > byte)
        # The lowest byte comes first in memory, and last in the file.
        found[rows, byte] = content[starts[rows] + lengths[rows] - 1 - byte]
    array = pa.Array.from_buffers(type, len(stored), [None, pa.py_buffer(found)])
    array.validate(full=True)
    return array
