"""Filters as text: what they come to, and what is said of a mistake."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import expressions as ice
from pyiceberg.expressions.literals import BinaryLiteral, literal

from icetree.errors import IcetreeError, InvalidInput
from icetree.filters.filter import parse_filter
from icetree.filters.text import predicate_text
from icetree.table.table import Table
from icetree.tree.prune.predicates import Transformed
from tests.rows.lake import new_table

A, B, C = ice.EqualTo("a", 1), ice.EqualTo("b", 2), ice.EqualTo("c", 3)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a = 1", A),
        ("a == 1", A),
        ("a != 1", ice.NotEqualTo("a", 1)),
        ("a <> 1", ice.NotEqualTo("a", 1)),
        ("a<1", ice.LessThan("a", 1)),
        ("a <= -1", ice.LessThanOrEqual("a", -1)),
        ("a > 1.50", ice.GreaterThan("a", Decimal("1.50"))),
        ("a >= 1e3", ice.GreaterThanOrEqual("a", Decimal("1e3"))),
        ("1 < a", ice.GreaterThan("a", 1)),
        ("1 >= a", ice.LessThanOrEqual("a", 1)),
        ("a = 'it''s'", ice.EqualTo("a", "it's")),
        ("a = ''", ice.EqualTo("a", "")),
        ("a = TRUE", ice.EqualTo("a", True)),
        ("false = a", ice.EqualTo("a", False)),
        ("a = X'00fF'", ice.EqualTo("a", BinaryLiteral(b"\x00\xff"))),
        ("a in (1, 2)", ice.In("a", {literal(1), literal(2)})),
        ("a in (1)", A),
        ("a NOT IN ('x','y')", ice.Not(ice.In("a", {literal("x"), literal("y")}))),
        (
            "a between 1 and 5",
            ice.And(ice.GreaterThanOrEqual("a", 1), ice.LessThanOrEqual("a", 5)),
        ),
        ("a is null", ice.IsNull("a")),
        ("a IS NOT NULL", ice.NotNull("a")),
        ("a is nan", ice.IsNaN("a")),
        ("a is not nan", ice.NotNaN("a")),
        ("a like 'ab%'", ice.StartsWith("a", "ab")),
        ("a like 'ab'", ice.EqualTo("a", "ab")),
        (r"a like '50\%\_%'", ice.StartsWith("a", "50%_")),
        ("a not like 'ab%'", ice.Not(ice.StartsWith("a", "ab"))),
        ("starts_with(a, 'x')", ice.StartsWith("a", "x")),
        ("not starts_with(a, 'x')", ice.Not(ice.StartsWith("a", "x"))),
        ("a starts with 'x'", ice.StartsWith("a", "x")),
        ("address.zip = 1", ice.EqualTo("address.zip", 1)),
        ('"my col"."a.b" = 1', ice.EqualTo("my col.a.b", 1)),
        ('"say ""hi""" = 1', ice.EqualTo('say "hi"', 1)),
        ("`in` = 1", ice.EqualTo("in", 1)),
        ("größe = 1", ice.EqualTo("größe", 1)),
        ("day = 1", ice.EqualTo("day", 1)),
        ("true", ice.AlwaysTrue()),
        (" ( FALSE ) ", ice.AlwaysFalse()),
        ("bucket(16, id) = 3", ice.EqualTo(Transformed("bucket[16]", "id"), 3)),
        (
            "bucket(16, a.id) in (3, 4)",
            ice.In(Transformed("bucket[16]", "a.id"), {literal(3), literal(4)}),
        ),
        ("truncate(4, name) = 'abcd'", ice.EqualTo(Transformed("truncate[4]", "name"), "abcd")),
        ("day(ts) = '2026-01-05'", ice.EqualTo(Transformed("day", "ts"), "2026-01-05")),
        ("days(ts) < 20458", ice.LessThan(Transformed("day", "ts"), 20458)),
        ("year(ts) = '2026'", ice.EqualTo(Transformed("year", "ts"), 56)),
        ("year(ts) = 56", ice.EqualTo(Transformed("year", "ts"), 56)),
        ("'1969' <= year(ts)", ice.GreaterThanOrEqual(Transformed("year", "ts"), -1)),
        ("month(ts) >= '2026-03'", ice.GreaterThanOrEqual(Transformed("month", "ts"), 674)),
        ("hour(ts) = '1970-01-02T03'", ice.EqualTo(Transformed("hour", "ts"), 27)),
        ("hour(ts) is null", ice.IsNull(Transformed("hour", "ts"))),
    ],
)
def test_a_text_means_an_expression(text: str, meant: ice.BooleanExpression) -> None:
    assert parse_filter(text) == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a = 1 or b = 2 and c = 3", ice.Or(A, ice.And(B, C))),
        ("(a = 1 or b = 2) and c = 3", ice.And(ice.Or(A, B), C)),
        ("not a = 1 and b = 2", ice.And(ice.Not(A), B)),
        ("not (a = 1 and b = 2)", ice.Not(ice.And(A, B))),
        ("not not a = 1", ice.Not(ice.Not(A))),
        ("a between 1 and 1 and b = 2", ice.And(parse_filter("a between 1 and 1"), B)),
    ],
)
def test_and_binds_more_tightly_than_or_and_not_most_tightly(
    text: str, meant: ice.BooleanExpression
) -> None:
    assert parse_filter(text) == meant


