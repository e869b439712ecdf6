"""Avro container files, into columns.

Avro is row by row: this is the one place where entries exist as Python rows, a chunk at a
time, and only for leaves that older versions of the format wrote.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Final, TypeAlias

import fastavro
import pyarrow as pa

from icetree.codec import limits
from icetree.codec.avro.blocks import DECODERS, decompress
from icetree.codec.avro.schema import broken_rule
from icetree.codec.json_text import require_modest
from icetree.codec.unpack import UNREADABLE, OverLimit
from icetree.errors import CorruptTable, TooLarge

Json: TypeAlias = Any

MAGIC: Final = b"Obj\x01"

#: Few rows are alive at once, so that the garbage collector has little to walk over.
_CHUNK_ROWS: Final = 128

#: Longer schemas are not remembered.
_KNOWN_CHARS: Final = 64 << 10

#: The record that a file begins with.
HEADER: Final = fastavro.parse_schema(
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

#: What may stand on disk for each kind of column.
_ACCEPTS: Final[dict[str, frozenset[str]]] = {
    "integer": frozenset({"int", "long"}),
    "string": frozenset({"string"}),
    "bytes": frozenset({"bytes", "fixed"}),
    "boolean": frozenset({"boolean"}),
    "integers": frozenset({"array"}),
    "record": frozenset({"record"}),
    "array": frozenset({"array"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of an Avro record: its name in rows, and its type without null."""

    name: str
    type: Json

    @property
    def kind(self) -> str:
        """The Avro type's name: `long`, `record`, `array` and so on."""
        return kind_of(self.type)


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroFile:
    """A container file with its header read; its rows are plain, without logical types."""

    file: str
    metadata: Mapping[str, str]
    schema: Json
    content: bytes

    def fields(self) -> dict[int, Field]:
        """Return the fields of the file's record by field id."""
        return fields_of(self.schema, file=self.file)

    def rows(self, schema: Json = None) -> Iterator[dict[str, Any]]:
        """Yield the rows; `schema` may leave fields of the file's out."""
        # fastavro has no error of its own: broken bytes surface as whatever they led to.
        try:
            yield from fastavro.reader(io.BytesIO(self.content), reader_schema=schema)  # type: ignore[misc]
        except Exception as error:
            raise CorruptTable(self.file, f"broken Avro data: {error}") from error


class Rows:
    """The rows of files of one schema, one file after the other."""

    def __init__(self, files: Sequence[AvroFile], schema: Json = None) -> None:
        self._files = files
        self._schema = schema
        #: How many rows of each file were read.
        self.counts: list[int] = []

    def chunks(self) -> Iterator[list[dict[str, Any]]]:
        """Yield the rows, some at a time, which may be of several files."""
        rows = chain.from_iterable(map(self._counted, self._files))
        while some := list(islice(rows, _CHUNK_ROWS)):
            yield some

    def _counted(self, file: AvroFile) -> Iterator[dict[str, Any]]:
        self.counts.append(0)
        for row in file.rows(self._schema):
            self.counts[-1] += 1
            yield row


def open_avro(data: bytes, *, file: str) -> AvroFile:
    """Read the header of an Avro file whose rows are records."""
    if data[:4] != MAGIC:
        raise CorruptTable(file, "not an Avro file: wrong magic bytes")
    stream = io.BytesIO(data)
    try:
        header: Any = fastavro.schemaless_reader(stream, HEADER, None)
        require_modest(header["meta"].get("avro.schema", b""), file=file)
        metadata = {key: value.decode() for key, value in header["meta"].items()}
        found = _schema_in(metadata["avro.schema"])
    except TooLarge:
        raise
    except Exception as error:
        raise CorruptTable(file, f"broken Avro header: {error!r}") from error
    codec = metadata.get("avro.codec", "null")
    if codec != "null" and codec not in DECODERS:
        raise CorruptTable(file, f"unknown Avro codec {codec!r}")
    if found.broken is not None:
        raise CorruptTable(file, found.broken)
    blocks = data[stream.tell() :]
    if codec != "null":
        header["meta"]["avro.codec"] = b"null"
        blocks = _decompress(blocks, codec, file)
    # Logical types would turn values into Python dates and decimals, only to be undone.
    content = _content(header, found.stored, blocks)
    return AvroFile(file=file, metadata=metadata, schema=json.loads(found.stored), content=content)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Schema:
    """A schema as a header tells it, without logical types."""

    stored: bytes
    #: Why it must not be read by; None where nothing speaks against it.
    broken: str | None


