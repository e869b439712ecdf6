"""Rows as numbers that are equal where the rows are, whatever the types of their columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icetree.rows.schema import plain

Codes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def row_codes(columns: Sequence[pa.Array | pa.ChunkedArray], size: int) -> Codes:
    """Return a number for each of `size` rows; null equals null, NaN equals NaN."""
    codes: Codes = np.zeros(size, np.int64)
    for column in columns:
        values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        own = _codes(values)
        # Numbered anew after each column, so that numbers stay small.
        _, codes = np.unique(codes * (own.max(initial=0) + 1) + own, return_inverse=True)
    return codes.astype(np.int64)


def _codes(values: pa.Array) -> Codes:
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    is_ = pa.types
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    if is_.is_struct(values.type):
        inner = row_codes(values.flatten(), len(values))
        return np.where(valid, inner + 1, 0)
    if is_.is_map(values.type):
        pairs = [pc.struct_field(values.values, [at]) for at in (0, 1)]
        return _list_codes(values.offsets, row_codes(pairs, len(values.values)), valid)
    if is_.is_list(values.type) or is_.is_large_list(values.type):
        return _list_codes(values.offsets, _codes(values.values), valid)
    if is_.is_null(values.type):
        return np.zeros(len(values), np.int64)
    values = plain(values)
    if is_.is_floating(values.type):
        # Those of other bits are others to a dictionary.
        values = pc.if_else(pc.is_nan(values), pa.scalar(float("nan"), values.type), values)
    found = pc.dictionary_encode(values, null_encoding="mask").indices
    numbers: Codes = pc.fill_null(found, -1).to_numpy().astype(np.int64) + 1
    return numbers


def _list_codes(offsets: pa.Array, items: Codes, valid: Flags) -> Codes:
    texts = pa.array(items).cast(pa.string())
    lists = pa.ListArray.from_arrays(offsets.cast(pa.int32()), texts)
    lengths = pc.list_value_length(lists).cast(pa.string())
    # With the length in front, a list of nothing differs from a list of one empty thing.
    joined = pc.binary_join_element_wise(lengths, pc.binary_join(lists, ","), ":")
    numbers: Codes = joined.dictionary_encode().indices.to_numpy().astype(np.int64)
    return np.where(valid, numbers + 1, 0)


def ranks(codes: Codes) -> Codes:
    """Return how many equal codes stand before each."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    lengths = np.diff(np.r_[starts, len(ordered)])
    found: Codes = np.empty(len(codes), np.int64)
    found[order] = np.arange(len(codes)) - np.repeat(starts, lengths)
    return found


def pair_up(ones: Codes, others: Codes) -> tuple[Codes, Codes]:
    """Return row numbers of both sides, side by side: the nth of a code with the nth there."""
    if not len(ones) or not len(others):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    most = max(len(ones), len(others))
    one_keys, other_keys = ones * most + ranks(ones), others * most + ranks(others)
    _, at_one, at_other = np.intersect1d(
        one_keys, other_keys, assume_unique=True, return_indices=True
    )
    return at_one.astype(np.int64), at_other.astype(np.int64)