@pytest.mark.parametrize(
    ("text", "at", "what"),
    [
        ("", 1, "expected a column, found the end"),
        ("a", 2, "expected one of =, ==, !=, <>, <, <=, >, >=, is, not, in, between"),
        ("a =", 4, "expected a literal, found the end"),
        ("a = b", 5, "expected a literal (strings go in single quotes), found 'b'"),
        ('a = "b"', 5, "strings go in single quotes"),
        ("a = 1 b = 2", 7, "expected and, or, or the end, found 'b'"),
        ("(a = 1", 7, "expected and, or, or ), found the end"),
        ("a = 1)", 6, "expected and, or, or the end, found ')'"),
        ("a = 'x", 5, "the ' is not closed"),
        ('"a = 1', 1, 'the " is not closed'),
        ("a = 12abc", 5, "'12abc' is not a number"),
        ("a = 1.2.3", 5, "'1.2.3' is not a number"),
        ("a ~ 1", 3, "'~' is not expected anywhere"),
        ("a in ()", 7, "expected a literal, found ')'"),
        ("a in 1", 6, "expected (, found '1'"),
        ("a in (1, 2", 11, "expected , or ), found the end"),
        ("a not = 1", 7, "expected one of in, between, like, starts with, found '='"),
        ("a between 1 or 2", 13, "expected and, found 'or'"),
        ("a is 3", 6, "expected null, nan or not, found '3'"),
        ("a = null", 5, "nothing compares with null: use `is null`"),
        ("a like 'a%b'", 8, "only a % at the end"),
        ("a like 'a_'", 8, "only a % at the end"),
        ("a like 3", 8, "expected a pattern in single quotes, found '3'"),
        ("in = 3", 1, "expected a column (one that is a keyword goes in \"), found 'in'"),
        ("a. = 3", 4, "expected a column, found '='"),
        ("1 = 1", 5, "expected a column, found '1'"),
        ("1 in (1)", 3, "expected one of ="),
        ("lower(a) = 'x'", 1, "there is no function 'lower'; there are: starts_with, bucket"),
        ("bucket(id, 16) = 3", 8, "expected a whole number: bucket(16, column), found 'id'"),
        ("bucket(0, id) = 3", 8, "expected a whole number"),
        ("year(ts) = 2026", 12, "expected the year as '2026', or as a number counted from 1970"),
        ("month(ts) = '2026'", 13, "expected the month as '2026-03'"),
        ("month(ts) = '2026-13'", 13, "there is no such month"),
        ("a = x'0'", 5, "expected pairs of hex digits"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_could_stand_there(
    text: str, at: int, what: str
) -> None:
    with pytest.raises(InvalidInput) as told:
        parse_filter(text)
    assert f"at character {at}: " in str(told.value)
    assert what in str(told.value)


def test_what_is_no_filter_is_refused() -> None:
    with pytest.raises(InvalidInput, match="3 is no filter"):
        parse_filter(3)  # type: ignore[arg-type]


@given(st.text(alphabet="ab1.'\"`()=<> ,%notinslike", max_size=40))
def test_any_text_is_a_filter_or_a_mistake(text: str) -> None:
    try:
        found = parse_filter(text)
    except InvalidInput as error:
        told = str(error)
    else:
        assert isinstance(found, ice.BooleanExpression)
        return
    assert "at character" in told


def test_a_thousand_alternatives_are_fine_and_endless_nesting_is_refused() -> None:
    many = parse_filter(" or ".join(f"a = {n}" for n in range(2000)))
    assert "a = 1999" in predicate_text(many)
    with pytest.raises(InvalidInput, match="nests too deep"):
        parse_filter("(" * 100_000 + "a = 1" + ")" * 100_000)


@pytest.mark.parametrize(
    "text",
    [
        "a = 'it''s' and (b >= 3 or c is not null)",
        "name starts with 'x' and not (n in (1, 2))",
        "bucket(16, id) = 3 and day(ts) < 20458 and truncate(4, s) = 'abcd'",
    ],
)
def test_a_filter_shown_to_people_can_be_read_again(text: str) -> None:
    assert predicate_text(parse_filter(text)) == text


ROWS: dict[str, list[Any]] = {
    "n": [1, 2, 3, None],
    "name": ["apple", "apricot", "b%x", None],
    "price": [Decimal("1.50"), Decimal("2.00"), Decimal("-3.25"), None],
    "x": [1.5, float("nan"), 3.0, None],
    "ts": [0, 86_400_000_000, 1_767_225_600_000_000, None],
    "tz": [0, 86_400_000_000, 1_767_225_600_000_000, None],
    "place": [{"zip": 1}, {"zip": 2}, {"zip": 3}, None],
}
SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("name", pa.string()),
        ("price", pa.decimal128(9, 2)),
        ("x", pa.float64()),
        ("ts", pa.timestamp("us")),
        ("tz", pa.timestamp("us", "UTC")),
        ("place", pa.struct([("zip", pa.int64())])),
    ]
)


@pytest.fixture(scope="module")
def held() -> Table:
    table = new_table(SCHEMA, partition_by=["day(ts)", "bucket(4, n)"])
    table.append(pa.table(ROWS, SCHEMA))
    return table


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("n between 2 and 3", [2, 3]),
        ("n not between 2 and 3", [1]),
        ("name like 'ap%' and name != 'apple'", [2]),
        (r"name like 'b\%%'", [3]),
        ("price = 1.5", [1]),
        ("price > 1.500 or price < -3", [2, 3]),
        ("price > 1.505", [2]),
        ("price = 1.505", []),
        ("x is nan", [2]),
        ("ts >= '1970-01-02'", [2, 3]),
        ("ts = '2026-01-01 00:00'", [3]),
        ("tz >= '2026-01-01'", [3]),
        ("tz < '1970-01-02T01:00:00+02:00'", [1]),
        ("tz = '1970-01-02T00:00:00Z'", [2]),
        ("place.zip in (1, 3)", [1, 3]),
        ("day(ts) = '2026-01-01'", [3]),
        ("year(ts) = '2026'", [3]),
        ("month(tz) < '1970-02'", [1, 2]),
        ("hour(tz) = 24", [2]),
        ("truncate(2, name) = 'ap'", [1, 2]),
        ("truncate(2, n) = 2", [2, 3]),
        ("bucket(4, n) in (0, 1, 2, 3)", [1, 2, 3]),
    ],
)
def test_rows_are_found_by_text(held: Table, text: str, found: list[int]) -> None:
    assert sorted(held.scan(text).to_arrow()["n"].to_pylist()) == found


