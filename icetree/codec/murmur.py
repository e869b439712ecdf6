"""MurmurHash3 (x64, 128 bits, of which the first 64) of many byte strings at once."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Hashes: TypeAlias = npt.NDArray[np.uint64]
Places: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]

_C1: Final = np.uint64(0x87C37B91114253D5)
_C2: Final = np.uint64(0x4CF5AD432745937F)
_BLOCK: Final = 16
#: So many are looked at together, whose bytes are gathered side by side.
_TOGETHER: Final = 65_536


def murmur3(content: Bytes, starts: Places, lengths: Places, *, seed: int) -> Hashes:
    """Return the hash of each of the byte strings that lie at these places of the content."""
    # Something must be there to look at, even if nobody asks for it.
    content = content if len(content) else np.zeros(1, np.uint8)
    parts = [
        _hashed(content, starts[at : at + _TOGETHER], lengths[at : at + _TOGETHER], seed)
        for at in range(0, len(starts), _TOGETHER)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def _hashed(content: Bytes, starts: Places, lengths: Places, seed: int) -> Hashes:
    h1 = np.full(len(starts), seed, np.uint64)
    h2 = h1.copy()
    blocks = lengths // _BLOCK
    # Sums and products wrap around, as they are meant to.
    with np.errstate(over="ignore"):
        for number in range(int(blocks.max(initial=0))):
            (at,) = np.nonzero(blocks > number)
            k1, k2 = _words(content, starts[at] + _BLOCK * number, None)
            h1[at] ^= _first(k1)
            h1[at] = (_rotated(h1[at], 27) + h2[at]) * np.uint64(5) + np.uint64(0x52DCE729)
            h2[at] ^= _second(k2)
            h2[at] = (_rotated(h2[at], 31) + h1[at]) * np.uint64(5) + np.uint64(0x38495AB5)
        k1, k2 = _words(content, starts + _BLOCK * blocks, lengths % _BLOCK)
        h2 ^= _second(k2)
        h1 ^= _first(k1)
        h1 ^= lengths.astype(np.uint64)
        h2 ^= lengths.astype(np.uint64)
        h1 += h2
        h2 += h1
        return _mixed(h1) + _mixed(h2)


def _words(content: Bytes, starts: Places, lengths: Places | None) -> tuple[Hashes, Hashes]:
    """Return the 16 bytes from each start on as two numbers; past a length they are 0."""
    offsets = np.arange(_BLOCK)
    places = starts[:, None] + offsets
    if lengths is None:
        found = content[places]
    else:
        within = offsets < lengths[:, None]
        found = np.where(within, np.take(content, np.where(within, places, 0), mode="clip"), 0)
    words = np.ascontiguousarray(found, np.uint8).view("<u8")
    return words[:, 0].astype(np.uint64), words[:, 1].astype(np.uint64)


def _first(word: Hashes) -> Hashes:
    return _rotated(word * _C1, 31) * _C2


def _second(word: Hashes) -> Hashes:
    return _rotated(word * _C2, 33) * _C1


def _rotated(word: Hashes, by: int) -> Hashes:
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


def _mixed(word: Hashes) -> Hashes:
    word = (word ^ (word >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    word = (word ^ (word >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ (word >> np.uint64(33))
