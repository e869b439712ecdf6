"""A picture of a page, made small: of the colours that it has, 256 are enough to see what it shows."""

from __future__ import annotations

import struct
import zlib
from typing import Final

import numpy as np
import numpy.typing as npt

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_COLOURS: Final = 256
_EXACT: Final = 64
Pixels = npt.NDArray[np.uint8]


def small(png: bytes) -> bytes:
    """Return a PNG of the same picture with a palette of its commonest colours."""
    pixels = _pixels(png)
    high, wide, _ = pixels.shape
    flat = pixels.reshape(-1, 3).astype(np.uint32)
    packed = flat[:, 0] << 16 | flat[:, 1] << 8 | flat[:, 2]
    colours, which, often = np.unique(packed, return_inverse=True, return_counts=True)
    by_count = np.argsort(-often, kind="stable")
    # Grounds and boxes as they are; of what else looks alike the commonest, so that shades of letters
    # do not take all places.
    _, first = np.unique(colours[by_count] & 0xF0F0F0, return_index=True)
    chosen = dict.fromkeys([*range(min(_EXACT, len(colours))), *np.sort(first).tolist()])
    palette = _parts(colours[by_count[list(chosen)[:_COLOURS]]])
    # Each colour becomes the nearest that is kept; there are few enough of them.
    near = np.empty(len(colours), np.uint8)
    for at in range(0, len(colours), 4096):
        part = _parts(colours[at : at + 4096]).astype(np.int32)
        apart = ((part[:, None] - palette[None].astype(np.int32)) ** 2).sum(axis=2)
        near[at : at + 4096] = apart.argmin(axis=1)
    rows = np.zeros((high, wide + 1), np.uint8)
    rows[:, 1:] = near[which].reshape(high, wide)
    return b"".join(
        [
            _SIGNATURE,
            _chunk(b"IHDR", struct.pack(">IIBBBBB", wide, high, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", palette.tobytes()),
            _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)),
            _chunk(b"IEND", b""),
        ]
    )


def _parts(colours: npt.NDArray[np.uint32]) -> Pixels:
    return np.stack([colours >> 16 & 255, colours >> 8 & 255, colours & 255], 1).astype(np.uint8)


def _chunk(name: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + name
        + content
        + struct.pack(">I", zlib.crc32(name + content))
    )


def _pixels(png: bytes) -> Pixels:
    """Return the red, green and blue of a PNG of 8 bits, as browsers write it."""
    at, content, size = len(_SIGNATURE), b"", (0, 0, 0)
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at : at + 8])
        part = png[at + 8 : at + 8 + length]
        if name == b"IHDR":
            wide, high, depth, kind, *_ = struct.unpack(">IIBBBBB", part)
            assert (depth, kind) in {(8, 2), (8, 6)}
            size = (high, wide, 3 if kind == 2 else 4)
        elif name == b"IDAT":
            content += part
        at += length + 12
    high, wide, channels = size
    rows = np.frombuffer(zlib.decompress(content), np.uint8).reshape(high, 1 + wide * channels)
    before: Pixels = np.zeros(wide * channels, np.uint8)
    found = []
    for row in rows:
        before = _unfiltered(int(row[0]), row[1:], before, channels)
        found.append(before)
    return np.stack(found).reshape(high, wide, channels)[:, :, :3]


def _unfiltered(kind: int, row: Pixels, above: Pixels, step: int) -> Pixels:
    """Undo one of PNG's five filters."""
    if kind == 0:
        return row
    if kind == 2:
        return row + above
    if kind == 1:
        shaped = row.reshape(-1, step).astype(np.uint64)
        return np.cumsum(shaped, axis=0).astype(np.uint8).reshape(-1)
    out, given, over = [0] * len(row), row.tolist(), above.tolist()
    for at, value in enumerate(given):
        left = out[at - step] if at >= step else 0
        corner = over[at - step] if at >= step else 0
        guess = (left + over[at]) // 2 if kind == 3 else _paeth(left, over[at], corner)
        out[at] = value + guess & 255
    return np.array(out, np.uint8)


def _paeth(left: int, above: int, corner: int) -> int:
    guess = left + above - corner
    apart = (abs(guess - left), abs(guess - above), abs(guess - corner))
    return (left, above, corner)[apart.index(min(apart))]
