"""Avro container files, written from records that are pieces of columns."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from icetree.codec.avro.avro import MAGIC, Json
from icetree.codec.avro.pieces import Piece, varint

#: Records are made so many at a time: what they take in memory stays small.
BLOCK_ROWS: Final = 4096
_CODEC: Final = "deflate"
#: Commits wait for this: a third of the usual time for a few more bytes.
_LEVEL: Final = 1


def write_avro(
    schema: Json, metadata: Mapping[str, str], size: int, records: Callable[[int, int], Piece]
) -> bytes:
    """Return a file of so many records; `records` gives those from a first one to before another.

    The same records give the same bytes.
    """
    header = _header(schema, metadata)
    sync = hashlib.sha256(header).digest()[:16]
    found = [header, sync]
    for start in range(0, size, BLOCK_ROWS):
        end = min(start + BLOCK_ROWS, size)
        packed = _packed(_content(records(start, end)))
        found += [varint(end - start), varint(len(packed)), packed, sync]
    return b"".join(found)


def _header(schema: Json, metadata: Mapping[str, str]) -> bytes:
    told = {
        **metadata,
        "avro.schema": json.dumps(schema, separators=(",", ":")),
        "avro.codec": _CODEC,
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


def _packed(content: memoryview) -> bytes:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()
