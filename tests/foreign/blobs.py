"""Bitmaps, Puffin files and Avro manifests, written by the specification."""

from __future__ import annotations

import json
import struct
import zlib
from random import Random
from typing import Any

import pyarrow as pa
from pyroaring import BitMap, BitMap64

from tests.foreign.columns import Json, Plain
from tests.foreign.transforms import bare

_MAGIC = b"PFA1"
_DV_MAGIC = b"\xd1\xd3\x39\x64"


def bitmap(positions: set[int], rng: Random | None = None) -> bytes:
    """Return a portable Roaring bitmap, perhaps with runs."""
    found = BitMap(sorted(positions))
    if rng is not None and rng.random() < 0.5:
        found.run_optimize()
    return found.serialize()


def vector(positions: set[int], rng: Random | None = None) -> bytes:
    """Return a `deletion-vector-v1` blob, perhaps with bitmaps that hold nothing."""
    body = _DV_MAGIC + BitMap64(sorted(positions)).serialize()
    if rng is not None and rng.random() < 0.5 and max(positions, default=0) < 1 << 32:
        empty = rng.randrange(3)
        bitmaps = [bitmap(positions, rng), *(bitmap(set()) for _ in range(empty))]
        keyed = b"".join(struct.pack("<I", key) + each for key, each in enumerate(bitmaps))
        body = _DV_MAGIC + struct.pack("<Q", len(bitmaps)) + keyed
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def puffin(
    vectors: list[tuple[str, set[int]]], rng: Random | None = None
) -> tuple[bytes, list[tuple[int, int]]]:
    """Return a Puffin file of deletion vectors by file, and where each stands in it."""
    content, places, told = _MAGIC, [], []
    if rng is not None and rng.random() < 0.3:
        content, told = _with_another(content)
    for name, positions in vectors:
        blob = vector(positions, rng)
        if rng is not None and rng.random() < 0.1:
            # The same once more, which nobody names.
            content += blob
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
    flags = b"\0\0\0\0"
    if rng is not None and rng.random() < 0.3:
        payload, flags = bytes(pa.compress(payload, "lz4", asbytes=True)), b"\1\0\0\0"
    footer = _MAGIC + payload + struct.pack("<i", len(payload)) + flags + _MAGIC
    return content + footer, places


def _with_another(content: bytes) -> tuple[bytes, list[Json]]:
    """Return the content of a file with a blob of a type that nobody knows, and what tells of it."""
    blob = {
        "type": "another-writers-v7",
        "fields": [1, 2],
        "snapshot-id": 5,
        "sequence-number": 1,
        "offset": len(content),
        "length": 9,
        "compression-codec": "zstd",
    }
    return content + b"some zstd", [blob]


def single_value(type: Plain, value: Any) -> bytes:
    """Return a bound as manifests of before v4 have it."""
    if isinstance(value, bool):
        return b"\1" if value else b"\0"
    found = bare(value)
    if isinstance(found, bytes):
        return found
    layout = {"int": "<i", "date": "<i", "float": "<f", "double": "<d"}
    return struct.pack(layout.get(type.name, "<q"), found)
