"""A few bytes that stand for many: refused by a limit, in a sentence that says how to raise it."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import re
import resource
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from pyroaring import BitMap

from icetree.codec import bitmap, limits, metadata, puffin, unpack
from icetree.codec.avro import blocks as avro_blocks
from icetree.codec.avro.avro import open_avro
from icetree.errors import CorruptTable, InvalidInput, TooLarge
from icetree.rows.deletes import read_vector
from icetree.rows.files import ReadRules, open_file
from icetree.spec.fields import FIELD_ID_KEY
from icetree.store.local import LocalStore
from icetree.store.memory import MemoryStore
from tests.apart import apart
from tests.codec import avro_manifests as avro

FILE = "memory://w/file"
MB = 1024**2
#: What each of the files below unpacks to, at least.
BLOWN = 64 * MB
ALLOWED = 4 * MB


@pytest.fixture(autouse=True)
def _limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in (limits.METADATA, limits.ROW_GROUP):
        monkeypatch.setenv(limit.name, str(ALLOWED))


def zeros(compressor: Any) -> bytes:
    step = bytes(4 * MB)
    return b"".join(
        [*(compressor.compress(step) for _ in range(BLOWN // len(step))), compressor.flush()]
    )


def gzip_bomb() -> bytes:
    return zeros(zlib.compressobj(9, wbits=31))


def avro_bomb(codec: str) -> bytes:
    """A manifest of one block."""
    header, sync = avro_header(codec)
    return header + avro_block(_PACKED[codec](), sync)


def late_bomb(codec: str) -> bytes:
    """A manifest whose first block takes all that is allowed, and its frame a little more."""
    header, sync = avro_header(codec)
    first = _COMPRESS[codec](bytes(ALLOWED))
    return header + avro_block(first, sync) + avro_block(_PACKED[codec](), sync)


def avro_header(codec: str) -> tuple[bytes, bytes]:
    whole = avro.manifest(2, avro.entry("s3://b/t/a"), codec="null")
    sync = whole[-16:]
    return whole[: whole.index(sync) + 16].replace(b"\x08null", _avro_text(codec)), sync


def avro_block(packed: bytes, sync: bytes) -> bytes:
    return b"\x02" + _varint(len(packed) << 1) + packed + sync


def _snappy_bomb() -> bytes:
    # It says how long it is; whether that is so shows later.
    return _varint(BLOWN) + bytes(8)


def _zstandard_bomb() -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        for _ in range(BLOWN // (4 * MB)):
            stream.write(bytes(4 * MB))
    return bytes(out.getvalue())


_PACKED: dict[str, Callable[[], bytes]] = {
    "deflate": lambda: zeros(zlib.compressobj(9, wbits=-15)),
    "bzip2": lambda: zeros(bz2.BZ2Compressor()),
    "xz": lambda: zeros(lzma.LZMACompressor(preset=0)),
    "snappy": _snappy_bomb,
    "zstandard": _zstandard_bomb,
}


_COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "deflate": lambda plain: zlib.compress(plain, 9, wbits=-15),
    "bzip2": bz2.compress,
    "xz": lambda plain: lzma.compress(plain, preset=0),
}


def _avro_text(text: str) -> bytes:
    return _varint(len(text) << 1) + text.encode()


def _varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def puffin_bomb() -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "lz4") as stream:
        for _ in range(BLOWN // (4 * MB)):
            stream.write(bytes(4 * MB))
    payload = bytes(out.getvalue())
    tail = struct.pack("<i4s4s", len(payload), b"\1\0\0\0", puffin.MAGIC)
    return puffin.MAGIC + puffin.MAGIC + payload + tail


def full_bitmap() -> bytes:
    """Every position of 32 bits, in runs."""
    every = BitMap()
    every.add_range(0, 2**32)
    return bitmap.encode(every)


def data_file_claim() -> bytes:
    """Four million rows of four columns, all the same: a few kilobytes."""
    schema = pa.schema(
        [pa.field(f"c{id}", pa.int64(), metadata={FIELD_ID_KEY: str(id)}) for id in range(1, 5)]
    )
    out = io.BytesIO()
    column = pa.repeat(pa.scalar(7, pa.int64()), 1 << 22)
    pq.write_table(pa.table([column] * 4, schema=schema), out, row_group_size=1 << 22)
    return out.getvalue()


WIDE = Schema(*(NestedField(id, f"c{id}", LongType(), required=False) for id in range(1, 5)))


def read_metadata(data: bytes) -> None:
    metadata.decode(data, file=FILE)


def read_page(data: bytes) -> None:
    metadata.decode_page(data, file=FILE)


def read_avro(data: bytes) -> None:
    list(open_avro(data, file=FILE).rows())


def read_puffin(data: bytes) -> None:
    puffin.read_footer(lambda at, size: data[at : at + size], len(data), file=FILE)


def read_bitmap(data: bytes) -> None:
    bitmap.to_array(bitmap.decode(data, file=FILE))


def read_rows(data: bytes) -> None:
    store = MemoryStore()
    store.write_new(FILE, data)
    file = open_file(store, FILE, "parquet", mapping=None)
    for group in file.groups:
        file.read(group, WIDE.fields, ReadRules(location=FILE))


def read_missing_column(data: bytes) -> None:
    """Read a column that the file lacks: it is made of the number of rows alone."""
    store = MemoryStore()
    store.write_new(FILE, data)
    file = open_file(store, FILE, "parquet", mapping=None)
    for group in file.groups:
        file.read(group, [NestedField(9, "c9", LongType())], ReadRules(location=FILE))


BOMBS: dict[str, tuple[Callable[[], bytes], Callable[[bytes], None]]] = {
    "metadata": (gzip_bomb, read_metadata),
    "page": (gzip_bomb, read_page),
    **{codec: (lambda codec=codec: avro_bomb(codec), read_avro) for codec in _PACKED},
    **{f"late {codec}": (lambda codec=codec: late_bomb(codec), read_avro) for codec in _COMPRESS},
    "puffin footer": (puffin_bomb, read_puffin),
    "bitmap": (full_bitmap, read_bitmap),
    "row group": (data_file_claim, read_rows),
    "missing column": (data_file_claim, read_missing_column),
}


def growths() -> dict[str, tuple[int, int, str]]:
    """Read each bomb; return its size, by how much the process grew, and what was said."""
    made = {name: make() for name, (make, _) in BOMBS.items()}
    for limit in (limits.METADATA, limits.ROW_GROUP):
        os.environ[limit.name] = str(ALLOWED)
    return {name: (len(data), *_growth(BOMBS[name][1], data)) for name, data in made.items()}


def _growth(read: Callable[[bytes], None], data: bytes) -> tuple[int, str]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = "nothing"
    try:
        read(data)
    except TooLarge as error:
        said = str(error)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024, said


def test_no_file_takes_more_memory_than_the_limit_and_a_few_times_its_size() -> None:
    for name, (size, grown, said) in apart(growths).items():
        assert size < 2 * MB, name
        assert grown < BLOWN / 2, name
        way_out = rf"{FILE}: .* more than the limit of {ALLOWED:,} bytes: .*set ICETREE_MAX_"
        assert re.match(way_out, said), name


def test_what_the_limit_allows_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(json.dumps({"snapshots": [], "pad": "x" * 2 * MB}).encode())
    monkeypatch.setenv(limits.METADATA.name, str(2 * MB))
    with pytest.raises(TooLarge):
        read_page(packed)
    monkeypatch.setenv(limits.METADATA.name, str(3 * MB))
    read_page(packed)


def test_gzip_files_in_a_row_are_one_and_share_the_limit() -> None:
    halves = gzip.compress(b'{"snapshots":') + gzip.compress(b"[]}") + bytes(7)
    read_page(halves)
    large = gzip.compress(bytes(3 * MB), 9)
    with pytest.raises(TooLarge):
        read_page(large + large)


@pytest.mark.parametrize("codec", _COMPRESS)
def test_where_nothing_more_is_allowed_nothing_is_unpacked_but_nothing(codec: str) -> None:
    unpacked, pack = avro_blocks.DECODERS[codec], _COMPRESS[codec]
    assert unpacked(pack(b""), 0) == b""
    assert unpacked(pack(b"a"), 1) == b"a"
    for plain, most in ((b"a", 0), (b"a", -1), (b"a", -9), (b"", -1)):
        with pytest.raises(unpack.OverLimit):
            unpacked(pack(plain), most)


@pytest.mark.parametrize("said", ["", "a lot", "-1", "1e9", "٣"])
def test_a_limit_that_is_no_number_is_told(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.METADATA.name, said)
    with pytest.raises(InvalidInput, match=f"^{limits.METADATA.name}={said!r}"):
        read_metadata(gzip.compress(b"{}"))


# --- Avro schemas, which files bring along ---------------------------------------------------


def with_schema(schema: Any, rows: bytes, count: int = 1) -> bytes:
    """An Avro file with this schema and a block of these bytes."""
    sync = bytes(16)
    text = json.dumps(schema)
    header = b"Obj\x01\x02" + _avro_text("avro.schema") + _avro_text(text) + b"\0" + sync
    return header + _varint(count << 1) + _varint(len(rows) << 1) + rows + sync


def test_an_array_of_nothing_is_refused() -> None:
    nothing = avro.record("nothing")
    for items in ("null", nothing, {"type": "fixed", "name": "f", "size": 0}):
        schema = avro.record(
            "r", avro.field(1, "a", {"type": "array", "items": items}, required=True)
        )
        many = with_schema(schema, _varint(2**40 << 1) + b"\0")
        with pytest.raises(CorruptTable, match="elements of an Avro array take no bytes"):
            read_avro(many)


#: What an inner record may call itself, and what is said of the namespaces of both.
WITHIN: dict[str, tuple[dict[str, str], str, dict[str, str]]] = {
    "no namespace": ({}, "r", {}),
    "one that is inherited": ({"namespace": "x"}, "x.r", {}),
    "one that is inherited and left out": ({"namespace": "x"}, "r", {}),
    "one in the outer's name": ({"name": "x.outer"}, "x.r", {}),
    "one of its own": ({"namespace": "x"}, "y.r", {"namespace": "y"}),
    "one in its own name": ({"namespace": "x"}, "y.r", {"name": "y.r"}),
    "none, inside of one": ({"namespace": "x"}, "r", {"namespace": ""}),
}


def nested_rows(outer: dict[str, str], named: str, inner: dict[str, str]) -> str:
    """Read a row that nests a million times; return what was said."""
    within = avro.record("r", {"name": "next", "type": ["null", named]}) | inner
    schema = avro.record("outer", {"name": "first", "type": within}) | outer
    try:
        read_avro(with_schema(schema, b"\x02" * 1_000_000 + b"\0"))
    except CorruptTable as error:
        return error.rule
    return "read"


def nested_by_every_name() -> dict[str, str]:
    """Return what was said, by how an inner record is named."""
    return {name: nested_rows(*how) for name, how in WITHIN.items()}


def test_a_type_within_itself_is_refused_by_whatever_name() -> None:
    assert apart(nested_by_every_name) == {
        name: f"the Avro type {named!r} is within itself" for name, (_, named, _) in WITHIN.items()
    }


def test_an_array_of_nothing_is_refused_by_whatever_name() -> None:
    def fixed(name: str, size: int, **more: str) -> Any:
        return {
            "name": f"f{size}",
            "type": {"type": "fixed", "name": name, "size": size, **more},
        }

    for types, named in (
        ([fixed("z", 0)], "x.z"),
        ([fixed("z", 0)], "z"),
        ([fixed("z", 0, namespace="y")], "y.z"),
        # One that takes bytes does not vouch for others that end alike.
        ([fixed("y.z", 0), fixed("w.z", 4)], "y.z"),
        ([fixed("y.null", 4)], "null"),
    ):
        many = {"name": "many", "type": {"type": "array", "items": named}}
        schema = avro.record("outer", *types, many) | {"namespace": "x"}
        data = with_schema(schema, bytes(8) + _varint(2**40 << 1) + b"\0")
        with pytest.raises(CorruptTable, match="elements of an Avro array take no bytes"):
            read_avro(data)


def test_a_type_that_is_named_again_after_it_ended_is_read() -> None:
    two = {"type": "fixed", "name": "two", "size": 2}
    pair = avro.record("pair", {"name": "a", "type": two}, {"name": "b", "type": "x.two"})
    many = {"name": "many", "type": {"type": "array", "items": "x.pair"}}
    schema = avro.record("outer", {"name": "p", "type": pair}, many) | {"namespace": "x"}
    file = open_avro(with_schema(schema, b"aabb" + b"\x02ccdd\0"), file=FILE)
    first = {"a": b"aa", "b": b"bb"}
    assert list(file.rows()) == [{"p": first, "many": [{"a": b"cc", "b": b"dd"}]}]


# --- ranges ----------------------------------------------------------------------------------


def test_a_range_past_the_end_of_a_local_file_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"abc")
    assert LocalStore().read_range(str(path), offset=1, length=2**60) == b"bc"
    assert LocalStore().read_range(str(path), offset=9, length=2**60) == b""


def test_a_deletion_vector_is_held_against_the_rows_of_its_file_before_it_is_taken_apart() -> None:
    every = BitMap()
    every.add_range(0, 2**32)
    blob = puffin.encode_dv(every)
    store = MemoryStore()
    store.write_new(FILE, blob)
    task = {
        "location": "data/a",
        "record_count": 10,
        "dv_location": FILE,
        "dv_offset": 0,
        "dv_size_in_bytes": len(blob),
        "dv_cardinality": 2**32,
        "dv_key_metadata": None,
    }
    with pytest.raises(CorruptTable, match="removes row 4294967295 of 10"):
        read_vector(store, task, "memory://w/t")


def test_rows_that_take_no_bytes_are_not_counted_out() -> None:
    nothing = {
        "type": "record",
        "name": "row",
        "fields": [avro.field(1, "a", "null", required=True)],
    }
    content = avro.write(nothing, [])
    sync = content[-16:]
    # A block of 2^40 records in no byte at all.
    content += bytes([0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0x00]) + sync
    store = MemoryStore()
    store.write_new(FILE, content)
    with pytest.raises(CorruptTable, match="its rows take no bytes"):
        open_file(store, FILE, "avro", mapping=None)


@pytest.mark.parametrize("rows", [2**40, 2**62, 2**64 - 1])
def test_stripes_that_claim_too_many_rows_are_refused(rows: int) -> None:
    def varint(number: int) -> bytes:
        found = b""
        while number > 0x7F:
            found, number = found + bytes([number & 0x7F | 0x80]), number >> 7
        return found + bytes([number])

    stripe = b"\x08\x03\x18\x00\x28" + varint(rows)
    footer = b"\x1a" + varint(len(stripe)) + stripe + b"\x30" + varint(rows)
    script = b"\x08" + varint(len(footer)) + b"\x10\x00" + b"\x82\xf4\x03\x03ORC"
    content = b"ORC" + footer + script + bytes([len(script)])
    store = MemoryStore()
    store.write_new(FILE, content)
    with pytest.raises(CorruptTable) as error:
        open_file(store, FILE, "orc", mapping=None)
    assert error.value.file == FILE
