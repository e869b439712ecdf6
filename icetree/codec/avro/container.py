"""Avro files of rows: a header, then blocks of records, read a run of blocks at a time.

Where blocks begin stands only in the blocks before: a file is walked once, block by block, and what
each claims is held against its end and the process's limits.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import fastavro
import pyarrow as pa

from icetree.codec import limits
from icetree.codec.avro.avro import HEADER, MAGIC, Json, kind_of
from icetree.codec.avro.blocks import DECODERS, SYNC_BYTES, varint_at
from icetree.codec.avro.schema import broken_rule, takes_no_bytes
from icetree.codec.json_text import require_modest
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
#: Blocks of so many bytes are unpacked and read together.
_PORTION_BYTES: Final = 16 * 1024 * 1024


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
    runs: tuple[Run, ...]
    source: Any

    def portions(self, run: Run) -> Iterator[tuple[list[bytes], list[int]]]:
        """Yield the blocks of a run, unpacked, and how many records each has; some at a time."""
        content = self.source.read_at(run.length, run.offset)
        blocks: list[bytes] = []
        counts: list[int] = []
        at, allowed = 0, limits.ROW_GROUP.bytes
        while at < len(content):
            count, at = varint_at(content, at)
            length, at = varint_at(content, at)
            end = at + (length >> 1)
            blocks.append(self._unpacked(content[at:end], allowed))
            counts.append(count >> 1)
            allowed -= len(blocks[-1])
            at = end + SYNC_BYTES
            if sum(map(len, blocks)) >= _PORTION_BYTES:
                yield blocks, counts
                blocks, counts = [], []
        if blocks:
            yield blocks, counts

    def _unpacked(self, block: bytes, allowed: int) -> bytes:
        if self.codec == "null":
            return block
        try:
            return DECODERS[self.codec](block, allowed)
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
    require_modest(metadata.get("avro.schema", b""), file=file)
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
    return Container(file=file, schema=schema, codec=codec, runs=runs, source=source)


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
