"""Streams of whole numbers in ORC files: made of runs, packed in blocks, with places to begin at."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icetree.codec.orc.footer import (
    BLOCK_BYTES,
    CODECS,
    COMPRESSION,
    DEFAULT_BLOCK_BYTES,
    HEAD_BYTES,
)

#: How many numbers a run has at the most, and how many bits one may take.
_RUN: Final = 512
_WIDTHS: Final = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
_DIRECT: Final = 0x40
#: Codecs by Arrow's names for them; zlib is Python's own, without a header.
_NAMES: Final = {"snappy": "snappy", "lz4": "lz4_raw", "zstd": "zstd"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A stream as it is stored."""

    content: bytes
    #: Where each run starts before it is packed, and the end.
    runs: tuple[int, ...]
    #: Where each block starts once it is packed, and the end; None where nothing is packed.
    blocks: tuple[int, ...] | None
    block_bytes: int

    def place(self, at: int) -> list[int]:
        """Return the position of a number in the words of an index of rows."""
        start, beyond = self.runs[at // _RUN], at % _RUN
        if self.blocks is None:
            return [start, beyond]
        return [self.blocks[start // self.block_bytes], start % self.block_bytes, beyond]


def stream_of(numbers: np.ndarray[Any, Any], told: dict[int, Any]) -> Stream:
    """Return numbers of 64 bits, without a sign, as a stream of a file; `told` is its postscript."""
    plain, runs = bytearray(), [0]
    for start in range(0, len(numbers), _RUN):
        plain += _run(numbers[start : start + _RUN])
        runs.append(len(plain))
    if len(numbers) % _RUN:
        runs.pop()
    codec = CODECS[told.get(COMPRESSION, 0)]
    block = told.get(BLOCK_BYTES, 0) or DEFAULT_BLOCK_BYTES
    if not codec:
        return Stream(content=bytes(plain), runs=tuple(runs), blocks=None, block_bytes=block)
    parts = [_block(plain[at : at + block], codec) for at in range(0, len(plain), block)]
    blocks = (0, *np.cumsum([len(part) for part in parts]).tolist())
    return Stream(content=b"".join(parts), runs=tuple(runs), blocks=blocks, block_bytes=block)


def packed(plain: bytes, told: dict[int, Any]) -> bytes:
    """Return a part of a file as its postscript says that parts are packed."""
    codec = CODECS[told.get(COMPRESSION, 0)]
    if not codec:
        return plain
    block = told.get(BLOCK_BYTES, 0) or DEFAULT_BLOCK_BYTES
    return b"".join(_block(plain[at : at + block], codec) for at in range(0, len(plain), block))


def zigzag(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return numbers with a sign as such without one, small where they were near 0."""
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)


def _run(numbers: np.ndarray[Any, Any]) -> bytes:
    """Return a run whose numbers all take as many bits as the largest needs."""
    need = max(1, int(numbers.max()).bit_length())
    code, width = next((at, each) for at, each in enumerate(_WIDTHS) if each >= need)
    last = len(numbers) - 1
    bits = np.unpackbits(numbers.astype(">u8").view(np.uint8).reshape(-1, 8), axis=1)
    head = bytes([_DIRECT | code << 1 | last >> 8, last & 0xFF])
    return head + np.packbits(bits[:, 64 - width :]).tobytes()


def _block(plain: bytes | bytearray, codec: str) -> bytes:
    if codec == "zlib":
        squeeze = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        small = squeeze.compress(plain) + squeeze.flush()
    else:
        small = pa.Codec(_NAMES[codec]).compress(bytes(plain), asbytes=True)
    is_plain = len(small) >= len(plain)
    part = bytes(plain) if is_plain else small
    return (len(part) << 1 | is_plain).to_bytes(HEAD_BYTES, "little") + part
