"""Whole numbers in Avro, many at a time."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from icetree.codec.avro.pieces import numbers, varint

LONGS = st.integers(-(2**63), 2**63 - 1)
#: Lengths and counts: as wide as each other, as a rule.
ALIKE = st.integers(0, 9).flatmap(lambda at: st.lists(st.integers(64**at, 64**at + 9), max_size=5))


@given(st.lists(st.none() | LONGS, max_size=5) | ALIKE)
def test_many_numbers_have_the_bytes_that_each_has_alone(values: list[int | None]) -> None:
    found = numbers(pa.array(values, pa.int64())).to_pylist()
    assert found == [None if each is None else varint(each) for each in values]
