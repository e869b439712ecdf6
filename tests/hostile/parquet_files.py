"""Parquet files made page by page, by hand: whatever a writer would never say can be said."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

INT64, BYTE_ARRAY, FIXED = 2, 6, 7
REQUIRED, OPTIONAL, REPEATED = 0, 1, 2
PLAIN, DELTA_LENGTH, DELTA_BYTES, BY_DICTIONARY = 0, 6, 7, 8
LZO, LZ4_OF_HADOOP, ZSTD = 3, 5, 6
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12


def varint(number: int) -> bytes:
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def zigzag(number: int) -> bytes:
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def record(*fields: tuple[int, int, bytes]) -> bytes:
    """A struct of Thrift's compact protocol: (id, type, content) in order of ids."""
    made, last = b"", 0
    for id, kind, content in fields:
        made, last = made + bytes([(id - last) << 4 | kind]) + content, id
    return made + b"\0"


def i32(id: int, number: int) -> tuple[int, int, bytes]:
    return id, _I32, zigzag(number)


def i64(id: int, number: int) -> tuple[int, int, bytes]:
    return id, _I64, zigzag(number)


def text(id: int, content: bytes) -> tuple[int, int, bytes]:
    return id, _BINARY, varint(len(content)) + content


def nested(id: int, content: bytes) -> tuple[int, int, bytes]:
    return id, _STRUCT, content


def several(id: int, kind: int, elements: Sequence[bytes]) -> tuple[int, int, bytes]:
    return id, _LIST, bytes([0xF0 | kind]) + varint(len(elements)) + b"".join(elements)


def plain(*values: bytes) -> bytes:
    return b"".join(struct.pack("<I", len(value)) + value for value in values)


def rle(value: int, count: int, width: int) -> bytes:
    """The same number so often, as levels and indices of dictionaries are told."""
    return varint(count << 1) + value.to_bytes((width + 7) // 8, "little")


def levels(value: int, count: int) -> bytes:
    told = rle(value, count, 1)
    return struct.pack("<I", len(told)) + told


def same_deltas(first: int, delta: int, count: int, *, claimed: int | None = None) -> bytes:
    """Numbers that differ by the same, in DELTA_BINARY_PACKED with one block as long as need be."""
    block = max(128, -(-count // 128) * 128)
    head = varint(block) + varint(1) + varint(claimed or count) + zigzag(first)
    return head if count < 2 else head + zigzag(delta) + b"\0"


def zstd(content: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(content))


def lz4(content: bytes) -> bytes:
    """A bare block of LZ4."""
    return bytes(pa.Codec("lz4_raw").compress(content))


def hadoop_lz4(*blocks: bytes) -> bytes:
    """LZ4 as Hadoop leaves it: before each block what it unpacks to, and how long it is."""
    packed = [(len(block), lz4(block)) for block in blocks]
    return b"".join(struct.pack(">II", size, len(block)) + block for size, block in packed)


def hadoop_parts(*parts: bytes) -> bytes:
    """One block of Hadoop's that is in parts."""
    packed = [lz4(part) for part in parts]
    told = (struct.pack(">I", len(part)) + part for part in packed)
    return struct.pack(">I", sum(map(len, parts))) + b"".join(told)


def page(
    kind: int,
    values: int,
    encoding: int,
    content: bytes,
    codec: Callable[[bytes], bytes] = zstd,
) -> bytes:
    """A data page (0) or one of a dictionary (2)."""
    packed = codec(content)
    counts = [i32(1, values), i32(2, encoding)]
    if kind == 0:
        counts += [i32(3, 3), i32(4, 3)]
    sizes = [i32(1, kind), i32(2, len(content)), i32(3, len(packed))]
    return record(*sizes, nested(5 if kind == 0 else 7, record(*counts))) + packed


@dataclass(frozen=True, kw_only=True)
class HandMade:
    """A column of a file, and all that its footer says of it."""

    pages: bytes
    values: int
    type: int = BYTE_ARRAY
    repetition: int = REQUIRED
    width: int | None = None
    #: How many digits decimals have, and how many of these after the point.
    decimal: tuple[int, int] | None = None
    codec: int = ZSTD
    #: What the footer claims that pages unpack to.
    unpacked: int = 100


def parquet_file(*columns: HandMade, rows: int) -> bytes:
    """A file of one row group."""
    elements = [record(text(4, b"schema"), i32(5, len(columns)))]
    chunks, content = [], b"PAR1"
    for id, column in enumerate(columns, start=1):
        name = f"c{id}".encode()
        width = [] if column.width is None else [i32(2, column.width)]
        said = [i32(1, column.type), *width, i32(3, column.repetition), text(4, name)]
        if column.decimal is not None:
            digits, after_point = column.decimal
            said += [i32(6, 5), i32(7, after_point), i32(8, digits)]
        said.append(i32(9, id))
        elements.append(record(*said))
        meta = record(
            i32(1, column.type),
            several(2, _I32, [zigzag(PLAIN)]),
            several(3, _BINARY, [varint(len(name)) + name]),
            i32(4, column.codec),
            i64(5, column.values),
            i64(6, column.unpacked),
            i64(7, len(column.pages)),
            i64(9, len(content)),
        )
        chunks.append(record(i64(2, len(content)), nested(3, meta)))
        content += column.pages
    group = record(several(1, _STRUCT, chunks), i64(2, 100), i64(3, rows))
    footer = record(
        i32(1, 1), several(2, _STRUCT, elements), i64(3, rows), several(4, _STRUCT, [group])
    )
    return content + footer + struct.pack("<I", len(footer)) + b"PAR1"


def lengths(*numbers: int) -> bytes:
    """Numbers in DELTA_BINARY_PACKED, each step in 32 bits."""
    steps = [after - before for before, after in pairwise(numbers)]
    made = varint(128) + varint(1) + varint(len(numbers)) + zigzag(numbers[0])
    for at in range(0, len(steps), 128):
        block = steps[at : at + 128]
        least = min(block)
        told = struct.pack("<128I", *(step - least for step in block), *[0] * (128 - len(block)))
        made += zigzag(least) + bytes([32]) + told
    return made
