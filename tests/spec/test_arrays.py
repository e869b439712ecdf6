"""Questions about arrays, asked of one chunk and of many."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icetree.spec.arrays import every, first_repeated, is_among, one_chunk, without

NAMES = st.lists(st.sampled_from(["a", "b", "c", None]), max_size=6)


def chunked(*parts: list[str | None]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(part, pa.string()) for part in parts], pa.string())


@given(NAMES, NAMES)
def test_many_chunks_become_one(some: list[str | None], more: list[str | None]) -> None:
    whole = pa.array(some + more, pa.string())
    assert one_chunk(chunked(some, more)).equals(whole)
    assert one_chunk(whole) is whole


@given(st.lists(st.lists(st.booleans(), max_size=3), max_size=3))
def test_all_of_none_are_true(parts: list[list[bool]]) -> None:
    assert every(pa.chunked_array(parts, pa.bool_())) is all(
        each for part in parts for each in part
    )


@given(NAMES, NAMES)
def test_what_is_among_the_others_and_what_is_not(
    values: list[str | None], others: list[str | None]
) -> None:
    names = pa.array(values, pa.string())
    is_there = [value in others for value in values]
    assert is_among(names, chunked(others)).to_pylist() == is_there
    left = [value for value, there in zip(values, is_there, strict=True) if not there]
    assert without(names, chunked(others)).to_pylist() == left


@given(NAMES, NAMES)
def test_a_repeated_name_is_one_that_stands_twice(
    some: list[str | None], more: list[str | None]
) -> None:
    names = [name for name in some + more if name is not None]
    repeated = {name for name in names if names.count(name) > 1}
    for form in (chunked(some, more), pa.array(some + more, pa.string())):
        found = first_repeated(form)
        assert found in repeated if repeated else found is None


@pytest.mark.parametrize("none", [chunked(), pa.array([], pa.string())])
def test_nothing_repeats_in_nothing(none: pa.Array | pa.ChunkedArray) -> None:
    assert first_repeated(none) is None
    assert one_chunk(none).to_pylist() == []
