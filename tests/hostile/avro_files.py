"""Avro files made by hand, byte by byte: what no writer would write."""

from __future__ import annotations

import json
from typing import Any

from icetree.codec.avro.avro import open_avro
from tests.codec import avro_manifests as avro

FILE = "memory://w/file"


def avro_header(codec: str) -> tuple[bytes, bytes]:
    """Return the header of a manifest that is packed so, and the mark that ends its blocks."""
    whole = avro.manifest(2, avro.entry("s3://b/t/a"), codec="null")
    sync = whole[-16:]
    return whole[: whole.index(sync) + 16].replace(b"\x08null", avro_text(codec)), sync


def avro_block(packed: bytes, sync: bytes) -> bytes:
    """Return a block of one row."""
    return b"\x02" + varint(len(packed) << 1) + packed + sync


def avro_text(text: str) -> bytes:
    content = text.encode()
    return varint(len(content) << 1) + content


def varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def with_schema(schema: Any, rows: bytes, count: int = 1) -> bytes:
    """An Avro file with this schema and a block of these bytes."""
    return with_schema_text(json.dumps(schema), rows, count)


def with_schema_text(text: str, rows: bytes, count: int = 1) -> bytes:
    """An Avro file whose header has this for its schema."""
    sync = bytes(16)
    header = b"Obj\x01\x02" + avro_text("avro.schema") + avro_text(text) + b"\0" + sync
    return header + varint(count << 1) + varint(len(rows) << 1) + rows + sync


def read_avro(data: bytes) -> None:
    """Read every row of an Avro file."""
    list(open_avro(data, file=FILE).rows())
