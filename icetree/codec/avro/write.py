"""Avro container files, written from records that are pieces of columns."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from icetree.codec.avro.avro import MAGIC, Json
from icetree.codec.avro.pieces import Piece, varint

#: Records are made so many at a time: what they take in memory stays small.
BLOCK_ROWS: Final = 4096
#: Codecs by the names that Iceberg's properties have for them.
_CODECS: Final = {
    "gzip": "deflate",
    "zstd": "zstandard",
    "snappy": "snappy",
    "uncompressed": "null",
}
#: Commits wait for this: a third of the usual time for a few more bytes.
_LEVEL: Final = 1


class AvroBlocks:
    """A file that is written block by block; the same records give the same bytes."""

    def __init__(
        self,
        write: Callable[[bytes], object],
        schema: Json,
        metadata: Mapping[str, str],
        *,
        codec: str = "gzip",
        level: int | None = None,
    ) -> None:
        self._write = write
        self._codec = codec
        self._level = level
        header = _header(schema, metadata, _CODECS[codec])
        self._sync = hashlib.sha256(header).digest()[:16]
        write(header + self._sync)

    def add(self, records: Piece, rows: int) -> None:
        """Write records as a block."""
        packed = _packed(_content(records), self._codec, self._level)
        self._write(b"".join([varint(rows), varint(len(packed)), packed, self._sync]))


def write_avro(
    schema: Json, metadata: Mapping[str, str], size: int, records: Callable[[int, int], Piece]
) -> bytes:
    """Return a file of so many records; `records` gives those from a first one to before another.

    The same records give the same bytes.
    """
    found: list[bytes] = []
    blocks = AvroBlocks(found.append, schema, metadata)
    for start in range(0, size, BLOCK_ROWS):
        end = min(start + BLOCK_ROWS, size)
        blocks.add(records(start, end), end - start)
    return b"".join(found)


def _header(schema: Json, metadata: Mapping[str, str], codec: str) -> bytes:
    told = {
        **metadata,
        "avro.schema": json.dumps(schema, separators=(",", ":")),
        "avro.codec": codec,
    }
    pairs = b"".join(_text(name) + _text(value) for name, value in told.items())
    return b"".join([MAGIC, varint(len(told)), pairs, varint(0)])


def _text(text: str) -> bytes:
    stored = text.encode()
    return varint(len(stored)) + stored


def _content(records: Piece) -> memoryview:
    """Return the bytes of all records: they lie side by side already."""
    _, offsets, content = records.buffers()
    ends = np.frombuffer(offsets, np.int32)[records.offset : records.offset + len(records) + 1]
    return memoryview(content)[int(ends[0]) : int(ends[-1])]


def _packed(content: memoryview, codec: str, level: int | None) -> bytes:
    match codec:
        case "gzip":
            chosen = _LEVEL if level is None else level
            packer = zlib.compressobj(chosen, zlib.DEFLATED, -zlib.MAX_WBITS)
            return packer.compress(content) + packer.flush()
        case "zstd":
            packed: bytes = pa.Codec("zstd", level).compress(content, asbytes=True)
            return packed
        case "snappy":
            # Avro appends the checksum of the plain bytes, which Snappy itself does not have.
            crc = zlib.crc32(content).to_bytes(4, "big")
            return bytes(pa.compress(content, "snappy", asbytes=True)) + crc
    return bytes(content)
