"""Blocks of Avro files in codecs that Arrow can read and the Avro reader, as installed, cannot."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

import pyarrow as pa

_SYNC_BYTES: Final = 16
_CRC_BYTES: Final = 4
_VARINT_BYTES: Final = 10


def _snappy(block: bytes) -> bytes:
    # Avro appends the checksum of the plain bytes, which Snappy itself does not have.
    packed, crc = block[:-_CRC_BYTES], block[-_CRC_BYTES:]
    size, _ = _varint(packed, 0)
    plain: bytes = pa.decompress(packed, size, codec="snappy", asbytes=True)
    if zlib.crc32(plain).to_bytes(_CRC_BYTES, "big") != crc:
        raise ValueError("wrong checksum of a Snappy block")
    return plain


def _zstandard(block: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
        return stream.read()  # type: ignore[no-any-return]


DECODERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "snappy": _snappy,
    "zstandard": _zstandard,
}


def decompress(blocks: bytes, codec: str) -> bytes:
    """Return the blocks of a file, everything after its header, with codec `null`.

    Raises ValueError or an Arrow error when they are broken.
    """
    decode = DECODERS[codec]
    found = bytearray()
    at = 0
    while at < len(blocks):
        start = at
        _, at = _varint(blocks, at)
        count = blocks[start:at]
        zigzag, at = _varint(blocks, at)
        end = at + (zigzag >> 1) + _SYNC_BYTES
        if zigzag & 1 or end > len(blocks):
            raise ValueError("a block does not end inside the file")
        plain = decode(blocks[at : end - _SYNC_BYTES])
        found += count + _to_varint(len(plain) << 1) + plain + blocks[end - _SYNC_BYTES : end]
        at = end
    return bytes(found)


def _varint(data: bytes, at: int) -> tuple[int, int]:
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
