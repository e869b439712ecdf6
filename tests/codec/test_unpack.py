"""Compressed bytes: several gzip files in a row are one, and cost what one costs."""

from __future__ import annotations

import gzip
import zlib
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from icetree.codec.unpack import OverLimit, gunzip, lz4_block, lz4_block_size

MEMBERS = 3_000


def handed_over(monkeypatch: pytest.MonkeyPatch, packed: bytes) -> int:
    """Return how many bytes zlib is given to unpack this: it copies what follows a file's end."""
    given = 0
    real = zlib.decompressobj

    class Counted:
        def __init__(self, wbits: int) -> None:
            self._inner = real(wbits)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def decompress(self, part: bytes, most: int) -> bytes:
            nonlocal given
            given += len(part)
            return self._inner.decompress(part, most)

    with monkeypatch.context() as patch:
        patch.setattr(zlib, "decompressobj", Counted)
        gunzip(packed, len(packed))
    return given


def test_many_small_members_cost_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    member = gzip.compress(b"x")
    some = handed_over(monkeypatch, member * MEMBERS)
    more = handed_over(monkeypatch, member * (2 * MEMBERS))
    assert more < 2.2 * some


def test_a_large_member_costs_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    large = gzip.compress(bytes(range(256)) * 4096, compresslevel=0)
    assert handed_over(monkeypatch, large) == len(large)


@pytest.mark.parametrize(
    "sizes", [(0, 5), (1,) * 700, (3, 100_000, 0, 511, 512, 513, 2), (1 << 20,)]
)
@pytest.mark.parametrize("level", [0, 6])
@pytest.mark.parametrize("padding", [0, 1, 600])
def test_members_in_a_row_are_one_text(sizes: tuple[int, ...], level: int, padding: int) -> None:
    parts = [bytes(index % 251 for index in range(size)) for size in sizes]
    packed = b"".join(gzip.compress(part, level) for part in parts) + bytes(padding)
    whole = b"".join(parts)
    assert gunzip(packed, len(whole)) == whole
    with pytest.raises(OverLimit):
        gunzip(packed, len(whole) - 1)


@pytest.mark.parametrize("at", [0, 5, 700])
def test_what_is_no_member_is_refused(at: int) -> None:
    packed = gzip.compress(b"a") * 40
    for broken in (packed[:at], packed + bytes(3) + b"x", packed + packed[:7]):
        with pytest.raises((EOFError, zlib.error)):
            gunzip(broken, 1000)


@pytest.mark.parametrize("content", [b"", b"a", bytes(100_000), bytes(range(256)) * 9, b"ab" * 7])
def test_what_an_lz4_block_unpacks_to_is_told_without_unpacking_it(content: bytes) -> None:
    packed = pa.compress(content, codec="lz4_raw", asbytes=True)
    assert lz4_block_size(packed, len(content)) == len(content)
    assert lz4_block(packed, len(content)) == content
    if content:
        with pytest.raises(OverLimit):
            lz4_block_size(packed, len(content) - 1)
    for cut in range(len(packed)):
        with suppress(EOFError):
            assert lz4_block_size(packed[:cut], len(content)) < max(1, len(content))
