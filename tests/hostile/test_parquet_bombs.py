"""Parquet files in which few bytes stand for many, in each way that the format has."""

from __future__ import annotations

import io
import os
import re
import resource
import struct
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.types import NestedField, StringType

from icetree.codec import limits
from icetree.codec.parquet.deltas import read_deltas
from icetree.codec.parquet.parquet import open_parquet
from icetree.errors import CorruptTable, TooLarge
from icetree.rows.read.files import ReadRules, open_file
from icetree.spec.entry.entry import ROOT, to_table
from icetree.store.memory import MemoryStore
from tests.apart import apart
from tests.codec.bad_manifests import FILE_ENTRY, SHAPE, decoded
from tests.codec.raw_manifests import raw
from tests.hostile.parquet_files import (
    BY_DICTIONARY,
    DELTA_BYTES,
    DELTA_LENGTH,
    FIXED,
    INT64,
    OPTIONAL,
    PLAIN,
    REPEATED,
    HandMade,
    lengths,
    levels,
    page,
    parquet_file,
    plain,
    rle,
    same_deltas,
)

FILE = "memory://w/t/f"
MB = 1024**2
#: What each of the files below unpacks to, at least.
BLOWN = 64 * MB
ALLOWED = 4 * MB
#: Far more than reading the files below may take, far less than the machine has.
_ADDRESSES = 8 * 1024**3
TEXT = b"x" * MB
TEXTS = BLOWN // MB


def one_column(column: HandMade, rows: int | None = None) -> bytes:
    return parquet_file(column, rows=column.values if rows is None else rows)


def named_by_all(*, nested: bool = False) -> HandMade:
    """A text of a dictionary that every value names; in lists all of one row do."""
    told = b"\1" + rle(0, TEXTS, 1)
    if nested:
        runs = rle(0, 1, 1) + rle(1, TEXTS - 1, 1)
        told = struct.pack("<I", len(runs)) + runs + levels(1, TEXTS) + told
    pages = page(2, 1, PLAIN, plain(TEXT)) + page(0, TEXTS, BY_DICTIONARY, told)
    return HandMade(pages=pages, values=TEXTS, repetition=REPEATED if nested else 0)


def front_coded() -> bytes:
    """A text, and others that are the same from front to end."""
    return lengths(0, *[MB] * (TEXTS - 1)) + lengths(MB, *[0] * (TEXTS - 1)) + TEXT


def many_in_one_row() -> bytes:
    """A row whose list has eight million numbers, of which the footer says one."""
    count = BLOWN // 8
    runs = rle(0, 1, 1) + rle(1, count - 1, 1)
    told = struct.pack("<I", len(runs)) + runs + levels(1, count) + bytes(8 * count)
    pages = page(0, count, PLAIN, told)
    return one_column(HandMade(pages=pages, values=1, type=INT64, repetition=REPEATED))


def written_by_arrow(**options: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"c": pa.repeat(pa.scalar("x" * MB), TEXTS)}), out, **options)
    return out.getvalue()


def decimals() -> bytes:
    """Bytes that are said to be decimals, the first by rights: Arrow does not leave them in a dictionary."""
    named = b"\1" + rle(0, 1, 1) + rle(1, TEXTS - 1, 1)
    pages = page(2, 2, PLAIN, plain(b"\1", TEXT)) + page(0, TEXTS, BY_DICTIONARY, named)
    return one_column(HandMade(pages=pages, values=TEXTS, decimal=(9, 2)))


def data_file() -> bytes:
    return one_column(named_by_all())


def root() -> bytes:
    entries = to_table([FILE_ENTRY], SHAPE)
    at = entries.schema.get_field_index("location")
    many = pa.concat_tables([entries] * TEXTS)
    return raw(many.set_column(at, "location", pa.repeat(pa.scalar("x" * MB), TEXTS)), ROOT)


def read_column(data: bytes) -> None:
    open_parquet(pa.BufferReader(data), file=FILE).read(0, [0])


def read_rows(data: bytes) -> None:
    store = MemoryStore()
    store.write_new(FILE, data)
    file = open_file(store, FILE, "parquet", mapping=None)
    text = NestedField(1, "c1", StringType(), required=False)
    for group in file.groups:
        file.read(group, [text], ReadRules(location=FILE))


def read_root(data: bytes) -> None:
    decoded(data, ROOT)


