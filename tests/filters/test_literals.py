"""Literals that are no value of the column they are compared with, against brute force."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import expressions as ice

from icetree.errors import InvalidInput
from icetree.table.table import Table
from tests.rows.lake import new_table
from tests.tree.rows import COMPARISONS

CENTS = [Decimal(text) for text in ("-99.99", "-2.00", "-1.99", "0.00", "1.99", "2.00", "99.99")]
DAYS = [dt.date(1969, 12, 30) + dt.timedelta(days=n) for n in range(5)]


def midnight(day: dt.date) -> dt.datetime:
    return dt.datetime.combine(day, dt.time(), dt.timezone.utc)


def held(column: pa.Array, **how: Any) -> Table:
    table = new_table(pa.schema([("x", column.type)]), **how)
    table.append(pa.table({"x": column}))
    return table


def found(of: pa.Array | Table, predicate: ice.BooleanExpression, **how: Any) -> list[Any]:
    table = of if isinstance(of, Table) else held(of, **how)
    scan = table.scan(predicate)
    values = sorted(scan.to_arrow()["x"].to_pylist())
    assert scan.count() == len(values)
    return values


@cache
def cents(*partition_by: str) -> tuple[Table, pa.Array]:
    """A table of decimals and what it holds, made once for all literals."""
    column = pa.array([*CENTS, None], pa.decimal128(4, 2))
    if partition_by == ("truncate(10, x)",):
        column = column.slice(1, 5)
    return held(column, partition_by=[*partition_by]), column


@pytest.mark.parametrize("partition_by", [[], ["truncate(10, x)"], ["x"]], ids=str)
@pytest.mark.parametrize(
    "literal",
    [1.996, -1.996, 1.99, 99.995, -99.995, 1e300, -1e300, float("inf")]
    + [Decimal(text) for text in ("1.995", "-1.995", "2", "2.000", "1E+1", "1E-50", "1E+400")],
    ids=str,
)
def test_a_number_between_two_decimals_is_greater_than_one_and_less_than_the_other(
    literal: Any, partition_by: list[str]
) -> None:
    table, column = cents(*partition_by)
    exact = literal if isinstance(literal, Decimal) else Decimal(repr(literal))
    for kind, compare in COMPARISONS.items():
        expected = [each for each in column.to_pylist() if each is not None]
        expected = [each for each in expected if compare(each, exact)]
        made: Any = kind("x", literal)
        assert found(table, made) == expected, kind


@pytest.mark.parametrize("hour", [0, 12])
@pytest.mark.parametrize("partition_by", [[], ["month(x)"], ["x"]], ids=str)
def test_a_moment_within_a_day_comes_after_that_day(hour: int, partition_by: list[str]) -> None:
    literal = dt.datetime(1969, 12, 31, hour, tzinfo=dt.timezone.utc)
    table = held(pa.array([*DAYS, None]), partition_by=partition_by)
    for kind, compare in COMPARISONS.items():
        expected = [day for day in DAYS if compare(midnight(day), literal)]
        made: Any = kind("x", literal)
        assert found(table, made) == expected, kind


def test_a_list_finds_only_what_is_exactly_in_it() -> None:
    column = pa.array(CENTS, pa.decimal128(4, 2))
    assert found(column, ice.In("x", [1.99, 1.996])) == [Decimal("1.99")]
    assert found(column, ice.NotIn("x", [1.996, 1.994])) == CENTS
    noons = [dt.datetime(1970, 1, day, 12, tzinfo=dt.timezone.utc) for day in (1, 2)]
    assert found(pa.array(DAYS), ice.In("x", noons)) == []


@pytest.mark.parametrize("text", ["x < '2.5'", "x = '1.4'", "x in ('1', '1.5')", "x > 'inf'"])
def test_text_that_is_no_whole_number_is_refused_for_one(text: str) -> None:
    with pytest.raises(InvalidInput, match="'x' is long"):
        found(pa.array([1, 2]), text)  # type: ignore[arg-type]


def test_a_time_finer_than_the_column_is_refused() -> None:
    noon = pa.array([dt.time(12)], pa.time64("us"))
    with pytest.raises(InvalidInput, match="'x' is time"):
        found(noon, "x < '12:00:00.0000001'")  # type: ignore[arg-type]


def test_text_that_is_a_whole_number_is_that_number() -> None:
    numbers = pa.array([2**53, 2**53 + 1])
    assert found(numbers, f"x = '{2**53 + 1}'") == [2**53 + 1]  # type: ignore[arg-type]
    assert found(numbers, "x < '1e30'") == [2**53, 2**53 + 1]  # type: ignore[arg-type]


def test_decimals_of_38_digits_are_compared_to_the_last() -> None:
    text = "1234567890123456789012345678.901234567"
    column = pa.array([Decimal(f"{text}8")], pa.decimal128(38, 10))
    for partition_by in ([], ["truncate(10, x)"], ["bucket(4, x)"]):
        table = held(column, partition_by=partition_by)
        for filter, count in (
            (f"x > {text}7", 1),
            (f"x = {text}8", 1),
            (f"x < {text}8", 0),
            (f"x = {text}85", 0),
            (f"x < {text}85", 1),
            ("x < -12345678901234567890123456789", 0),
            ("x > -12345678901234567890123456789", 1),
            ("x != 1e40", 1),
        ):
            made: Any = filter
            assert len(found(table, made)) == count, filter