@lru_cache(maxsize=128)
def _schema_of(text: str) -> _Schema:
    schema = without_logical_types(json.loads(text))
    is_record = kind_of(schema) == "record"
    broken = broken_rule(schema) if is_record else "the Avro schema is not a record"
    return _Schema(stored=json.dumps(schema).encode(), broken=broken)


def _schema_in(text: str) -> _Schema:
    """Read a schema; all manifests of a writer have the same, and it is longer than their entries."""
    return _schema_of(text) if len(text) <= _KNOWN_CHARS else _schema_of.__wrapped__(text)


def read_as(avro: AvroFile, schema: Json) -> AvroFile:
    """Return a file as if its bytes were of another schema."""
    stream = io.BytesIO(avro.content)
    header: Any = fastavro.schemaless_reader(stream, HEADER, None)
    stored = json.dumps(schema).encode()
    content = _content(header, stored, avro.content[stream.tell() :])
    return replace(avro, schema=schema, content=content)


def _content(header: Any, schema: bytes, blocks: bytes) -> bytes:
    header["meta"]["avro.schema"] = schema
    plain = io.BytesIO()
    fastavro.schemaless_writer(plain, HEADER, header)
    plain.write(blocks)
    return plain.getvalue()


def _decompress(blocks: bytes, codec: str, file: str) -> bytes:
    try:
        return decompress(blocks, codec, limits.METADATA.bytes)
    except OverLimit:
        raise limits.METADATA.exceeded(file, "its Avro blocks unpack to more") from None
    except UNREADABLE as error:
        raise CorruptTable(file, f"broken Avro data: {error}") from error


def without_logical_types(schema: Json) -> Json:
    """Return a schema by which values come as they are stored."""
    match schema:
        case dict():
            return {
                key: without_logical_types(value)
                for key, value in schema.items()
                if key != "logicalType"
            }
        case list():
            return [without_logical_types(each) for each in schema]
        case _:
            return schema


def kind_of(schema: Json) -> str:
    """Return the name of an Avro type; a union of several types has none."""
    match schema:
        case str():
            return schema
        case {"type": inner}:
            return kind_of(inner)
        case _:
            return "union"


def fields_of(record: Json, *, file: str) -> dict[int, Field]:
    """Return the fields of a record type by field id; a field without an id is left out."""
    while isinstance(record, dict) and isinstance(record.get("type"), dict):
        record = record["type"]
    match record:
        case {"type": "record", "fields": [*fields]}:
            pass
        case _:
            raise CorruptTable(file, "an Avro record is missing its fields")
    found = {}
    for each in fields:
        if not isinstance(each, dict) or "name" not in each or "type" not in each:
            raise CorruptTable(file, "a field of an Avro record lacks a name or a type")
        if isinstance(each.get("field-id"), int):
            found[each["field-id"]] = Field(name=each["name"], type=_non_null(each["type"]))
    return found


def items_of(field: Field) -> Json:
    """Return the element type of an array."""
    schema = field.type
    while isinstance(schema, dict) and isinstance(schema.get("type"), dict):
        schema = schema["type"]
    return _non_null(schema.get("items")) if isinstance(schema, dict) else None


def _non_null(schema: Json) -> Json:
    if isinstance(schema, list):
        rest = [each for each in schema if kind_of(each) != "null"]
        return rest[0] if len(rest) == 1 else schema
    return schema


def require_kind(field: Field, kind: str, *, file: str, name: str) -> None:
    """Refuse a field whose Avro type cannot stand for the column."""
    fits = field.kind in _ACCEPTS[kind]
    if fits and kind == "integers":
        fits = kind_of(items_of(field)) in _ACCEPTS["integer"]
    if not fits:
        raise CorruptTable(file, f"{name} is stored as {field.kind}, not as {kind}")


def to_array(values: list[Any], type: pa.DataType, *, file: str, name: str) -> pa.Array:
    """Return a column of values that were read from Avro."""
    try:
        return pa.array(values, type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise CorruptTable(file, f"{name} holds a value out of range: {error}") from error
