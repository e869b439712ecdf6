"""Expressions over columns, from their text to values of rows."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icetree.errors import InvalidInput
from icetree.filters.expression_parser import FUNCTIONS, parse_expression
from icetree.rows.matching import evaluate

_NAN = float("nan")
_COLUMNS = {
    "a": pa.array([1, 2, None], pa.int32()),
    "l": pa.array([10, -7, 3], pa.int64()),
    "d": pa.array([1.5, _NAN, -0.0]),
    "f": pa.array([1.5, 2.0, None], pa.float32()),
    "s": pa.array(["x", None, "abc"]),
    "p": pa.array([Decimal("1.25"), None, Decimal("-3.10")], pa.decimal128(9, 2)),
    "t": pa.array([0, 1, 2], pa.date32()),
    "st": pa.array([{"n": 4}, None, {"n": None}], pa.struct([("n", pa.int32())])),
}


def _worked_out(text: str) -> pa.Array:
    def column(named: Any) -> pa.Array:
        first, *rest = named.names
        found = _COLUMNS[first]
        for name in rest:
            found = pa.compute.struct_field(found, name)
        return found

    return evaluate.evaluate(parse_expression(text), column, 3)


@pytest.mark.parametrize(
    ("text", "type", "values"),
    [
        ("a + 1", pa.int32(), [2, 3, None]),
        ("a -1", pa.int32(), [0, 1, None]),
        ("-a * 2 + l", pa.int64(), [8, -11, None]),
        ("l % 3", pa.int64(), [1, -1, 0]),
        ("a / 2", pa.float64(), [0.5, 1.0, None]),
        ("f * 1.5", pa.float32(), [2.25, 3.0, None]),
        ("p + 1", pa.decimal128(13, 2), [Decimal("2.25"), None, Decimal("-2.10")]),
        ("s || '-' || a", pa.string(), ["x-1", None, None]),
        ("coalesce(a, 0)", pa.int32(), [1, 2, 0]),
        ("coalesce(null, s, 'none')", pa.string(), ["x", "none", "abc"]),
        ("upper(s)", pa.string(), ["X", None, "ABC"]),
        ("length(s)", pa.int32(), [1, None, 3]),
        ("substring(s, 2)", pa.string(), ["", None, "bc"]),
        ("substring(s, 1, 2)", pa.string(), ["x", None, "ab"]),
        ("replace(s, 'b', '')", pa.string(), ["x", None, "ac"]),
        ("round(d + 0.26, 1)", pa.float64(), [1.8, _NAN, 0.3]),
        ("greatest(a, l)", pa.int64(), [10, 2, 3]),
        ("nullif(a, 1)", pa.int32(), [None, 2, None]),
        ("abs(l)", pa.int64(), [10, 7, 3]),
        ("case when a > 1 then 'big' when a is null then null else s end", pa.string(), ["x", "big", None]),
        ("cast(a as string)", pa.string(), ["1", "2", None]),
        ("cast(l / 4 as long)", pa.int64(), [2, -1, 0]),
        ("cast('2.345' as decimal(5, 3))", pa.decimal128(5, 3), [Decimal("2.345")] * 3),
        ("cast(p as decimal(4, 1))", pa.decimal128(4, 1), [Decimal("1.2"), None, Decimal("-3.1")]),
        ("st.n + 1", pa.int32(), [5, None, None]),
        ("null", pa.null(), [None] * 3),
        ("'it''s'", pa.string(), ["it's"] * 3),
        ("date '2026-01-02' > t", pa.bool_(), [True] * 3),
        ("t = '1970-01-02'", pa.bool_(), [False, True, False]),
        ("not (d > 1)", pa.bool_(), [False, False, True]),
        ("d = d", pa.bool_(), [True, False, True]),
        ("d is nan", pa.bool_(), [False, True, False]),
        ("a not in (1, 5)", pa.bool_(), [False, True, None]),
        ("l between 0 and 5 or s like '%x%'", pa.bool_(), [True, None, True]),
        ("a = 1 and (s = 'x' or null)", pa.bool_(), [True, False, None]),
        ("not (s starts with 'a')", pa.bool_(), [True, None, False]),
    ],
)  # fmt: skip
def test_an_expression_has_a_type_and_values(
    text: str, type: pa.DataType, values: list[Any]
) -> None:
    found = _worked_out(text)
    assert found.type == type
    assert repr(found.to_pylist()) == repr(values)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a + 2147483647", "overflow"),
        ("l * 9223372036854775807", "overflow"),
        ("a / 0", "division by zero"),
        ("l % (a - 1)", "division by zero"),
        ("a + 'x'", r"\+ of int32 and string"),
        ("lower(l)", "lower of int64: it takes text"),
        ("cast(d as int)", "cast of double to int"),
        ("cast(l as nonsense)", "nonsense"),
        ("nope(l)", "there is no function 'nope'"),
        ("uper(s)", "did you mean 'upper'"),
        ("abs(a, l)", "abs does not take 2 arguments"),
        ("a +", r"at character 4: expected a column, a value or a function, found the end"),
        ("a b", r"at character 3: expected an operator, or the end, found 'b'"),
        ("case a end", "a case needs a when"),
        ("a is 3", "expected null or nan"),
        ("(a", "expected an operator or \\)"),
        ("'open", "is not closed"),
        ("(" * 50_000 + "a", "nests too deep"),
    ],
)
def test_what_cannot_be_worked_out_is_told(text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        _worked_out(text)


def test_every_function_can_be_called() -> None:
    for name, (least, _) in FUNCTIONS.items():
        arguments = {"replace": "s, 'a', 'b'", "starts_with": "s, 'a'", "substring": "s, 1"}
        text = "s" if name in ("length", "lower", "trim", "upper", "concat") else "a"
        given_ = arguments.get(name, ", ".join([text] * least))
        assert len(_worked_out(f"{name}({given_})")) == 3


@given(st.text(alphabet="ab1.'\"`()=<> ,%+-*/|notcasewhn", max_size=40))
def test_any_text_is_an_expression_or_a_mistake(text: str) -> None:
    with suppress(InvalidInput):
        parse_expression(text)
