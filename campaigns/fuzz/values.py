"""What is attacked beside files: filters of clients, encrypted streams, geometries and variants."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from functools import cache
from typing import Final

import pyarrow as pa
from pyiceberg.types import LongType, StringType

from campaigns.fuzz import sound_lake
from icetree.codec import wkb
from icetree.codec.encryption import stream
from icetree.codec.encryption.key_metadata import FileKey
from icetree.codec.variant import read as variants
from icetree.codec.variant.write import encode
from icetree.errors import InvalidInput
from icetree.filters.filter import parse_filter
from icetree.filters.from_json import filter_from_json
from icetree.filters.to_json import filter_to_json
from icetree.rows.variant import extracted
from icetree.spec.schema.shape import Shape
from icetree.tree.prune.bind import bind

_KEY: Final = FileKey(key=bytes(range(16)), aad_prefix=b"prefix")
_PAIR: Final = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])


@cache
def _shape() -> Shape:
    return sound_lake.table().metadata.shape()


# --- filters of clients --------------------------------------------------------------------------


def json_filters() -> list[bytes]:
    """Filters as clients of REST send them."""
    schema = _shape().schema
    texts = (
        "id = 3 and not (country in ('DE', 'it') or x is nan)",
        "bucket(16, id) = 3",
        "x < 1.5",
    )
    told = [filter_to_json(parse_filter(each), schema) for each in texts]
    told.append({"type": "lt", "left": {"type": "reference", "name": "id"}, "right": 3})
    return [json.dumps(each).encode() for each in told]


def json_filter(data: bytes) -> None:
    """Read a filter, and bind it to a table."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    shape = _shape()
    bind(filter_from_json(document, shape.schema), shape, case_sensitive=True)


# --- encrypted streams ---------------------------------------------------------------------------


def streams() -> list[bytes]:
    """Encrypted files, an empty one too."""
    return [stream.encrypt(text, _KEY) for text in (b"", b"a" * 40, bytes(range(256)))]


def encrypted(data: bytes) -> None:
    """Decrypt a stream: what comes out is what went in, whatever was done to it."""
    text = stream.decrypt(data, replace(_KEY, length=len(data)), file="stream")
    if text not in (b"", b"a" * 40, bytes(range(256))):
        raise AssertionError("another text came out")


# --- geometries and variants ---------------------------------------------------------------------


def geometries() -> list[bytes]:
    """A point, a line and a polygon with a hole, of either order of bytes."""
    ring = struct.pack("<I6d", 3, 0, 0, 1, 1, 2, 0)
    return [
        struct.pack("<BI2d", 1, 1, 1.5, -2.5),
        struct.pack(">BII4d", 0, 2, 2, 0, 0, 3, 4),
        struct.pack("<BII", 1, 3, 2) + ring + ring,
        struct.pack("<BII", 1, 7, 1) + struct.pack("<BI3d", 1, 1001, 1, 2, 3),
    ]


def geometry(data: bytes) -> None:
    """Find the boxes of a geometry, alone and between others."""
    for edges in (None, "spherical"):
        wkb.boxes(pa.array([data, None, data], pa.binary()), edges=edges)


def variant_pairs() -> list[bytes]:
    """Variants: the length of the metadata, the metadata, the value."""
    held = ({"a": 1, "b": {"b": "text"}}, [1, None, "two"], 3.5, True, "t" * 70, {"a": {"b": [1]}})
    made = map(encode, held)
    return [struct.pack("<H", len(names)) + names + value for names, value in made]


def variant(data: bytes) -> None:
    """Hold a variant to its rules, and take values out of it."""
    (length,) = struct.unpack("<H", data[:2].ljust(2, b"\0"))
    metadata, value = data[2 : 2 + length], data[2 + length :]
    for path in (("a",), ("a", "b"), ()):
        for type in (LongType(), StringType()):
            extracted(pa.array([{"metadata": metadata, "value": value}], _PAIR), path, type)
    try:
        variants.require_sound(metadata, value)
    except (variants.Malformed, InvalidInput):
        return
    list(variants.leaves(value, variants.names(metadata)))
