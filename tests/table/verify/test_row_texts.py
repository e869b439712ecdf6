"""Rows as bytes: equal for equal rows, whatever lies under a null."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icetree.table.verify.row_texts import row_texts

_ENDS = pa.array([0, 2, 3], pa.int32())
_SECOND = pa.array([False, True]).buffers()[1]


def _under_null(type: pa.DataType, values: pa.Array) -> pa.Array:
    """Return two lists, the first of which is null and has two values all the same."""
    return pa.Array.from_buffers(type, 2, [_SECOND, _ENDS.buffers()[1]], children=[values])


def _texts(values: pa.Array) -> list[bytes]:
    found: list[bytes] = row_texts([values]).to_pylist()
    return found


@pytest.mark.parametrize("make", [pa.list_, pa.large_list], ids=["list", "large"])
def test_what_is_under_a_null_list_is_nothing(make: type) -> None:
    hidden = _under_null(pa.list_(pa.int64()), pa.array([1, 2, 3]))
    assert hidden.to_pylist() == [None, [3]]
    plain = pa.array([None, [3]], make(pa.int64()))
    assert _texts(hidden.cast(plain.type)) == _texts(plain)


def test_what_is_under_a_null_map_or_struct_is_nothing() -> None:
    type = pa.map_(pa.string(), pa.int8())
    pairs = [pa.array(["a", "b", "c"]), pa.array([1, 2, 3], pa.int8())]
    entries = pa.StructArray.from_arrays(pairs, fields=[type.key_field, type.item_field])
    assert _texts(_under_null(type, entries)) == _texts(pa.array([None, [("c", 3)]], type))
    lists = pa.array([[1, 2], [3]])
    outer = pa.StructArray.from_arrays([lists], names=["l"], mask=pa.array([True, False]))
    assert _texts(outer) == _texts(pa.array([None, {"l": [3]}], outer.type))


def test_a_null_a_list_of_nothing_and_a_list_of_a_null_are_three() -> None:
    assert len({*_texts(pa.array([None, [], [None], [[]]], pa.list_(pa.list_(pa.int8()))))}) == 4