BOMBS: dict[str, tuple[Callable[[], bytes], Callable[[bytes], None]]] = {
    "a root": (root, read_root),
    "a data file": (data_file, read_rows),
    "a dictionary": (lambda: written_by_arrow(compression="zstd"), read_column),
    "a dictionary of pages of another version": (
        lambda: written_by_arrow(compression="zstd", data_page_version="2.0"),
        read_column,
    ),
    "a dictionary in a list": (lambda: one_column(named_by_all(nested=True), rows=1), read_column),
    "a dictionary of decimals": (decimals, read_column),
    "front coding": (
        lambda: one_column(
            HandMade(pages=page(0, TEXTS, DELTA_BYTES, front_coded()), values=TEXTS)
        ),
        read_column,
    ),
    "front coding by Arrow": (
        lambda: written_by_arrow(
            compression="zstd", use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY"
        ),
        read_column,
    ),
    "a page of one number": (
        lambda: one_column(HandMade(pages=page(0, 1, PLAIN, bytes(BLOWN)), values=1, type=INT64)),
        read_column,
    ),
    "a text that the footer does not tell": (
        lambda: one_column(HandMade(pages=page(0, 1, PLAIN, plain(bytes(BLOWN))), values=1)),
        read_column,
    ),
    "a list": (many_in_one_row, read_column),
    "nothing, often": (
        lambda: one_column(
            HandMade(
                pages=page(0, BLOWN, PLAIN, levels(0, BLOWN)), values=BLOWN, repetition=OPTIONAL
            )
        ),
        read_column,
    ),
    "wide nothing": (
        lambda: one_column(
            HandMade(
                pages=page(0, 64, PLAIN, levels(0, 64)),
                values=64,
                type=FIXED,
                width=MB,
                repetition=OPTIONAL,
            )
        ),
        read_column,
    ),
}


def growths(made: dict[str, bytes]) -> dict[str, tuple[int, int, str]]:
    """Read each bomb; return its size, how much Arrow allocated, and what was said."""
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    for limit in (limits.METADATA, limits.ROW_GROUP):
        os.environ[limit.name] = str(ALLOWED)
    found = {}
    for name, content in made.items():
        pool, said = pa.proxy_memory_pool(pa.system_memory_pool()), "nothing"
        pa.set_memory_pool(pool)
        try:
            BOMBS[name][1](content)
        except (CorruptTable, MemoryError, pa.ArrowException) as error:
            said = str(error)
        found[name] = len(content), pool.max_memory(), said
    return found


@pytest.fixture(scope="module")
def grown() -> dict[str, tuple[int, int, str]]:
    return apart(growths, {name: make() for name, (make, _) in BOMBS.items()})


@pytest.mark.parametrize("name", BOMBS)
def test_no_parquet_file_takes_more_memory_than_a_few_times_the_limit(
    name: str, grown: dict[str, tuple[int, int, str]]
) -> None:
    size, taken, said = grown[name]
    assert size < MB
    assert taken < BLOWN / 2
    assert re.search(f": .* more than the limit of {ALLOWED:,} bytes: .*set ICETREE_MAX_", said)


# --- what cannot be --------------------------------------------------------------------------

