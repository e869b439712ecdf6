"""Parquet under LZ4 as Hadoop leaves it: read where Arrow reads it, and never taken for damaged."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest

from icetree.codec import limits
from icetree.codec.parquet.parquet import open_parquet
from icetree.errors import CorruptTable, TooLarge, Unsupported
from tests.hostile.parquet_files import (
    BY_DICTIONARY,
    DELTA_BYTES,
    DELTA_LENGTH,
    LZ4_OF_HADOOP,
    LZO,
    PLAIN,
    HandMade,
    hadoop_lz4,
    hadoop_parts,
    lengths,
    lz4,
    page,
    parquet_file,
    plain,
    rle,
)

FILE = "memory://w/t/f"
MB = 1024**2
TEXTS = [b"a text" + b"o" * (at % 40) + b"%d" % at for at in range(1000)]
Pack = Callable[[bytes], bytes]


def in_two(content: bytes) -> bytes:
    return hadoop_lz4(content[:100], content[100:])


def parts(content: bytes) -> bytes:
    return hadoop_parts(content[:1000], content[1000:-9], content[-9:])


def parts_after_a_block(content: bytes) -> bytes:
    return hadoop_lz4(content[:50]) + parts(content[50:])


def front_coded() -> bytes:
    shared = [0, *(_alike(*pair) for pair in pairwise(TEXTS))]
    ends = [text[count:] for text, count in zip(TEXTS, shared, strict=True)]
    return lengths(*shared) + lengths(*map(len, ends)) + b"".join(ends)


def _alike(one: bytes, other: bytes) -> int:
    return next(at for at in range(99) if one[at : at + 1] != other[at : at + 1])


CONTENTS: dict[str, tuple[int, Callable[[], bytes]]] = {
    "plain": (PLAIN, lambda: plain(*TEXTS)),
    "lengths": (DELTA_LENGTH, lambda: lengths(*map(len, TEXTS)) + b"".join(TEXTS)),
    "front coding": (DELTA_BYTES, front_coded),
}


def column(encoding: int, content: bytes, pack: Pack, codec: int = LZ4_OF_HADOOP) -> bytes:
    pages = page(0, len(TEXTS), encoding, content, pack)
    return parquet_file(HandMade(pages=pages, values=len(TEXTS), codec=codec), rows=len(TEXTS))


def read(data: bytes) -> pa.Table:
    return open_parquet(pa.BufferReader(data), file=FILE).read(0, [0])


@pytest.mark.parametrize("pack", [hadoop_lz4, in_two, lz4])
@pytest.mark.parametrize("name", CONTENTS)
def test_texts_are_read_however_they_are_told(name: str, pack: Pack) -> None:
    encoding, content = CONTENTS[name]
    assert read(column(encoding, content(), pack))["c1"].to_pylist() == TEXTS


@pytest.mark.parametrize("pack", [hadoop_lz4, in_two, lz4])
def test_a_dictionary_is_looked_into(pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    values = [bytes([at]) for at in range(200)]
    told = b"\1" + rle(0, 1, 1) + rle(1, 999, 1)
    pages = page(2, 200, PLAIN, plain(*values), pack) + page(0, 1000, BY_DICTIONARY, told, pack)
    made = HandMade(pages=pages, values=1000, decimal=(9, 2), codec=LZ4_OF_HADOOP)
    data = parquet_file(made, rows=1000)
    # More than any value of the dictionary comes to, less than all of them for each row do.
    monkeypatch.setenv(limits.ROW_GROUP.name, str(100_000))
    assert read(data)["c1"].to_pylist() == [Decimal("0.00"), *[Decimal("0.01")] * 999]


@pytest.mark.parametrize("pack", [hadoop_lz4, lz4])
def test_texts_that_repeat_those_before_are_held_against_the_limit(
    pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 64
    told = lengths(0, *[MB] * (count - 1)) + lengths(MB, *[0] * (count - 1)) + b"x" * MB
    pages = page(0, count, DELTA_BYTES, told, pack)
    data = parquet_file(HandMade(pages=pages, values=count, codec=LZ4_OF_HADOOP), rows=count)
    monkeypatch.setenv(limits.ROW_GROUP.name, str(4 * MB))
    with pytest.raises(TooLarge):
        read(data)


@pytest.mark.parametrize("pack", [parts, parts_after_a_block])
@pytest.mark.parametrize("name", CONTENTS)
def test_parts_that_arrow_does_not_read_are_not_called_corrupt(name: str, pack: Pack) -> None:
    encoding, content = CONTENTS[name]
    with pytest.raises(Unsupported, match=f"{FILE}: its pages are LZ4 in parts"):
        read(column(encoding, content(), pack))


def test_lzo_is_not_called_corrupt() -> None:
    with pytest.raises(Unsupported, match=f"{FILE}: its pages are LZO"):
        read(column(PLAIN, plain(*TEXTS), lambda content: content, LZO))


def _longer(content: bytes) -> bytes:
    """Blocks of which one says that it unpacks to more than it does, and one to less."""
    made = bytearray(in_two(content))
    second = hadoop_lz4(content[:100])
    for at, change in ((0, 1), (len(second), -1)):
        made[at : at + 4] = (int.from_bytes(made[at : at + 4], "big") + change).to_bytes(4, "big")
    return bytes(made)


@pytest.mark.parametrize(
    "spoil",
    [
        _longer,
        lambda content: hadoop_lz4(content)[:-1],
        lambda content: hadoop_parts(content[:99], content[99:])[:-1],
        lambda content: hadoop_parts(content[:99], content[99:]) + bytes(12),
        lambda _: b"",
        lambda _: bytes(8),
        lambda _: bytes(1000),
        lambda _: b"\xff" * 1000,
    ],
)
@pytest.mark.parametrize("name", CONTENTS)
def test_what_is_damaged_is_called_so(name: str, spoil: Pack) -> None:
    encoding, content = CONTENTS[name]
    opened = open_parquet(pa.BufferReader(column(encoding, content(), spoil)), file=FILE)
    with pytest.raises(CorruptTable):
        list(opened.read_groups())
