"""Avro as anyone may write it: fields by their ids, blocks of any size, any codec."""

from __future__ import annotations

import bz2
import datetime as dt
import io
import json
import lzma
import zlib
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import fastavro
import pyarrow as pa

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
_HEADER = fastavro.parse_schema(
    {
        "type": "record",
        "name": "header",
        "fields": [
            {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
            {"name": "meta", "type": {"type": "map", "values": "bytes"}},
            {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
        ],
    }
)


def container(schema: Json, records: list[Any], dress: Dress, meta: dict[str, str]) -> bytes:
    """Return a file of records, in blocks of a few of them each."""
    rng = dress.rng or Random(0)
    codec = rng.choice(list(_CODECS)) if dress.rng is not None else "null"
    told = {name: value.encode() for name, value in meta.items()}
    told["avro.schema"] = json.dumps(schema).encode()
    if codec != "null" or dress.chance(0.5):
        told["avro.codec"] = codec.encode()
    out, sync = io.BytesIO(), rng.randbytes(16)
    fastavro.schemaless_writer(out, _HEADER, {"magic": b"Obj\x01", "meta": told, "sync": sync})
    parsed = fastavro.parse_schema(schema)
    size = rng.choice((1, 2, 3, 1000))
    for at in range(0, len(records), size):
        block = io.BytesIO()
        for record in records[at : at + size]:
            fastavro.schemaless_writer(block, parsed, record)
        packed = _CODECS[codec](block.getvalue())
        for number in (len(records[at : at + size]), len(packed)):
            fastavro.schemaless_writer(out, "long", number)
        out.write(packed + sync)
    return out.getvalue()


def rows_file(rows: list[Row], columns: list[Field], dress: Dress) -> bytes:
    """Return a file of columns of the rows."""
    names = [each.name for each in columns]
    if dress.chance(0.2):
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
    schema = {"type": "record", "name": "table", "fields": fields}
    return container(schema, records, dress, {})


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
