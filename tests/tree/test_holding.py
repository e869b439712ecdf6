"""By their stats, manifests that cannot hold a file are told from those that may."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, LongType, NestedField, StringType

from icetree.spec.entry.entry import Content, Entry, concat, to_table
from icetree.spec.entry.stats import FieldStats
from icetree.spec.schema.shape import Shape
from icetree.tree.aggregate import aggregate
from icetree.tree.grow import holding
from icetree.tree.grow.holding import may_hold

SHAPE = Shape(
    schema=Schema(
        NestedField(1, "n", LongType()),
        NestedField(2, "s", StringType()),
        NestedField(3, "x", DoubleType()),
    )
)
#: Values of a file in each column; None where its stats do not tell, and nulls are no values.
_VALUES = st.tuples(
    st.none() | st.lists(st.integers(-3, 3), max_size=3),
    st.none() | st.lists(st.text("ab", max_size=3), max_size=3),
    st.none() | st.lists(st.sampled_from([-0.0, 0.0, -1.5, 2.5]), max_size=3),
)


def bounds(values: list[object] | None, *, is_loose: bool) -> FieldStats | None:
    """What one writer says of values; another rounds bounds to the outside."""
    if values is None:
        return None
    count = max(len(values), 1)
    if not values:
        return FieldStats(values=count, nulls=count)
    low, high = min(values), max(values)  # type: ignore[type-var]
    if is_loose and isinstance(low, str) and isinstance(high, str):
        low, high = low[:1], high + "z"
    elif is_loose:
        low, high = low - 1, high + 1  # type: ignore[operator]
    return FieldStats(lower=low, upper=high, values=count, nulls=0)


def entry(name: str, columns: tuple[object, ...], *, is_loose: bool = False) -> Entry:
    told = {
        id: found
        for id, values in enumerate(columns, start=1)
        if (found := bounds(values, is_loose=is_loose)) is not None  # type: ignore[arg-type]
    }
    return Entry(location=name, record_count=3, file_size_in_bytes=1, stats=told)


def manifest(*files: Entry) -> pa.Table:
    known = {name: pa.array([v], v.type) for name, v in aggregate(to_table(files, SHAPE)).items()}
    top = to_table([Entry(content_type=Content.DATA_MANIFEST, location="m")], SHAPE)
    for name, value in known.items():
        top = top.append_column(name, value)
    return top


@given(
    st.lists(st.tuples(_VALUES, st.booleans(), st.booleans()), min_size=1, max_size=4),
    st.data(),
)
def test_a_manifest_that_holds_a_file_is_never_ruled_out(
    files: list[tuple[tuple[object, ...], bool, bool]], data: st.DataObject
) -> None:
    held = [entry(str(at), each[0], is_loose=each[1]) for at, each in enumerate(files)]
    again = [entry(str(at), each[0], is_loose=each[2]) for at, each in enumerate(files)]
    cut = data.draw(st.integers(0, len(held)))
    parts = [part for part in (held[:cut], held[cut:]) if part]
    tops = concat([manifest(*part) for part in parts])
    for at, one in enumerate(again):
        holder = 0 if at < cut or len(parts) == 1 else 1
        assert may_hold(tops, to_table([one], SHAPE), SHAPE)[holder]


def ranges(*pairs: tuple[int, int], other: tuple[str, str] | None = None) -> list[Entry]:
    more = {} if other is None else {2: FieldStats(lower=other[0], upper=other[1])}
    return [
        Entry(location=f"{low}", stats={1: FieldStats(lower=low, upper=high), **more})
        for low, high in pairs
    ]


@pytest.mark.parametrize("block", [1, 1 << 20])
def test_one_field_that_is_apart_is_enough(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(holding, "_BLOCK", block)
    tops = to_table(
        [*ranges((0, 9), (10, 19), other=("a", "c")), *ranges((0, 9), other=("x", "z"))], SHAPE
    )
    asked = to_table([*ranges((5, 6), other=("b", "b")), *ranges((30, 40))], SHAPE)
    assert may_hold(tops, asked, SHAPE).tolist() == [True, False, False]
    untold = to_table([Entry(location="?")], SHAPE)
    assert may_hold(tops, untold, SHAPE).all()
    assert may_hold(untold, asked, SHAPE).all()
    assert len(may_hold(tops.slice(0, 0), asked, SHAPE)) == 0
    assert not may_hold(tops, asked.slice(0, 0), SHAPE).any()
