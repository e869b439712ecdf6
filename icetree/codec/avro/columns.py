"""Avro records as Arrow columns: the types that a schema means, and values in them.

Field ids stand in the metadata of Arrow's fields, where Parquet has them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icetree.codec.avro.avro import Json
from icetree.codec.avro.types import ICEBERG_NAME
from icetree.spec.fields import FIELD_ID_KEY

Values = list[Any]

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
        #: The names of fields in records, by their names as columns.
        self.stored_names: dict[str, str] = {}
        record = self._resolved(schema)
        self.schema = pa.schema([self._field(each) for each in record["fields"]])
        for each in record["fields"]:
            self.stored_names[_name(each)] = each["name"]
        self._types = {_name(each): each["type"] for each in record["fields"]}

    def column(self, name: str, values: Values) -> pa.Array:
        """Return values of a field of records as a column."""
        return self._array(self._types[name], values)

    # --- types -------------------------------------------------------------------------------

    def _resolved(self, schema: Json) -> Json:
        """Return a type itself: not its name, and none of null beside it."""
        if isinstance(schema, list):
            rest = [each for each in schema if each != "null"]
            if len(rest) > 1:
                raise ValueError("a union of several types")
            return self._resolved(rest[0]) if rest else "null"
        if isinstance(schema, str):
            known = self._named.get(schema.rpartition(".")[2])
            if schema not in _PLAIN and known is None:
                raise ValueError(f"a type {schema!r} that is not told")
            return schema if known is None else known
        inner = schema["type"]
        if isinstance(inner, dict | list):
            return self._resolved(inner)
        if inner in ("record", "fixed", "enum", "error"):
            self._named[schema["name"].rpartition(".")[2]] = schema
        return schema

    def _field(self, field: Json) -> pa.Field:
        return _with_id(_name(field), self._type(field["type"]), field.get("field-id"))

    def _type(self, schema: Json) -> pa.DataType:
        found = self._resolved(schema)
        if isinstance(found, str):
            return _PLAIN[found]
        match found["type"]:
            case "record" | "error":
                return pa.struct([self._field(each) for each in found["fields"]])
            case "array" if found.get("logicalType") == "map":
                key, value = self._resolved(found["items"])["fields"]
                return pa.map_(self._field(key).with_nullable(False), self._field(value))
            case "array":
                type = self._type(found["items"])
                return pa.list_(_with_id("element", type, found.get("element-id")))
            case "map":
                key = _with_id("key", pa.string(), found.get("key-id")).with_nullable(False)
                type = self._type(found["values"])
                return pa.map_(key, _with_id("value", type, found.get("value-id")))
            case "enum":
                return pa.string()
            case "fixed":
                return _decimal(found) or pa.binary(found["size"])
        return _logical(found)

    # --- values ------------------------------------------------------------------------------

    def _array(self, schema: Json, values: Values) -> pa.Array:
        found = self._resolved(schema)
        kind = found if isinstance(found, str) else found["type"]
        match kind:
            case "record" | "error":
                return self._struct(found, values)
            case "array" if found.get("logicalType") == "map":
                key, value = self._resolved(found["items"])["fields"]
                pairs = [each for one in values if one is not None for each in one]
                keys = self._array(key["type"], [each[key["name"]] for each in pairs])
                items = self._array(value["type"], [each[value["name"]] for each in pairs])
                return _map(self._type(found), values, keys, items)
            case "array":
                inner = list(chain.from_iterable(one for one in values if one is not None))
                element = self._array(found["items"], inner)
                return _list(self._type(found), values, element)
            case "map":
                maps = [one for one in values if one is not None]
                keys = pa.array([key for one in maps for key in one], pa.string())
                inner = [item for one in maps for item in one.values()]
                return _map(self._type(found), values, keys, self._array(found["values"], inner))
        return _primitive(self._type(found), values)

    def _struct(self, schema: Json, values: Values) -> pa.Array:
        type = self._type(schema)
        mask = np.fromiter((each is None for each in values), np.bool_, len(values))
        members = []
        for field in schema["fields"]:
            name = field["name"]
            inner = [None if each is None else each[name] for each in values]
            members.append(self._array(field["type"], inner))
        if not members:
            return pa.array(values, type)
        return pa.StructArray.from_arrays(
            members, fields=list(type), mask=pa.array(mask) if mask.any() else None
        )


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


def _primitive(type: pa.DataType, values: Values) -> pa.Array:
    if pa.types.is_decimal(type):
        return _decimals(type, values)
    if pa.types.is_temporal(type):
        return pa.array(values, pa.int32() if type.bit_width == 32 else pa.int64()).view(type)
    return pa.array(values, type)


def _decimals(type: pa.DataType, values: Values) -> pa.Array:
    """Return numbers that are stored as bytes, the highest first."""
    nothing = bytes(_DECIMAL_BYTES)
    found = b"".join(
        nothing
        if each is None
        else int.from_bytes(each, "big", signed=True).to_bytes(
            _DECIMAL_BYTES, "little", signed=True
        )
        for each in values
    )
    valid = pa.array([each is not None for each in values], pa.bool_())
    buffers = [valid.buffers()[1], pa.py_buffer(found)]
    array = pa.Array.from_buffers(type, len(values), buffers)
    array.validate(full=True)
    return array


def _offsets(values: Values, size: Callable[[Any], int] = len) -> tuple[pa.Buffer, pa.Buffer]:
    """Return which lists there are, and where each ends."""
    valid = pa.array([each is not None for each in values], pa.bool_())
    lengths: Iterator[int] = (0 if each is None else size(each) for each in values)
    ends = np.zeros(len(values) + 1, np.int64)
    ends[1:] = np.cumsum(np.fromiter(lengths, np.int64, len(values)))
    if ends[-1] > np.iinfo(np.int32).max:
        raise ValueError("more elements than lists of one batch can have")
    return valid.buffers()[1], pa.py_buffer(ends.astype(np.int32))


def _list(type: pa.DataType, values: Values, element: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(type, len(values), list(_offsets(values)), children=[element])


def _map(type: pa.DataType, values: Values, keys: pa.Array, items: pa.Array) -> pa.Array:
    if keys.null_count:
        raise ValueError("a key of a map is null")
    entries = pa.StructArray.from_arrays([keys, items], fields=[type.key_field, type.item_field])
    return pa.Array.from_buffers(type, len(values), list(_offsets(values)), children=[entries])
