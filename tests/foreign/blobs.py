"""Bitmaps, Puffin files and Avro manifests, written by the specification."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

from pyroaring import BitMap, BitMap64

from tests.foreign.columns import Plain
from tests.foreign.transforms import bare

_MAGIC = b"PFA1"
_DV_MAGIC = b"\xd1\xd3\x39\x64"


def bitmap(positions: set[int]) -> bytes:
    """Return a portable Roaring bitmap."""
    return BitMap(sorted(positions)).serialize()


def vector(positions: set[int]) -> bytes:
    """Return a `deletion-vector-v1` blob."""
    body = _DV_MAGIC + BitMap64(sorted(positions)).serialize()
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def puffin(vectors: list[tuple[str, set[int]]]) -> tuple[bytes, list[tuple[int, int]]]:
    """Return a Puffin file of deletion vectors by file, and where each stands in it."""
    content, places, told = _MAGIC, [], []
    for name, positions in vectors:
        blob = vector(positions)
        places.append((len(content), len(blob)))
        told.append(
            {
                "type": "deletion-vector-v1",
                "fields": [2147483645],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(content),
                "length": len(blob),
                "properties": {"referenced-data-file": name, "cardinality": str(len(positions))},
            }
        )
        content += blob
    payload = json.dumps({"blobs": told, "properties": {"created-by": "another writer"}}).encode()
    footer = _MAGIC + payload + struct.pack("<i", len(payload)) + b"\0\0\0\0" + _MAGIC
    return content + footer, places


def single_value(type: Plain, value: Any) -> bytes:
    """Return a bound as manifests of before v4 have it."""
    if isinstance(value, bool):
        return b"\1" if value else b"\0"
    found = bare(value)
    if isinstance(found, bytes):
        return found
    layout = {"int": "<i", "date": "<i", "float": "<f", "double": "<d"}
    return struct.pack(layout.get(type.name, "<q"), found)
