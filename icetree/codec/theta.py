"""Theta sketches, as Apache DataSketches writes them: how many distinct values there are, nearly.

A sketch keeps the smallest hashes of the values it has seen. As long as these are all, it is exact;
after that, how small they are tells how many there must be: within 3.2 % in 95 of 100 cases.
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np

from icetree.codec.murmur import Bytes, Hashes, Places, murmur3

#: The blob of a Puffin file that holds a sketch, and where its answer stands beside it.
BLOB: Final = "apache-datasketches-theta-v1"
NDV: Final = "ndv"

#: How many hashes are kept: what DataSketches and Iceberg take by default.
NOMINAL: Final = 4_096

_SEED: Final = 9001
_SEED_HASH: Final = 0x93CC
_VERSION: Final = 3
_COMPACT_FAMILY: Final = 3
#: Read-only, compact, ordered; and nothing in it.
_FLAGS: Final = 0x02 | 0x08 | 0x10
_EMPTY: Final = 0x04
_ALL: Final = 2**63 - 1
_HEAD: Final = struct.Struct("<BBBBBBH")


class Sketch:
    """A set of values, of which little is kept."""

    def __init__(self) -> None:
        self._hashes: Hashes = np.zeros(0, np.uint64)
        #: Hashes from here on are not kept.
        self._theta = _ALL
        self._is_empty = True

    def add(self, content: Bytes, starts: Places, lengths: Places) -> None:
        """Take in values by their bytes; values without any are left out, as in Iceberg."""
        some = lengths > 0
        if not some.any():
            return
        self._is_empty = False
        found = murmur3(content, starts[some], lengths[some], seed=_SEED) >> np.uint64(1)
        found = found[(found > 0) & (found < np.uint64(self._theta))]
        kept = np.union1d(self._hashes, found)
        if len(kept) > NOMINAL:
            self._theta = int(kept[NOMINAL])
            kept = kept[:NOMINAL]
        self._hashes = kept

    @property
    def estimate(self) -> float:
        """How many distinct values there are, nearly."""
        return len(self._hashes) * (_ALL / self._theta)

    def encode(self) -> bytes:
        """Return the sketch in the compact, ordered form."""
        is_exact, count = self._theta == _ALL, len(self._hashes)
        longs = 1 if is_exact and count <= 1 else 2 if is_exact else 3
        flags = _FLAGS | (_EMPTY if self._is_empty else 0)
        head = _HEAD.pack(longs, _VERSION, _COMPACT_FAMILY, 0, 0, flags, _SEED_HASH)
        # The chance by which values are taken in, which is 1, is no part of a compact form.
        head += struct.pack("<II", count, 0) if longs > 1 else b""
        head += struct.pack("<Q", self._theta) if longs > 2 else b""
        return head + self._hashes.astype("<u8").tobytes()
