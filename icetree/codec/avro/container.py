"""Avro files of rows: a header, then blocks of records, read a run of blocks at a time.

Where blocks begin stands only in the blocks before: a file is walked once, block by block, and what
each claims is held against its end and the process's limits.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import fastavro
import pyarrow as pa

from icetree.codec import limits
from icetree.codec.avro.avro import HEADER, MAGIC, Json, kind_of, without_logical_types
from icetree.codec.avro.blocks import DECODERS, SYNC_BYTES, decompress, varint_at
from icetree.codec.avro.schema import broken_rule, takes_no_bytes
from icetree.codec.unpack import UNREADABLE, OverLimit
from icetree.errors import CorruptTable

#: Of a file: its first bytes, in which the header most likely ends.
_FIRST_BYTES: Final = 64 * 1024
#: A file up to this size is read at once, and kept; of a larger one, so much is held at a time.
_KEPT_BYTES: Final = 64 * 1024 * 1024
_WINDOW_BYTES: Final = 8 * 1024 * 1024
#: Runs of blocks have about so many bytes, as they are stored.
_RUN_BYTES: Final = 4 * 1024 * 1024
_NUMBERS_BYTES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Some blocks in a row."""

    offset: int
    length: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """An Avro file of rows whose header is read and whose blocks are found."""

    file: str
    #: As the header has it, logical types and all.
    schema: Json
    codec: str
    sync: bytes
    runs: tuple[Run, ...]
    source: Any

    def records(self, run: Run, schema: Json) -> Iterator[dict[str, Any]]:
        """Yield the records of a run, plain; `schema` may leave fields of the file's out."""
        content = self.source.read_at(run.length, run.offset)
        if self.codec != "null":
            content = self._unpacked(content)
        plain = io.BytesIO()
        told = {
            "avro.schema": json.dumps(without_logical_types(self.schema)).encode(),
            "avro.codec": b"null",
        }
        fastavro.schemaless_writer(plain, HEADER, {"magic": MAGIC, "meta": told, "sync": self.sync})
        plain.write(content)
        plain.seek(0)
        # fastavro has no error of its own: broken bytes surface as whatever they led to.
        try:
            yield from fastavro.reader(plain, reader_schema=schema)  # type: ignore[misc]
        except CorruptTable:
            raise
        except Exception as error:
            raise CorruptTable(self.file, f"broken Avro data: {error}") from error

    def _unpacked(self, content: bytes) -> bytes:
        try:
            return decompress(content, self.codec, limits.ROW_GROUP.bytes)
        except OverLimit:
            raise limits.ROW_GROUP.exceeded(self.file, "its Avro blocks unpack to more") from None
        except UNREADABLE as error:
            raise CorruptTable(self.file, f"broken Avro data: {error}") from error


def open_container(source: pa.NativeFile, *, file: str) -> Container:
    """Read the header of an Avro file whose rows are records, and find its blocks."""
    size = source.size()
    if size <= _KEPT_BYTES:
        source = pa.BufferReader(source.read_at(size, 0))
    metadata, sync, start = _header(source, size, file)
    codec = metadata.get("avro.codec", b"null").decode(errors="replace")
    if codec != "null" and codec not in DECODERS:
        raise CorruptTable(file, f"unknown Avro codec {codec!r}")
    try:
        schema = json.loads(metadata["avro.schema"])
    except (KeyError, ValueError, RecursionError) as error:
        raise CorruptTable(file, f"broken Avro header: {error!r}") from None
    if kind_of(schema) != "record":
        raise CorruptTable(file, "the Avro schema is not a record")
    if broken := broken_rule(schema):
        raise CorruptTable(file, broken)
    if takes_no_bytes(schema):
        raise CorruptTable(file, "its rows take no bytes, so nothing tells how many there are")
    try:
        runs = tuple(_runs(_Windows(source, size), start, sync))
    except ValueError as error:
        raise CorruptTable(file, f"broken Avro data: {error}") from None
    return Container(file=file, schema=schema, codec=codec, sync=sync, runs=runs, source=source)


