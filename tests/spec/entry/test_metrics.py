"""Which columns have stats, and how their bounds are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import ListType, LongType, MapType, NestedField, StringType, StructType

from icetree.errors import InvalidInput
from icetree.spec.entry.metrics import (
    COUNTS,
    DEFAULT_MODE,
    FULL,
    NONE,
    Mode,
    parse_mode,
    tracked,
    truncate_lower,
    truncate_upper,
)

WIDE = Schema(*(NestedField(id, f"c{id}", LongType()) for id in range(1, 51)))
NESTED = Schema(
    NestedField(1, "list", ListType(2, LongType())),
    NestedField(3, "map", MapType(4, StringType(), 5, StringType())),
    NestedField(
        6,
        "point",
        StructType(NestedField(7, "x", LongType()), NestedField(8, "y", LongType())),
    ),
    NestedField(9, "name", StringType()),
)


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("none", NONE),
        ("counts", COUNTS),
        ("FULL", FULL),
        ("truncate(16)", DEFAULT_MODE),
        (" Truncate(4) ", Mode(kind="truncate", length=4)),
    ],
)
def test_modes_are_read_as_iceberg_writes_them(text: str, mode: Mode) -> None:
    assert parse_mode(text, name="p") == mode


@pytest.mark.parametrize(
    "text", ["", "all", "truncate", "truncate()", "truncate(0)", "truncate(-1)"]
)
def test_a_bad_mode_is_refused_with_its_property_and_what_is_allowed(text: str) -> None:
    name = "write.metadata.metrics.column.c1"
    with pytest.raises(InvalidInput, match=r"column\.c1=.*none, counts, full, and truncate\(n\)"):
        tracked(WIDE, {name: text})


def test_only_the_first_32_columns_have_stats_by_default() -> None:
    assert tracked(WIDE, {}) == dict.fromkeys(range(1, 33), DEFAULT_MODE)


def test_columns_that_layout_rests_on_always_have_bounds() -> None:
    assert set(tracked(WIDE, {}, always={40}, exact={41})) == {*range(1, 33), 40, 41}
    properties = {"write.metadata.metrics.default": "counts"}
    found = tracked(WIDE, properties, always={40}, exact={41})
    assert (found[39], found[40], found[41]) == (COUNTS, DEFAULT_MODE, FULL)


def test_a_columns_own_property_wins_except_over_identity_partitions() -> None:
    properties = {
        "write.metadata.metrics.column.c1": "none",
        "write.metadata.metrics.column.c2": "none",
        "write.metadata.metrics.column.c50": "full",
        "write.metadata.metrics.column.gone": "full",
    }
    found = tracked(WIDE, properties, always={1, 2}, exact={2})
    assert 1 not in found
    assert found[2] == FULL
    assert found[50] == FULL


def test_a_default_that_is_given_holds_for_every_column() -> None:
    assert tracked(WIDE, {"write.metadata.metrics.default": "full"}) == dict.fromkeys(
        range(1, 51), FULL
    )
    assert tracked(WIDE, {"write.metadata.metrics.default": "none"}) == {}


def test_how_many_columns_have_stats_by_default_can_be_set() -> None:
    name = "write.metadata.metrics.max-inferred-column-defaults"
    assert set(tracked(WIDE, {name: "2"})) == {1, 2}
    for bad in ("-1", "two"):
        with pytest.raises(InvalidInput, match="max-inferred-column-defaults"):
            tracked(WIDE, {name: bad})


def test_fields_inside_lists_and_maps_neither_count_nor_have_stats() -> None:
    name = "write.metadata.metrics.max-inferred-column-defaults"
    assert list(tracked(NESTED, {})) == [7, 8, 9]
    assert list(tracked(NESTED, {name: "2"})) == [7, 8]
    assert tracked(NESTED, {"write.metadata.metrics.column.point.y": "counts"})[8] == COUNTS


@pytest.mark.parametrize(
    ("value", "length", "upper"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "abd"),
        ("ab\U0010ffffd", 3, "ac"),
        ("\U0010ffff\U0010ffffx", 2, None),
        ("a\ud7ffx", 2, "a\ue000"),
        ("日本語", 2, "日\u672d"),
        ("", 2, ""),
        (b"ab\xffd", 3, b"ac"),
        (b"\xff\xff\xff", 2, None),
        (b"\x00\x00", 1, b"\x01"),
    ],
)
def test_upper_bounds_are_rounded_up_when_cut(
    value: str | bytes, length: int, upper: str | bytes | None
) -> None:
    assert truncate_upper(value, length) == upper


#: Characters at the edges: ends of the alphabet, around the surrogates, of every UTF-8 length.
EDGES = st.text(alphabet="a\x7f\x80\u07ff\ud7ff\ue000\uffff\U00010000\U0010ffff", max_size=5)
BYTES = st.lists(st.sampled_from([0, 1, 0x7F, 0xFE, 0xFF]), max_size=5).map(bytes)


@given(EDGES | st.text(max_size=4) | BYTES, st.integers(1, 4))
def test_cut_bounds_still_hold_the_value(value: str | bytes, length: int) -> None:
    # UTF-8 sorts as code points do, which is how Python compares.
    lower, upper = truncate_lower(value, length), truncate_upper(value, length)
    assert lower <= value  # type: ignore[operator]
    assert len(lower) <= length
    if upper is not None:
        assert upper >= value  # type: ignore[operator]
        assert len(upper) <= length
