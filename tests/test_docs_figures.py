"""Drawings of trees in the documentation say what icetree draws, however that looks."""

from __future__ import annotations

import inspect
import re
import struct
import zlib
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from docs.make import png, screens
from docs.make.figures import FIGURES, trees
from docs.make.parts import DOCS

DRAWN = trees()
Pixels: TypeAlias = npt.NDArray[Any]


def said(drawing: str) -> list[str]:
    """Return the texts of a drawing; how many bytes a leaf has is the encoder's business."""
    texts = re.findall(r">([^<>]+)</text>", drawing)
    return sorted(re.sub(r" · [\d.,]+ k?B$", "", text) for text in texts)


@pytest.mark.parametrize("name", DRAWN)
def test_a_drawing_says_what_icetree_draws_now(name: str) -> None:
    kept = (FIGURES / f"tree-{name}.svg").read_text()
    assert said(kept) == said(DRAWN[name]), "python -m docs.make.figures"


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_every_drawing_is_on_a_page(kind: str) -> None:
    text = "".join(page.read_text() for page in DOCS.rglob("*.md"))
    shown = set(re.findall(rf"figures/([\w-]+)\.{kind}", text))
    assert {path.stem for path in FIGURES.glob(f"*.{kind}")} == shown


def test_every_picture_is_small_and_taken_by_one_command() -> None:
    taken = Path(inspect.getfile(screens)).read_text()
    made = {
        name.replace("{scheme}", each)
        for name in re.findall(r'"([a-z{}-]+)"', taken)
        for each in ("dark", "light")
    }
    for path in FIGURES.glob("*.png"):
        assert path.stem in made, "docs/make/screens.py"
        assert path.stat().st_size <= screens.MOST_BYTES


@pytest.mark.parametrize("channels", [3, 4])
def test_a_picture_made_small_shows_the_same(channels: int) -> None:
    """Whichever of PNG's filters its rows have."""
    chance = np.random.default_rng(3)
    colours = chance.integers(0, 256, (20, channels), np.uint8)
    pixels = colours[chance.integers(0, 20, (35, 17))]
    again = png.small(_png(pixels))
    assert len(again) < len(_png(pixels))
    assert (_of_palette(again) == pixels[:, :, :3]).all()


def _png(pixels: Pixels) -> bytes:
    """Encode a picture with another filter in each row."""
    high, wide, step = pixels.shape
    rows, above = b"", np.zeros(wide * step, np.int64)
    for at, row in enumerate(pixels.reshape(high, -1).astype(np.int64)):
        left = np.concatenate([np.zeros(step, np.int64), row[:-step]])
        corner = np.concatenate([np.zeros(step, np.int64), above[:-step]])
        guess = [row * 0, left, above, (left + above) // 2, _paeth(left, above, corner)][at % 5]
        rows += bytes([at % 5]) + ((row - guess) % 256).astype(np.uint8).tobytes()
        above = row
    header = struct.pack(">IIBBBBB", wide, high, 8, 2 if step == 3 else 6, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 0)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(part)) + name + part + struct.pack(">I", zlib.crc32(name + part))
        for name, part in parts
    )


def _paeth(left: Pixels, above: Pixels, corner: Pixels) -> Pixels:
    guess = left + above - corner
    apart = np.stack([abs(guess - each) for each in (left, above, corner)])
    return np.choose(apart.argmin(axis=0), [left, above, corner])


def _of_palette(found: bytes) -> Pixels:
    wide, high = struct.unpack(">II", found[16:24])
    palette = found.partition(b"PLTE")[2]
    at = found.index(b"IDAT")
    (size,) = struct.unpack(">I", found[at - 4 : at])
    rows = np.frombuffer(zlib.decompress(found[at + 4 : at + 4 + size]), np.uint8)
    which = rows.reshape(high, wide + 1)[:, 1:]
    return np.frombuffer(palette[: 3 * 20], np.uint8).reshape(-1, 3)[which]
