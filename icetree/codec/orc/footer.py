"""The tail of an ORC file: how many rows each stripe has, looked at before anything is read by it.

Arrow reads stripes, but does not tell of their rows; and what a file claims is held against its own
size and the process's limits here, first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from icetree.codec import limits, unpack
from icetree.codec.orc.protobuf import Broken, fields_of, number_in
from icetree.errors import CorruptTable

MAGIC: Final = b"ORC"
#: The end of a file, of which most is known after one read.
_TAIL_BYTES: Final = 16 * 1024
#: Length and mark of a part that was compressed by itself.
HEAD_BYTES: Final = 3
#: Codecs by their numbers in a file; without a name, of no compression.
CODECS: Final = {0: "", 1: "zlib", 2: "snappy", 4: "lz4", 5: "zstd"}
#: Numbers of fields: of the postscript, of the footer, of a stripe.
FOOTER_BYTES, COMPRESSION, BLOCK_BYTES, METADATA_BYTES, _MAGIC = 1, 2, 3, 5, 8000
STRIPES, _ROWS = 3, 6
_OFFSET, _INDEX_BYTES, _DATA_BYTES, _STRIPE_FOOTER_BYTES, _STRIPE_ROWS = 1, 2, 3, 4, 5
DEFAULT_BLOCK_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Stripe:
    """A run of rows, which is read at once."""

    offset: int
    rows: int


def read_stripes(source: pa.NativeFile, *, file: str) -> tuple[Stripe, ...]:
    """Return the stripes of an ORC file, which lie within it one after the other."""
    try:
        return _stripes(source, file)
    except Broken as error:
        raise CorruptTable(file, f"broken ORC footer: {error}") from None
    except unpack.OverLimit:
        raise limits.METADATA.exceeded(file, "its ORC footer unpacks to more") from None
    except unpack.UNREADABLE as error:
        raise CorruptTable(file, f"broken ORC footer: {error}") from error


def _stripes(source: pa.NativeFile, file: str) -> tuple[Stripe, ...]:
    size = source.size()
    source.seek(max(0, size - _TAIL_BYTES))
    tail = source.read()
    if size < len(MAGIC) + 1 or tail[-1] >= len(tail):
        raise Broken("the file is too short")
    told = dict(fields_of(tail[-1 - tail[-1] : -1]))
    if told.get(_MAGIC, MAGIC) != MAGIC:
        raise Broken("wrong magic bytes")
    after = 1 + tail[-1]
    length = number_in(told, FOOTER_BYTES, "the length of the footer")
    content_end = size - after - length - number_in(told, METADATA_BYTES, "a length")
    if content_end < 0:
        raise Broken("it is longer than the file")
    limits.METADATA.require(length, file=file, what="its ORC footer")
    if length + after > len(tail):
        source.seek(size - after - length)
        tail = source.read()
    packed = tail[len(tail) - after - length : len(tail) - after]
    footer = unpacked(packed, told)
    rows, found, end = 0, [], 0
    for number, value in fields_of(footer):
        if number == _ROWS and isinstance(value, int):
            rows = value
        elif number == STRIPES and isinstance(value, bytes):
            stripe, end = _stripe(value, end)
            found.append(stripe)
    if end > content_end:
        raise Broken("a stripe does not end inside the file")
    if sum(each.rows for each in found) != rows:
        raise Broken(f"its stripes do not have {rows} rows together")
    return tuple(found)


def _stripe(message: bytes, after: int) -> tuple[Stripe, int]:
    """Return a stripe, which begins after the one before, and where it ends."""
    told = dict(fields_of(message))
    offset = number_in(told, _OFFSET, "where a stripe starts")
    parts = (_INDEX_BYTES, _DATA_BYTES, _STRIPE_FOOTER_BYTES)
    if offset < after:
        raise Broken("a stripe starts within another")
    end = offset + sum(number_in(told, part, "the length of a stripe") for part in parts)
    return Stripe(offset=offset, rows=number_in(told, _STRIPE_ROWS, "a number of rows")), end


def unpacked(packed: bytes, told: dict[int, Any]) -> bytes:
    """Return a part of a file as it was before it was packed; `told` is the file's postscript."""
    codec = CODECS.get(number_in(told, COMPRESSION, "the compression"))
    if codec is None:
        raise Broken(f"there is no reader for compression {told[COMPRESSION]}")
    if not codec:
        return packed
    block = number_in(told, BLOCK_BYTES, "the size of blocks") or DEFAULT_BLOCK_BYTES
    most = limits.METADATA.bytes
    found, at = bytearray(), 0
    while at < len(packed):
        head = int.from_bytes(packed[at : at + HEAD_BYTES], "little")
        start, end = at + HEAD_BYTES, at + HEAD_BYTES + (head >> 1)
        if end > len(packed):
            raise Broken("it ends in the middle")
        part = packed[start:end]
        found += part if head & 1 else _plain(part, codec, min(block, most - len(found)))
        if len(found) > most:
            raise unpack.OverLimit
        at = end
    return bytes(found)


def _plain(part: bytes, codec: str, most: int) -> bytes:
    match codec:
        case "zlib":
            return unpack.inflate(part, most)
        case "zstd":
            return unpack.zstandard(part, most)
        case "lz4":
            return unpack.lz4_block(part, most)
    return unpack.snappy_block(part, most)