@pytest.mark.parametrize(
    "text", ["price = '1.x'", "n = 'x'", "bucket(4, x) = 1", "day(n) = 1", "ts = 'noon'", "q = 1"]
)
def test_what_does_not_fit_the_columns_is_refused(text: str) -> None:
    with pytest.raises(IcetreeError):
        new_table(SCHEMA).scan(text).plan()


NAN = float("nan")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("g > 1", [2]),
        ("not g > 1", [1]),
        ("not g <= 1", [2]),
        ("g != 2", [1, 3]),
        ("not g = 2", [1, 3]),
        ("g not in (0.5, 7)", [2, 3]),
        ("not g > 1 or g is nan", [1, 3]),
        ("not (g > 1 or g is nan)", [1]),
        ("g is not nan", [1, 2, 4]),
    ],
)
@pytest.mark.parametrize("files", [1, 4])
def test_a_nan_differs_from_every_number_and_is_neither_less_nor_greater(
    text: str, found: list[int], files: int
) -> None:
    rows = pa.table({"id": [1, 2, 3, 4], "g": [0.5, 2.0, NAN, None]})
    table = new_table(pa.schema([("id", pa.int64()), ("g", pa.float64())]))
    for start in range(0, 4, 4 // files):
        table.append(rows.slice(start, 4 // files))
    scan = table.scan(text)
    assert sorted(scan.to_arrow()["id"].to_pylist()) == found
    assert scan.count() == len(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("tags is null", [2]),
        ("not tags is null", [1, 3]),
        ("pairs is not null", [2]),
        ("deep.tags is null", [2, 3]),
    ],
)
def test_lists_and_maps_can_be_asked_whether_they_are_null(text: str, found: list[int]) -> None:
    tags = pa.list_(pa.string())
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("tags", tags),
            ("pairs", pa.map_(pa.string(), pa.int64())),
            ("deep", pa.struct([("tags", tags), ("n", pa.int64())])),
        ]
    )
    table = new_table(schema)
    rows = [
        {"id": 1, "tags": ["a"], "pairs": None, "deep": {"tags": [], "n": 1}},
        {"id": 2, "tags": None, "pairs": [("k", 1)], "deep": None},
        {"id": 3, "tags": [], "pairs": None, "deep": {"tags": None, "n": 2}},
    ]
    table.append(pa.Table.from_pylist(rows, schema=schema))
    assert table.scan(text).count() == len(found)
    assert table.scan(text, columns=["id"]).to_arrow()["id"].to_pylist() == found
    for wrong in ("tags = 'a'", "tags.element = 'a'", "pairs.key is null", "deep.tags in ('a')"):
        with pytest.raises(InvalidInput, match=r"cannot be compared|within a list or map"):
            table.scan(wrong).count()