LIES: dict[str, tuple[HandMade, str]] = {
    "a dictionary": (
        HandMade(
            pages=page(2, 1 << 26, PLAIN, plain(b"x"))
            + page(0, 1, BY_DICTIONARY, b"\1" + rle(0, 1, 1)),
            values=1,
        ),
        "a dictionary of 67108864 values does not fit its page",
    ),
    "two dictionaries": (
        HandMade(pages=page(2, 1, PLAIN, plain(b"x")) * 2, values=1),
        "a column has two dictionaries",
    ),
    "fewer values": (
        HandMade(pages=page(0, 1, PLAIN, plain(b"x")), values=2),
        "pages have 1 values, the footer says 2",
    ),
    "lengths": (
        HandMade(pages=page(0, 1, DELTA_LENGTH, same_deltas(0, 0, 1 << 26)), values=1),
        "a page of 1 values has 67108864 lengths",
    ),
    "lengths of beginnings": (
        HandMade(pages=page(0, 1, DELTA_BYTES, same_deltas(0, 0, 1 << 26)), values=1),
        "a page of 1 values has 67108864 lengths",
    ),
    "lengths of ends": (
        HandMade(pages=page(0, 1, DELTA_BYTES, lengths(0) + same_deltas(0, 0, 1 << 26)), values=1),
        "a page of 1 values has 67108864 lengths",
    ),
    "lengths below nothing": (
        HandMade(pages=page(0, 2, DELTA_BYTES, lengths(0, -1) + lengths(0, 0)), values=2),
        "a length is negative",
    ),
    "a page that goes on": (
        HandMade(pages=page(0, 1, PLAIN, plain(b"x"))[:-1], values=1),
        "passes the end of its column",
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_pages_that_claim_what_cannot_be_are_refused(name: str) -> None:
    column, said = LIES[name]
    with pytest.raises(CorruptTable, match=said):
        read_column(one_column(column))


# --- what is right ---------------------------------------------------------------------------


def _texts(count: int) -> list[str | None]:
    return [None if at % 7 == 0 else f"{'a' * (at % 40)}{at % 300}" for at in range(count)]


SHAPES: dict[str, pa.Array] = {
    "texts": pa.array(_texts(5000)),
    "lists": pa.array([_texts(at % 9) or None for at in range(2000)]),
    "structs": pa.array([{"a": text, "b": 1} for text in _texts(3000)]),
    "maps": pa.array(
        [[(f"k{at % 50}", text)] for at, text in enumerate(_texts(3000))],
        pa.map_(pa.string(), pa.string()),
    ),
    "nothing": pa.nulls(1000, pa.string()),
    "no rows": pa.array([], pa.string()),
    "empty texts": pa.repeat(pa.scalar(""), 1000),
    "fixed": pa.array([bytes([at % 250]) * 9 for at in range(3000)], pa.binary(9)),
    "numbers": pa.array(range(3000)),
}
WAYS: dict[str, dict[str, object]] = {
    "usual": {},
    "pages of another version": {"data_page_version": "2.0"},
    "plain": {"use_dictionary": False, "compression": "none"},
    "snappy": {"compression": "snappy", "write_page_checksum": True},
    "dictionaries that end": {"dictionary_pagesize_limit": 500, "data_page_size": 1000},
    "lengths": {"use_dictionary": False, "encoding": "DELTA_LENGTH_BYTE_ARRAY"},
    "front coding": {"use_dictionary": False, "encoding": "DELTA_BYTE_ARRAY"},
    "front coding of another version": {
        "use_dictionary": False,
        "encoding": "DELTA_BYTE_ARRAY",
        "data_page_version": "2.0",
        "compression": "gzip",
        "data_page_size": 1000,
    },
}


def _written(values: pa.Array, encoding: str | None = None, **options: object) -> bytes:
    out = io.BytesIO()
    rows = pa.table({"c": values})
    if encoding is not None:
        # Numbers and short bytes have no such encoding.
        names = pq.ParquetFile(_sink(rows)).schema
        every = [names.column(at) for at in range(len(names))]
        fits = [each.path for each in every if each.physical_type == "BYTE_ARRAY"]
        options["column_encoding"] = dict.fromkeys(fits, encoding)
    pq.write_table(rows, out, **options)
    return out.getvalue()


def _sink(rows: pa.Table) -> pa.BufferReader:
    out = io.BytesIO()
    pq.write_table(rows, out)
    return pa.BufferReader(out.getvalue())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES)
def test_right_files_are_read_under_a_limit_that_what_they_hold_needs(
    shape: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = SHAPES[shape]
    data = _written(values, **WAYS[way])
    for source in (pa.BufferReader(data), pa.PythonFile(io.BytesIO(data + b""), mode="r")):
        opened = open_parquet(source, file=FILE)
        every = range(len(opened.columns))
        monkeypatch.delenv(limits.ROW_GROUP.name, raising=False)
        tables = list(opened.read_groups())
        assert [row for table in tables for row in table["c"].to_pylist()] == values.to_pylist()
        if not tables or not len(values):
            continue
        # Twice: a page on its way, and offsets and levels of what is nested.
        needed = 2 * tables[0].nbytes + sum(c.unpacked_bytes for c in opened.row_groups[0].chunks)
        monkeypatch.setenv(limits.ROW_GROUP.name, str(needed + 1000))
        assert opened.read(0, every) == tables[0]
        monkeypatch.setenv(limits.ROW_GROUP.name, str(len(values) // 2))
        with pytest.raises(TooLarge):
            opened.read(0, every)


@pytest.mark.parametrize("step", [0, 1, 7, 100_000])
@pytest.mark.parametrize("count", [1, 2, 128, 129, 5000])
def test_lengths_are_read_as_arrow_writes_them(count: int, step: int) -> None:
    numbers = [(at * at * step) % 1_000_003 for at in range(count)]
    how = {"use_dictionary": False, "column_encoding": "DELTA_BINARY_PACKED"}
    out = io.BytesIO()
    schema = pa.schema([pa.field("c", pa.int32(), nullable=False)])
    pq.write_table(pa.table([numbers], schema=schema), out, compression="none", **how)
    data = out.getvalue()
    chunk = open_parquet(pa.BufferReader(data), file=FILE).row_groups[0].chunks[0]
    content = data[chunk.first_page : chunk.first_page + chunk.packed_bytes]
    start = content.index(b"\x80\x01\x04")
    found, end = read_deltas(content, start, count)
    assert found.tolist() == numbers
    assert end == len(content)
