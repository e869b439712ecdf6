"""Columns as Avro, a column at a time: each value becomes the bytes that it has in its record.

A piece is a binary array with an element for each record. Records are pieces joined side by side,
so no record ever exists as a Python object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icetree.codec.cuts import cut, cut_by, masked
from icetree.spec.arrays import one_chunk

Piece: TypeAlias = pa.BinaryArray
Numbers: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

_NOTHING: Final = pa.scalar(b"")
#: Which side of a union of null and something follows.
_NULL: Final = pa.scalar(b"\x00")
_PRESENT: Final = pa.scalar(b"\x02")
_END: Final = b"\x00"
#: A list or map that may be null, and is not, but holds nothing.
EMPTY: Final = pa.scalar(b"\x02\x00")
#: A number of 64 bits takes at most so many bytes, seven bits in each.
_WIDEST: Final = 10


def joined(pieces: Sequence[Piece | pa.BinaryScalar], size: int) -> Piece:
    """Return so many records made of pieces; what is null in one adds nothing."""
    if not pieces:
        return pa.array([b""] * size, pa.binary())
    whole = [pa.repeat(each, size) if isinstance(each, pa.Scalar) else each for each in pieces]
    return pc.binary_join_element_wise(
        *whole, _NOTHING, null_handling="replace", null_replacement=b""
    )


def numbers(values: pa.Array | pa.ChunkedArray) -> Piece:
    """Return whole numbers, of 32 or 64 bits alike; null stays null."""
    array = one_chunk(values)
    if not len(array):
        return pa.array([], pa.binary())
    filled = pc.fill_null(array.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return masked(_varints(filled), array)


def texts(values: pa.Array | pa.ChunkedArray) -> Piece:
    """Return strings or bytes of any length; null stays null."""
    array = one_chunk(values).cast(pa.binary())
    return pc.binary_join_element_wise(numbers(pc.binary_length(array)), array, _NOTHING)


def fixed(values: pa.Array | pa.ChunkedArray) -> Piece:
    """Return values that are as wide as their type, as they are in memory; null stays null."""
    array = one_chunk(values)
    width = array.type.bit_width // 8
    _, content = array.buffers()
    start = array.offset * width
    return masked(
        cut(np.frombuffer(content, np.uint8)[start : start + len(array) * width], width), array
    )


def booleans(values: pa.Array | pa.ChunkedArray) -> Piece:
    """Return truth values; null stays null."""
    array = one_chunk(values)
    plain = pc.fill_null(array, False).to_numpy(zero_copy_only=False).astype(np.uint8)
    return masked(cut(plain, 1), array)


def optional(piece: Piece) -> Piece:
    """Return a union of null and something."""
    if piece.null_count == 0:
        return pc.binary_join_element_wise(pa.repeat(_PRESENT, len(piece)), piece, _NOTHING)
    if piece.null_count == len(piece):
        return pa.repeat(_NULL, len(piece))
    present = pc.binary_join_element_wise(pa.repeat(_PRESENT, len(piece)), piece, _NOTHING)
    return pc.fill_null(present, _NULL)


def lists(values: pa.ListArray | pa.ChunkedArray) -> Piece:
    """Return lists of whole numbers; null stays null."""
    array = one_chunk(values)
    return repeated(numbers(array.flatten()), pc.list_value_length(array))


def repeated(items: Piece, lengths: pa.Array) -> Piece:
    """Return lists of items, given one after the other, of so many each; null is none."""
    taken = pc.fill_null(lengths.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    ends = pa.array(np.concatenate([[0], np.cumsum(taken)]).astype(np.int32))
    return _counted(pc.binary_join(pa.ListArray.from_arrays(ends, items), _NOTHING), lengths)


def maps(keys: Sequence[int], values: Piece, size: int) -> Piece:
    """Return maps from numbers to pieces, as Iceberg has them: lists of pairs; null is no pair.

    Values of the first key come first, one for each of so many records. A map without any pair is
    null.
    """
    if values.null_count == len(values):
        return pa.nulls(size, pa.binary())
    names = numbers(pa.array(np.repeat(np.array(keys, np.int64), size)))
    named = pc.binary_join_element_wise(names, values, _NOTHING)
    pairs = [named.slice(start, size) for start in range(0, len(named), size)]
    there = pc.is_valid(values).to_numpy(zero_copy_only=False)
    counts = np.count_nonzero(there.reshape(len(keys), size), axis=0)
    return _counted(joined(pairs, size), pa.array(counts, mask=counts == 0))


def _counted(items: Piece, counts: pa.Array) -> Piece:
    """Return what repeats, in one block with its count; null where there is no count."""
    block = pc.binary_join_element_wise(numbers(counts), items, pa.scalar(_END), _NOTHING)
    return pc.if_else(pc.equal(counts, 0), pa.scalar(_END), block)


def varint(number: int) -> bytes:
    """Return one whole number."""
    bits = (number << 1) ^ (number >> 63)
    found = bytearray()
    while bits > 0x7F:
        found.append(bits & 0x7F | 0x80)
        bits >>= 7
    found.append(bits)
    return bytes(found)


def _varints(values: Numbers) -> Piece:
    """Return numbers, at least one, sign in the lowest bit, seven bits a byte, the lowest first."""
    bits = ((values << 1) ^ (values >> 63)).view(np.uint64)
    narrowest, widest = (_width(int(each)) for each in (bits.min(), bits.max()))
    shifts = np.arange(widest, dtype=np.uint64) * np.uint64(7)
    groups = bits[:, None] >> shifts
    if narrowest == widest:
        # Counts and lengths often are: what is to be kept of each is known then.
        content = groups.astype(np.uint8)
        content[:, :-1] |= 0x80
        return cut(content.ravel(), widest)
    widths = 1 + np.count_nonzero(groups[:, 1:], axis=1)
    content = (groups & np.uint64(0x7F)).astype(np.uint8)
    at = np.arange(widest)
    content[at < widths[:, None] - 1] |= 0x80
    kept = content[at < widths[:, None]]
    return cut_by(widths, kept)


def _width(bits: int) -> int:
    return max((bits.bit_length() + 6) // 7, 1)
