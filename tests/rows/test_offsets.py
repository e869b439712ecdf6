"""Lists without values may come without offsets, from Java above all: rows are what they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from icetree.rows.matching.source import held
from icetree.rows.write.fit import batches_of

#: What is listed, mapped and grouped: types, each with its arrays of no values.
LEAVES = st.sampled_from([pa.array([], pa.int64()), pa.array([], pa.string())])


def without_offsets(values: pa.Array) -> pa.Array:
    """Return no lists, of a type that has such values, as Arrow's Java gives them."""
    nothing = [None, pa.py_buffer(b"")]
    return pa.Array.from_buffers(pa.list_(values.type), 0, nothing, 0, 0, children=[values])


def lists_of_nothing(values: pa.Array, count: int) -> pa.Array:
    offsets = pa.py_buffer(np.zeros(count + 1, np.int32))
    type = pa.list_(values.type)
    return pa.Array.from_buffers(type, count, [None, offsets], 0, 0, children=[values])


def maps_of_nothing(values: pa.Array, count: int) -> pa.Array:
    type = pa.map_(pa.string(), values.type)
    ends = [type.key_field, type.item_field]
    entries = pa.StructArray.from_arrays([pa.array([], pa.string()), values], fields=ends)
    offsets = pa.py_buffer(np.zeros(count + 1, np.int32))
    return pa.Array.from_buffers(type, count, [None, offsets], 0, 0, children=[entries])


def lacking(array: pa.Array) -> list[str]:
    """Return the lists of an array that have no offsets, at every depth, by their types."""
    if pa.types.is_struct(array.type):
        return [each for at in range(array.type.num_fields) for each in lacking(array.field(at))]
    if pa.types.is_map(array.type):
        inner = [*lacking(array.keys), *lacking(array.items)]
    elif pa.types.is_list(array.type):
        inner = lacking(array.values)
    else:
        return []
    offsets = array.buffers()[1]
    least = 4 * (array.offset + len(array) + 1)
    return [*inner, *([str(array.type)] if offsets is None or offsets.size < least else [])]


@given(
    st.recursive(
        LEAVES.map(without_offsets), lambda inner: inner.map(without_offsets), max_leaves=3
    ),
    st.sampled_from([lists_of_nothing, maps_of_nothing]),
    st.booleans(),
    st.integers(1, 3),
)
def test_lists_that_come_without_offsets_are_given_some(
    values: pa.Array, hold: Any, grouped: bool, count: int
) -> None:
    column = hold(values, count)
    if grouped:
        column = pa.StructArray.from_arrays([column], names=["member"])
    assert lacking(column) != []
    batch = pa.record_batch({"id": range(count), "column": column})
    [made] = batches_of(batch)
    assert lacking(made["column"]) == []
    assert made.schema.equals(batch.schema)
    assert made.to_pylist() == batch.to_pylist()
    rows = held(pa.Table.from_batches([batch]), {}, table="db.t")
    assert lacking(rows["column"].chunk(0)) == []


def test_batches_that_lack_nothing_are_not_copied() -> None:
    batch = pa.record_batch({"id": [1, 2], "lists": [[[1]], []], "maps": [None, None]})
    [made] = batches_of(batch)
    assert made is batch
