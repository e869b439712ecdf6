"""Rows as bytes: equal for equal rows, and for no others, whatever their columns hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.arrays import one_chunk

_BYTES: Final = pa.large_binary()
_NULL: Final = pa.scalar(b"n", _BYTES)
_NOTHING: Final = pa.scalar(b"", _BYTES)
_END: Final = pa.scalar(b";", _BYTES)


def row_texts(columns: Iterable[pa.Array | pa.ChunkedArray]) -> pa.Array:
    """Return each row's values in the columns, as bytes (`large_binary`)."""
    parts = [part for column in columns for part in _parts(one_chunk(column))]
    return pc.binary_join_element_wise(*parts, _END)


def sparse_texts(rows: pa.Table) -> pa.Array:
    """Return what each row has, as bytes: columns that are null, or not there, leave no trace."""
    parts = [pa.repeat(_NOTHING, rows.num_rows)]
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if column.null_count < len(column):
            column = one_chunk(column)
            said = pc.binary_join_element_wise(
                pa.scalar(name.encode(), _BYTES), row_texts([column]), _END
            )
            parts.append(pc.if_else(pc.is_valid(column), said, _NOTHING))
    return pc.binary_join_element_wise(*parts, _NOTHING)


def _parts(values: pa.Array) -> list[pa.Array]:
    """Return a column as texts that, one after the other, can be read in one way alone."""
    is_ = pa.types
    if isinstance(values, pa.ExtensionArray):
        return _parts(values.storage)
    if isinstance(values, pa.DictionaryArray):
        return _parts(values.dictionary_decode())
    type = values.type
    if is_.is_null(type):
        return [pa.repeat(_NULL, len(values))]
    if is_.is_struct(type):
        there = _text(pc.is_valid(values))
        members = [pc.struct_field(values, [at]) for at in range(type.num_fields)]
        return [there, *(part for member in members for part in _parts(member))]
    if is_.is_map(type):
        pairs = pa.StructArray.from_arrays([values.keys, values.items], names=["key", "value"])
        return _runs(values, values.offsets, pairs.take(_by_key(values)))
    if is_.is_list(type) or is_.is_large_list(type):
        return _runs(values, values.offsets, values.values)
    return _plain_parts(values)


def _by_key(maps: pa.MapArray) -> pa.Array:
    """Return the order in which the pairs of each map follow each other by their keys: maps have none."""
    keys = row_texts([maps.keys])
    whose = np.searchsorted(maps.offsets.to_numpy(), np.arange(len(keys)), side="right")
    both = pa.table({"whose": whose, "key": keys})
    return pc.sort_indices(both, sort_keys=[("whose", "ascending"), ("key", "ascending")])


def _plain_parts(values: pa.Array) -> list[pa.Array]:
    is_, type = pa.types, values.type
    if is_.is_temporal(type):
        # As the numbers that they are stored as: some have no date to be shown as.
        return [_text(values.view(pa.int32() if type.bit_width == 32 else pa.int64()))]
    if is_.is_fixed_size_binary(type):
        values = values.cast(pa.binary())
    elif not (is_.is_string(type) or is_.is_binary(type) or _is_large(type)):
        return [_text(values)]
    raw = values.cast(_BYTES)
    return [_text(pc.binary_length(raw)), pc.coalesce(raw, _NOTHING)]


def _is_large(type: pa.DataType) -> bool:
    is_ = pa.types
    views = is_.is_string_view(type) or is_.is_binary_view(type)
    return bool(views or is_.is_large_string(type) or is_.is_large_binary(type))


def _text(values: pa.Array) -> pa.Array:
    return pc.coalesce(values.cast(pa.large_string()).cast(_BYTES), _NULL)


def _runs(values: pa.Array, offsets: pa.Array, items: pa.Array) -> list[pa.Array]:
    """Return how many items each row has, and these one after the other."""
    ends = offsets.to_numpy()
    lengths = pa.array(ends[1:] - ends[:-1])
    known = pc.if_else(pc.is_valid(values), lengths, pa.scalar(None, lengths.type))
    within = items.slice(int(ends[0]), int(ends[-1] - ends[0]))
    texts = row_texts([within])
    starts = pa.array(ends - ends[0], pa.int64())
    joined = pc.binary_join(pa.LargeListArray.from_arrays(starts, texts), _NOTHING)
    # Under a null there may be anything.
    return [_text(known), pc.if_else(pc.is_valid(values), joined, _NOTHING)]
