"""LZ4 as Hadoop leaves it: blocks, each after what it unpacks to and how long it is.

A block of many bytes is in parts, which say how long they are, and not what they unpack to. Some
writers left a bare block of LZ4 under the same name. Arrow reads the latter, and blocks of one part.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from icetree.codec.parquet.thrift import Broken, Data
from icetree.codec.unpack import UNREADABLE, OverLimit, lz4_block_size

_SIZES: Final = struct.Struct(">II")
_SIZE: Final = struct.Struct(">I")
_CODEC: Final = "lz4_raw"


def unpacked(content: Data, size: int) -> bytes:
    """Unpack what Arrow would, which tries blocks first, and takes the rest for a bare one.

    So that no other bytes are looked at than it decodes, what has the form of blocks must be blocks.
    """
    if not content:
        return b""
    codec = pa.Codec(_CODEC)
    if not _is_of_blocks(content, size):
        return bytes(codec.decompress(content, size))
    return b"".join(_block(codec, block, held) for block, held in _blocks(content))


def _block(codec: pa.Codec, block: Data, held: int) -> bytes:
    found = bytes(codec.decompress(block, held))
    try:
        if held:
            codec.decompress(block, held - 1)
    except UNREADABLE:
        return found
    if held:
        raise Broken(f"a block of LZ4 says that it unpacks to {held} bytes, which are fewer")
    return found


def _is_of_blocks(content: Data, size: int) -> bool:
    end = 0
    for block, held in _blocks(content):
        end += _SIZES.size + len(block)
        size -= held
        if size < 0 or not block:
            return False
    return end == len(content) and size == 0


def _blocks(content: Data) -> Iterator[tuple[Data, int]]:
    """Yield blocks of one part and what each unpacks to, as long as there is any that is whole."""
    at = 0
    while at + _SIZES.size <= len(content):
        held, packed = _SIZES.unpack_from(content, at)
        at += _SIZES.size
        if packed > len(content) - at:
            return
        yield content[at : at + packed], held
        at += packed


def is_in_parts(content: Data, size: int) -> bool:
    """Tell whether this unpacks to so many bytes, but not by Arrow."""
    if _is_of_blocks(content, size):
        return False
    at = 0
    try:
        while at < len(content):
            (held,) = _SIZE.unpack_from(content, at)
            size, at = size - held, at + _SIZE.size
            if held == 0 or size < 0:
                return False
            while held:
                (packed,) = _SIZE.unpack_from(content, at)
                at += _SIZE.size
                found = lz4_block_size(content[at : at + packed], held)
                if not found:
                    return False
                held, at = held - found, at + packed
    except (*UNREADABLE, OverLimit, struct.error):
        return False
    return size == 0 and at == len(content)
