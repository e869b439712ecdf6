"""Blocks of Avro files, unpacked here: within a limit, and in codecs that the Avro reader lacks."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

from icetree.codec import unpack

SYNC_BYTES: Final = 16
_CRC_BYTES: Final = 4
_VARINT_BYTES: Final = 10


def _snappy(block: bytes, most: int) -> bytes:
    # Avro appends the checksum of the plain bytes, which Snappy itself does not have.
    packed, crc = block[:-_CRC_BYTES], block[-_CRC_BYTES:]
    plain = unpack.snappy_block(packed, most)
    if zlib.crc32(plain).to_bytes(_CRC_BYTES, "big") != crc:
        raise ValueError("wrong checksum of a Snappy block")
    return plain


#: Of every codec but `null`. Each is given the most bytes that there may be.
DECODERS: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    "deflate": unpack.inflate,
    "bzip2": unpack.bunzip2,
    "xz": unpack.unxz,
    "snappy": _snappy,
    "zstandard": unpack.zstandard,
}


def decompress(blocks: bytes, codec: str, most: int) -> bytes:
    """Return the blocks of a file, everything after its header, with codec `null`.

    Raises one of `unpack.UNREADABLE` when they are broken, and `unpack.OverLimit` when there
    would be more bytes than `most`.
    """
    decode = DECODERS[codec]
    found = bytearray()
    at = 0
    while at < len(blocks):
        start = at
        _, at = varint_at(blocks, at)
        count = blocks[start:at]
        zigzag, at = varint_at(blocks, at)
        end = at + (zigzag >> 1) + SYNC_BYTES
        if zigzag & 1 or end > len(blocks):
            raise ValueError("a block does not end inside the file")
        plain = decode(blocks[at : end - SYNC_BYTES], most - len(found))
        found += count + _to_varint(len(plain) << 1) + plain + blocks[end - SYNC_BYTES : end]
        at = end
    return bytes(found)


def varint_at(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at a place, its sign in the lowest bit, and where it ends."""
    value = 0
    for index, byte in enumerate(data[at : at + _VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, at + index + 1
    raise ValueError("a number does not end")


def _to_varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
