"""Compressed bytes, unpacked up to a limit: a few of them can stand for any number."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

_STEP_BYTES: Final = 1024 * 1024
#: What a file of several is read by at first, and then by twice as much each time.
_FIRST_BYTES: Final = 512
_GZIP: Final = 31
_RAW: Final = -15
#: A size of 32 bits takes at most so many bytes, seven bits in each.
_SIZE_BYTES: Final = 5

#: What broken bytes raise.
UNREADABLE: Final = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, pa.ArrowException)


class OverLimit(Exception):
    """There is more than the limit allows."""


def gunzip(packed: bytes, most: int) -> bytes:
    """Unpack a gzip file, which may be several in a row."""
    found, at = bytearray(), 0
    # Zeros at the end are padding, as the `gzip` program takes them.
    while at < len(packed) and not (packed[at] == 0 and packed.count(0, at) == len(packed) - at):
        at = _member(packed, at, found, most)
    if not found:
        raise EOFError("there is nothing in it")
    return bytes(found)


def _member(packed: bytes, at: int, found: bytearray, most: int) -> int:
    """Add what the gzip file that begins here unpacks to; return where it ends.

    What follows a small one is not handed over with it, for zlib copies that: many would take time
    by the square of their number.
    """
    one, step = zlib.decompressobj(_GZIP), _FIRST_BYTES
    while not one.eof:
        if at == len(packed):
            raise EOFError("it ends in the middle")
        part = packed[at : at + step]
        found += one.decompress(part, most + 1 - len(found))
        if len(found) > most:
            raise OverLimit
        at += len(part) - len(one.unused_data)
        step *= 2
    return at


def inflate(packed: bytes, most: int) -> bytes:
    """Unpack a bare deflate stream."""
    return _whole(zlib.decompressobj(_RAW), packed, most)


def bunzip2(packed: bytes, most: int) -> bytes:
    """Unpack bzip2."""
    return _whole(bz2.BZ2Decompressor(), packed, most)


def unxz(packed: bytes, most: int) -> bytes:
    """Unpack xz."""
    return _whole(lzma.LZMADecompressor(memlimit=max(most, _STEP_BYTES)), packed, most)


def zstandard(packed: bytes, most: int) -> bytes:
    """Unpack Zstandard frames."""
    return _stream(packed, "zstd", most)


def lz4(packed: bytes, most: int) -> bytes:
    """Unpack an LZ4 frame."""
    return _stream(packed, "lz4", most)


def snappy(packed: bytes, size: int, most: int) -> bytes:
    """Unpack a Snappy block that says to be of this size."""
    if size > most:
        raise OverLimit
    found: bytes = pa.decompress(packed, size, codec="snappy", asbytes=True)
    return found


def snappy_block(packed: bytes, most: int) -> bytes:
    """Unpack a Snappy block, which begins with its size."""
    size = 0
    for at, byte in enumerate(packed[:_SIZE_BYTES]):
        size |= (byte & 0x7F) << (7 * at)
        if byte < 0x80:
            return snappy(packed, size, most)
    raise ValueError("a Snappy block does not say its size")


def lz4_block(packed: bytes, most: int) -> bytes:
    """Unpack a bare LZ4 block, which does not say its size: for few bytes, one by one."""
    found, at = bytearray(), 0
    try:
        while at < len(packed):
            token = packed[at]
            count, at = _lz4_length(packed, at + 1, token >> 4)
            if at + count > len(packed):
                raise EOFError("an LZ4 block ends in the middle")
            found += packed[at : at + count]
            at += count
            if at < len(packed):
                back = packed[at] | packed[at + 1] << 8
                count, at = _lz4_length(packed, at + 2, token & 15)
                if not 0 < back <= len(found):
                    raise ValueError("an LZ4 block repeats what is not there")
                if len(found) + count > most:
                    raise OverLimit
                for _ in range(count + 4):
                    found.append(found[-back])
            if len(found) > most:
                raise OverLimit
    except IndexError:
        raise EOFError("an LZ4 block ends in the middle") from None
    return bytes(found)


def lz4_block_size(packed: bytes | memoryview, most: int) -> int:
    """Return how many bytes a bare LZ4 block unpacks to, which it does not say."""
    found = at = 0
    try:
        while at < len(packed):
            token = packed[at]
            count, at = _lz4_length(packed, at + 1, token >> 4)
            found, at = found + count, at + count
            if at < len(packed):
                count, at = _lz4_length(packed, at + 2, token & 15)
                found += count + 4
            if found > most:
                raise OverLimit
    except IndexError:
        raise EOFError("an LZ4 block ends in the middle") from None
    if at != len(packed):
        raise EOFError("an LZ4 block ends in the middle")
    return found


def _lz4_length(packed: bytes | memoryview, at: int, length: int) -> tuple[int, int]:
    if length < 15:
        return length, at
    while True:
        length += packed[at]
        at += 1
        if packed[at - 1] != 255:
            return length, at


def _whole(decompressor: Any, packed: bytes, most: int) -> bytes:
    # Below zero, decompressors take a limit for none.
    if most < 0:
        raise OverLimit
    decompress: Callable[[bytes, int], bytes] = decompressor.decompress
    found = decompress(packed, most + 1)
    if len(found) > most:
        raise OverLimit
    if not decompressor.eof:
        raise EOFError("it ends in the middle")
    return found


def _stream(packed: bytes, codec: str, most: int) -> bytes:
    found = bytearray()
    with pa.CompressedInputStream(pa.BufferReader(packed), codec) as stream:
        while part := stream.read(_STEP_BYTES):
            found += part
            if len(found) > most:
                raise OverLimit
    return bytes(found)
