"""Roaring bitmaps: sets of positions as bytes, as Arrow arrays and as masks.

The bytes are the portable Roaring formats: 32-bit for manifest DVs, and for data DVs the 64-bit
form, which is a list of 32-bit bitmaps under ascending keys. Every rule of the format is
checked here before the library sees a byte: no version of it checks all of them, and with
pyroaring 1.0 a false cardinality ends the process.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable
from itertools import pairwise
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap, BitMap64

from icetree.codec import limits
from icetree.errors import CorruptTable, InvalidInput
from icetree.spec.arrays import every

Positions: TypeAlias = BitMap

_COOKIE_PLAIN = 12346
_COOKIE_RUNS = 12347
_MAX_CONTAINERS = 1 << 16
_ARRAY_MAX = 4096
_BITSET_BYTES = 8192
# Where, in the 64-bit form, the bitmap of the first key stands: after the count and the key.
_FIRST_BITMAP = 12
# With runs, shorter bitmaps than this have no offset header.
_OFFSETS_FROM = 4
# Positions are signed 64-bit, so the upper half of a position has its top bit clear.
_MAX_KEY = (1 << 31) - 1
_POSITION_BYTES = 8
# Up to here a list is faster to check than an Arrow array.
_SMALL = 256


def encode(positions: BitMap) -> bytes:
    """Return the smallest portable 32-bit form; `positions` is left as it is."""
    packed = positions.copy()
    packed.run_optimize()
    return packed.serialize()


def decode(data: bytes, *, file: str) -> BitMap:
    """Read a portable 32-bit bitmap that fills `data` exactly."""
    end = _check(data, 0, file)
    if end != len(data):
        raise CorruptTable(file, f"bitmap ends at byte {end} of {len(data)}: bytes follow it")
    return _modest(BitMap.deserialize(data), file)


def encode64(positions: BitMap64) -> bytes:
    """Return the smallest portable 64-bit form; positions of 2**63 and more are refused."""
    if positions and positions.max() >> 63:
        raise InvalidInput(f"position {positions.max()} is not a signed 64-bit number")
    packed = positions.copy()
    packed.run_optimize()
    return packed.serialize()


def decode64(data: bytes, *, file: str) -> BitMap64:
    """Read a portable 64-bit bitmap that fills `data` exactly.

    A key may hold an empty bitmap: writers that keep one bitmap for every key up to the
    largest write those too.
    """
    (count,) = _unpack("<Q", data, 0, file)
    at = 8
    last = -1
    # A false count runs out of bytes, so the loop is bounded by the data.
    for _ in range(count):
        (key,) = _unpack("<I", data, at, file)
        if key <= last or key > _MAX_KEY:
            raise CorruptTable(file, f"64-bit bitmap key {key} must ascend and be below 2**31")
        last = key
        at = _check(data, at + 4, file)
    if at != len(data):
        raise CorruptTable(file, f"64-bit bitmap ends at byte {at} of {len(data)}: bytes follow it")
    return BitMap64.deserialize(data)


def of(positions: pa.Array | pa.ChunkedArray | Iterable[int]) -> BitMap:
    """Return the set of these positions, in any order; each must be in [0, 2**32)."""
    # The library reads an array of unsigned ints at memory speed, and anything else item by item.
    values = array("I")
    if isinstance(positions, pa.Array | pa.ChunkedArray):
        for part in _uint32_chunks(positions):
            start = part.offset * 4
            values.frombytes(memoryview(part.buffers()[1])[start : start + len(part) * 4])
        return BitMap(values)
    try:
        values.extend(positions)
    except (OverflowError, TypeError) as err:
        raise InvalidInput(f"positions must be integers in [0, 2**32): {err}") from err
    return BitMap(values)


def widen(positions: BitMap) -> BitMap64:
    """Return the same set as a 64-bit bitmap."""
    return BitMap64.deserialize(encode_as64(positions))


def narrow(positions: BitMap64, *, file: str) -> BitMap:
    """Return the same set as a 32-bit bitmap; `file` is at fault for positions that do not fit."""
    if not positions:
        return BitMap()
    if positions.max() >> 32:
        raise CorruptTable(file, f"position {positions.max()} does not fit in 32 bits")
    return _modest(BitMap.deserialize(positions.serialize()[_FIRST_BITMAP:]), file)


def encode_as64(positions: BitMap) -> bytes:
    """Return the portable 64-bit form of a 32-bit set."""
    if not positions:
        return struct.pack("<Q", 0)
    return struct.pack("<QI", 1, 0) + encode(positions)


def to_array(bitmap: BitMap | BitMap64) -> pa.Int64Array:
    """Return the positions, ascending."""
    return _unsigned(bitmap).cast(pa.int64())


def mask(bitmap: BitMap, size: int, *, file: str) -> pa.BooleanArray:
    """Return `size` booleans, true where the position is in the bitmap, never null."""
    if not bitmap:
        return pa.repeat(pa.scalar(False), size)
    if bitmap.max() >= size:
        rule = f"manifest DV names position {bitmap.max()} past the end ({size} entries)"
        raise CorruptTable(file, rule)
    positions = _unsigned(bitmap)
    return pc.is_valid(pc.scatter(positions, positions.cast(pa.int64()), max_index=size - 1))


def _modest(bitmap: BitMap, file: str) -> BitMap:
    """Refuse what would take too much memory as an array: runs name any number in a few bytes."""
    wanted = _POSITION_BYTES * len(bitmap)
    limits.METADATA.require(wanted, file=file, what=f"a bitmap of {len(bitmap):,} positions")
    return bitmap


def _unsigned(bitmap: BitMap | BitMap64) -> pa.Array:
    values = bitmap.to_array()
    item = pa.uint32() if isinstance(bitmap, BitMap) else pa.uint64()
    return pa.Array.from_buffers(item, len(values), [None, pa.py_buffer(values)])


def _uint32_chunks(positions: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    if not pa.types.is_integer(positions.type) or positions.null_count:
        raise InvalidInput(f"positions must be integers and not null, not {positions.type}")
    try:
        whole = positions.cast(pa.uint32())
    except pa.ArrowInvalid as err:
        raise InvalidInput(f"positions must be in [0, 2**32): {err}") from err
    chunks = whole.chunks if isinstance(whole, pa.ChunkedArray) else [whole]
    return [chunk for chunk in chunks if len(chunk)]


def _unpack(form: str, data: bytes, at: int, file: str) -> tuple[int, ...]:
    try:
        return struct.unpack_from(form, data, at)
    except struct.error as err:
        raise CorruptTable(file, f"bitmap is cut short at byte {len(data)}") from err


def _check(data: bytes, start: int, file: str) -> int:
    """Return where the 32-bit bitmap at `start` ends, having checked every rule of its format."""
    (cookie,) = _unpack("<I", data, start, file)
    if cookie == _COOKIE_PLAIN:
        (count,) = _unpack("<I", data, start + 4, file)
        at = start + 8
        runs = 0
        has_offsets = True
    elif cookie & 0xFFFF == _COOKIE_RUNS:
        count = (cookie >> 16) + 1
        flags = (count + 7) // 8
        at = start + 4 + flags
        runs = int.from_bytes(data[start + 4 : at], "little")
        has_offsets = count >= _OFFSETS_FROM
    else:
        raise CorruptTable(file, f"bitmap cookie {cookie} is not that of a Roaring bitmap")
    if count > _MAX_CONTAINERS:
        raise CorruptTable(file, f"bitmap has {count} containers, more than {_MAX_CONTAINERS}")

    header = _unpack(f"<{2 * count}H", data, at, file)
    at += 4 * count
    keys = header[::2]
    if any(after <= before for before, after in pairwise(keys)):
        raise CorruptTable(file, "bitmap container keys do not ascend")
    offsets: tuple[int, ...] = ()
    if has_offsets:
        offsets = _unpack(f"<{count}I", data, at, file)
        at += 4 * count

    for index, less_one in enumerate(header[1::2]):
        if has_offsets and offsets[index] != at - start:
            rule = f"bitmap container {index} is at {at - start}, its offset says {offsets[index]}"
            raise CorruptTable(file, rule)
        at = _check_container(data, at, less_one + 1, runs >> index & 1 == 1, file)
    return at


def _check_container(data: bytes, at: int, cardinality: int, is_run: bool, file: str) -> int:
    """Return where the container at `at` ends; its content must match its cardinality."""
    if is_run:
        (count,) = _unpack("<H", data, at, file)
        pairs = _unpack(f"<{2 * count}H", data, at + 2, file)
        _check_runs(pairs[::2], pairs[1::2], cardinality, file)
        return at + 2 + 4 * count

    end = at + (2 * cardinality if cardinality <= _ARRAY_MAX else _BITSET_BYTES)
    if end > len(data):
        raise CorruptTable(file, f"bitmap is cut short at byte {len(data)}")
    if cardinality > _ARRAY_MAX:
        found = int.from_bytes(data[at:end], "little").bit_count()
        if found != cardinality:
            rule = f"bitmap container holds {found} positions, its header says {cardinality}"
            raise CorruptTable(file, rule)
    elif not _ascends(data, at, cardinality):
        raise CorruptTable(file, "positions in a bitmap container do not ascend")
    return end


def _check_runs(
    starts: tuple[int, ...], lengths: tuple[int, ...], cardinality: int, file: str
) -> None:
    # Runs that touch are refused with those that overlap: the library compares run containers
    # run by run, and would find equal sets unequal.
    free_from = 0
    for start, less_one in zip(starts, lengths, strict=True):
        if start < free_from:
            raise CorruptTable(file, "runs in a bitmap container overlap or touch")
        free_from = start + less_one + 2
    if free_from > _MAX_CONTAINERS + 1:
        raise CorruptTable(file, "a run in a bitmap container ends past the container")
    found = sum(lengths) + len(lengths)
    if found != cardinality:
        rule = f"bitmap container holds {found} positions, its header says {cardinality}"
        raise CorruptTable(file, rule)


def _ascends(data: bytes, at: int, count: int) -> bool:
    if count <= _SMALL:
        values = struct.unpack_from(f"<{count}H", data, at)
        return all(before < after for before, after in pairwise(values))
    column = pa.Array.from_buffers(
        pa.uint16(), count, [None, pa.py_buffer(data[at : at + 2 * count])]
    )
    return every(pc.less(column[:-1], column[1:]))
