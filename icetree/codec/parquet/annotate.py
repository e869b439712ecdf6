"""What columns of a Parquet file mean, told in its footer where Arrow's writer cannot tell it.

Arrow writes neither variants nor all geographies. Their columns are plain bytes with a note on the
side, so the note is all that is missing: a field more of an element of the schema.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from icetree.codec.parquet.footer import schema_at
from icetree.codec.parquet.thrift import BINARY, I32, STRUCT, Wanted, read_list_head, read_struct

_TAIL: Final = struct.Struct("<I4s")
_FIELD_ID: Final = 9
_LOGICAL: Final = 10
#: Fields of an element of the schema, the last of which is its logical type.
_ELEMENT: Final = {
    **dict.fromkeys((1, 2, 3, 5, 6, 7, 8, _FIELD_ID), Wanted(I32)),
    4: Wanted(BINARY),
    _LOGICAL: Wanted(STRUCT),
}
_STOP: Final = b"\0"

#: The logical type of a variant, of the first version of its encoding.
VARIANT: Final = b"\x0c\x20" + b"\x13\x01" + _STOP + _STOP


def geometry(crs: str | None) -> bytes:
    """Return the logical type of geometries; None for the default reference system."""
    return b"\x0c\x22" + _crs(crs) + _STOP + _STOP


def geography(crs: str | None, edges: int) -> bytes:
    """Return the logical type of geographies, whose edges Parquet numbers."""
    ahead = 2 if crs is None else 1
    way = bytes([ahead << 4 | I32, edges << 1])
    return b"\x0c\x24" + _crs(crs) + way + _STOP + _STOP


def _crs(crs: str | None) -> bytes:
    if crs is None:
        return b""
    content = crs.encode()
    return bytes([1 << 4 | BINARY]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def annotated(content: bytes, types: Mapping[int, bytes]) -> bytes:
    """Return a Parquet file of ours in which columns have logical types, by field id."""
    if not types:
        return content
    length, magic = _TAIL.unpack(content[-_TAIL.size :])
    start = len(content) - _TAIL.size - length
    footer = content[start : start + length]
    at = schema_at(footer)
    count, at = read_list_head(footer, at, STRUCT)
    parts, copied = [], 0
    for _ in range(count):
        element, at = read_struct(footer, at, _ELEMENT)
        type = types.get(element.get(_FIELD_ID, -1))
        if type is not None and _LOGICAL not in element:
            # Before the end of the element: each field says how far its number is from the last.
            parts += [footer[copied : at - 1], bytes([_LOGICAL - max(element) << 4 | STRUCT]), type]
            copied = at - 1
    footer = b"".join([*parts, footer[copied:]])
    return content[:start] + footer + _TAIL.pack(len(footer), magic)
