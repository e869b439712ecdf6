"""The proposal's table "Compressed Sizes (bytes) of Bit Vectors", its rows for Roaring."""

from __future__ import annotations

import random

import pytest

from icetree.codec import bitmap

# Entries of the leaf -> density of the removed ones -> bytes.
SIZES = {
    1_000: {0.01: 36, 0.05: 116, 0.1: 216, 0.2: 416},
    10_000: {0.01: 216, 0.05: 1_016, 0.1: 2_016, 0.2: 4_016},
    100_000: {0.01: 2_024, 0.05: 10_024, 0.1: 15_340, 0.2: 16_408},
    1_000_000: {0.01: 20_136, 0.05: 100_136, 0.1: 126_440, 0.2: 129_918},
}


@pytest.mark.parametrize(
    ("entries", "density", "size_bytes"),
    [(entries, density, size) for entries, row in SIZES.items() for density, size in row.items()],
)
def test_random_positions_take_the_bytes_the_proposal_measured(
    entries: int, density: float, size_bytes: int
) -> None:
    removed = random.Random(4).sample(range(entries), round(entries * density))
    assert len(bitmap.encode(bitmap.of(removed))) == pytest.approx(size_bytes, rel=0.02)
