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
from icetree.errors import CorruptTable, InvalidInput, TooLarge
from icetree.rows.read.deletes import read_vector
from icetree.rows.read.files import ReadRules, open_file
from icetree.spec.fields import FIELD_ID_KEY
from icetree.store.local import LocalStore
from icetree.store.memory import MemoryStore
from tests.apart import apart
from tests.hostile.avro_files import FILE, avro_block, avro_header, read_avro, varint

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


def _snappy_bomb() -> bytes:
    # It says how long it is; whether that is so shows later.
    return varint(BLOWN) + bytes(8)


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
