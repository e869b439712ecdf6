"""Avro as anyone may write it: fields by their ids, blocks of any size, any codec."""

from __future__ import annotations

import bz2
import datetime as dt
import json
import lzma
import zlib
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from tests.foreign.avro_values import Values, number
from tests.foreign.columns import Field, Json, List, Map, Plain, Row, Struct, Type, named
from tests.foreign.dress import Dress
from tests.foreign.transforms import unscaled, whole


def _deflated(block: bytes) -> bytes:
    made = zlib.compressobj(wbits=-15)
    return made.compress(block) + made.flush()


def _snappy(block: bytes) -> bytes:
    packed = pa.compress(block, "snappy", asbytes=True)
    return bytes(packed) + zlib.crc32(block).to_bytes(4, "big")


_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": _deflated,
    "snappy": _snappy,
    "zstandard": lambda block: bytes(pa.compress(block, "zstd", asbytes=True)),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}
_META = {"type": "map", "values": "bytes"}


def container(schema: Json, records: list[Any], dress: Dress, meta: dict[str, str]) -> bytes:
    """Return a file of records, in blocks of a few of them each."""
    rng = dress.rng or Random(0)
    codec = rng.choice(list(_CODECS)) if dress.rng is not None else "null"
    told = {name: value.encode() for name, value in meta.items()}
    told["avro.schema"] = json.dumps(schema).encode()
    if codec != "null" or dress.chance(0.5):
        told["avro.codec"] = codec.encode()
    sync = rng.randbytes(16)
    values = Values(dress.aside("blocks"))
    out = bytearray(b"Obj\x01" + values.of(_META, told) + sync)
    size = rng.choice((1, 2, 3, 1000))
    for at in range(0, len(records), size):
        block = b"".join(values.of(schema, record) for record in records[at : at + size])
        packed = _CODECS[codec](block)
        out += number(len(records[at : at + size])) + number(len(packed)) + packed + sync
    return bytes(out)


def rows_file(rows: list[Row], columns: list[Field], dress: Dress) -> bytes:
    """Return a file of columns of the rows."""
    names = [each.name for each in columns]
    if dress.chance(0.2) and not dress.named:
        names = names[1:] + names[:1]
    fields = [_field(each, dress, name) for each, name in zip(columns, names, strict=True)]
    records = [
        {
            name: _stored(each.type, named(each.type, row.get(each.key)))
            for each, name in zip(columns, names, strict=True)
        }
        for row in rows
    ]
    if dress.chance(0.2):
        fields.insert(0, {"name": "made_by", "type": "string", "field-id": 8001})
        records = [{"made_by": "another", **record} for record in records]
    schema: Json = {"type": "record", "name": "table", "fields": fields}
    if (rng := dress.aside("schema")) is not None:
        schema = _spelled(schema, rng, named=dress.named)
    return container(schema, records, dress, {})


def _spelled(schema: Any, rng: Random, *, named: bool) -> Any:
    """Return a schema in other words: nothing of it means another thing.

    Where columns are told by their names alone, no ids are left.
    """
    if isinstance(schema, list):
        return [_spelled(each, rng, named=named) for each in schema]
    if isinstance(schema, str):
        return {"type": schema} if rng.random() < 0.1 else schema
    found = {key: value for key, value in schema.items() if not (named and key.endswith("-id"))}
    for key in ("type", "items", "values"):
        if key in found and "logicalType" not in found and found[key] not in _KINDS:
            found[key] = _spelled(found[key], rng, named=named)
    if "fields" in found:
        found["fields"] = [_spelled(each, rng, named=named) for each in found["fields"]]
    if found.get("logicalType") == "decimal" and found["type"] == "fixed" and rng.random() < 0.3:
        found = {key: value for key, value in found.items() if key not in ("name", "size")}
        found["type"] = "bytes"
    if rng.random() < 0.2:
        found |= {"doc": "of another writer", "made-by": {"another": [1, None]}}
    if rng.random() < 0.3:
        found = dict(rng.sample(list(found.items()), len(found)))
    return found


#: What stands under `type` where that is no type by itself.
_KINDS = ("record", "array", "map", "fixed", "enum")


def _field(field: Field, dress: Dress, name: str | None = None) -> Json:
    told: Json = {"name": name or field.name, "field-id": field.id}
    return told | _may_be_null(field, dress)


def _may_be_null(field: Field, dress: Dress) -> Json:
    type = _type(field, dress)
    if field.required:
        return {"type": type}
    # The default value is of the first type.
    return (
        {"type": [type, "null"]} if dress.chance(0.2) else {"type": ["null", type], "default": None}
    )


def _type(field: Field, dress: Dress) -> Any:
    """Return what a field's values are in Avro; a type that has a name is the field's own."""
    match field.type:
        case Struct(members):
            fields = [_field(each, dress) for each in members]
            return {"type": "record", "name": f"r{field.id}", "fields": fields}
        case List(element):
            items = _may_be_null(element, dress)["type"]
            return {"type": "array", "items": items, "element-id": element.id}
        case Map(key, value):
            values = _may_be_null(value, dress)["type"]
            return {"type": "map", "values": values, "key-id": key.id, "value-id": value.id}
        case Plain() as type:
            return plain_type(type, f"f{field.id}")
    raise AssertionError(field.type)


def plain_type(type: Plain, name: str) -> Any:
    """Return what values of a type are in Avro, as the specification has it."""
    kind, _, more = type.name.partition("(")
    match kind:
        case "timestamp" | "timestamptz":
            zoned = {"adjust-to-utc": kind == "timestamptz"}
            return {"type": "long", "logicalType": "timestamp-micros", **zoned}
        case "time":
            return {"type": "long", "logicalType": "time-micros"}
        case "date":
            return {"type": "int", "logicalType": "date"}
        case "decimal":
            digits = int(more.partition(",")[0])
            told = {"logicalType": "decimal", "precision": digits, "scale": 2}
            return {"type": "fixed", "name": name, "size": _decimal_bytes(digits), **told}
        case "uuid":
            return {"type": "fixed", "name": name, "size": 16, "logicalType": "uuid"}
        case "fixed[3]":
            return {"type": "fixed", "name": name, "size": 3}
        case "binary":
            return "bytes"
    return kind


def _decimal_bytes(digits: int) -> int:
    return int((10**digits).bit_length() + 8) // 8


def _stored(type: Type, value: Any) -> Any:
    """Return a value, by names, as a number or bytes where Avro has these."""
    if value is None:
        return None
    match type:
        case Struct(members):
            return {each.name: _stored(each.type, value[each.name]) for each in members}
        case List(element):
            return [_stored(element.type, each) for each in value]
        case Map(_, of):
            return {one: _stored(of.type, other) for one, other in value}
        case Plain() as plain:
            return plain_value(plain, value)
    raise AssertionError(type)


def plain_value(type: Plain, value: Any) -> Any:
    """Return a single value as Avro has it."""
    if isinstance(value, Decimal):
        digits = int(type.name.partition("(")[2].partition(",")[0])
        return unscaled(value).to_bytes(_decimal_bytes(digits), "big", signed=True)
    return whole(value) if isinstance(value, dt.datetime | dt.date | dt.time) else value