def _header(source: Any, size: int, file: str) -> tuple[dict[str, bytes], bytes, int]:
    """Return the metadata of a header, the marker that ends blocks, and where the first one is."""
    length = min(size, _FIRST_BYTES)
    while True:
        data = source.read_at(length, 0)
        if data[:4] != MAGIC:
            raise CorruptTable(file, "not an Avro file: wrong magic bytes")
        stream = io.BytesIO(data)
        try:
            header: Any = fastavro.schemaless_reader(stream, HEADER, None)
            return header["meta"], header["sync"], stream.tell()
        except Exception as error:
            if length == size:
                raise CorruptTable(file, f"broken Avro header: {error!r}") from error
        length = min(size, length * 16)
        limits.METADATA.require(length, file=file, what="its Avro header")


class _Windows:
    """A file's bytes from anywhere on: one window of them is held."""

    def __init__(self, source: Any, size: int) -> None:
        self._source = source
        self.size = size
        self._start = 0
        self._held = b""

    def at(self, offset: int, length: int) -> bytes:
        """Return bytes, fewer where the file ends."""
        at = offset - self._start
        if at < 0 or at + length > len(self._held):
            self._start, at = offset, 0
            self._held = self._source.read_at(min(_WINDOW_BYTES, self.size - offset), offset)
        return self._held[at : at + length]


def _runs(windows: _Windows, start: int, sync: bytes) -> Iterator[Run]:
    at = first = start
    rows = 0
    while at < windows.size:
        head = windows.at(at, _NUMBERS_BYTES)
        count, used = varint_at(head, 0)
        length, used = varint_at(head, used)
        end = at + used + (length >> 1)
        if count & 1 or length & 1 or end + SYNC_BYTES > windows.size:
            raise ValueError("a block does not end inside the file")
        if windows.at(end, SYNC_BYTES) != sync:
            raise ValueError("a block does not end with the marker of the file")
        rows += count >> 1
        at = end + SYNC_BYTES
        if at - first >= _RUN_BYTES:
            yield Run(offset=first, length=at - first, rows=rows)
            first, rows = at, 0
    if rows:
        yield Run(offset=first, length=at - first, rows=rows)


def only(schema: Json, names: Sequence[str]) -> Json:
    """Return a record's schema with some of its fields alone; all of it where types have namespaces.

    A type with a name that a field left out tells is told where it is met next.
    """
    plain = without_logical_types(schema)
    if '"namespace"' in json.dumps(plain):
        return plain
    named: dict[str, Json] = {}
    _gather(plain["fields"], named)
    kept = [each for each in plain["fields"] if each["name"] in names]
    return {**plain, "fields": _told_again(kept, named, set())}


def _gather(schema: Json, named: dict[str, Json]) -> None:
    match schema:
        case dict():
            if schema.get("type") in ("record", "fixed", "enum", "error") and "name" in schema:
                named.setdefault(schema["name"], schema)
            for value in schema.values():
                _gather(value, named)
        case list():
            for each in schema:
                _gather(each, named)


def _told_again(schema: Json, named: dict[str, Json], told: set[str]) -> Json:
    match schema:
        case str() if schema in named and schema not in told:
            return _told_again(named[schema], named, told)
        case list():
            return [_told_again(each, named, told) for each in schema]
        case {"type": "record" | "error", "fields": fields, "name": name}:
            told.add(name)
            inner = [{**each, "type": _told_again(each["type"], named, told)} for each in fields]
            return {**schema, "fields": inner}
        case {"type": "fixed" | "enum", "name": name}:
            told.add(name)
            return schema
        case {"type": "array", "items": items}:
            return {**schema, "items": _told_again(items, named, told)}
        case {"type": "map", "values": values}:
            return {**schema, "values": _told_again(values, named, told)}
        case {"type": inner}:
            return {**schema, "type": _told_again(inner, named, told)}
    return schema
