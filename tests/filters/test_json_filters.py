"""Filters as REST clients send them: the same rows as they mean, and never fewer."""

from __future__ import annotations

import datetime as dt
import json
import math
import uuid
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import expressions as ice
from pyiceberg.catalog.rest.scan_planning import PlanTableScanRequest
from pyiceberg.expressions import visitors
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import (
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    UUIDType,
)

from icetree.errors import InvalidInput
from icetree.filters.filter import parse_filter
from icetree.filters.from_json import filter_from_json
from icetree.filters.to_json import EVERY_ROW, filter_to_json
from icetree.tree.prune.bind import bind
from icetree.tree.prune.predicates import Transformed, Unsure
from icetree.tree.prune.prune import may_match, must_match
from tests.effort import law
from tests.tree import rows as r

SCHEMA = r.SHAPE.schema
NOON = dt.datetime(2020, 1, 2, 12, tzinfo=dt.timezone.utc)


def sent(predicate: ice.BooleanExpression) -> Any:
    """Return the document that PyIceberg sends for a filter."""
    body = PlanTableScanRequest(filter=predicate).model_dump_json(by_alias=True)
    return json.loads(body)["filter"]


def counted(predicate: ice.BooleanExpression) -> Any:
    """Return the document that Iceberg Java sends: dates as days, times as microseconds."""

    def value(literal: Any) -> Any:
        plain = literal.value
        if isinstance(plain, bytes):
            return plain.hex().upper()
        return str(plain) if isinstance(plain, Decimal) else plain

    words = {kind: word for word, kind in _WORDS.items()}
    match predicate:
        case ice.And() | ice.Or():
            word = "and" if isinstance(predicate, ice.And) else "or"
            return {
                "type": word,
                "left": counted(predicate.left),
                "right": counted(predicate.right),
            }
        case ice.Not():
            return {"type": "not", "child": counted(predicate.child)}
        case ice.AlwaysTrue() | ice.AlwaysFalse():
            return isinstance(predicate, ice.AlwaysTrue)
        case ice.LiteralPredicate():
            more = {"value": value(predicate.literal)}
        case ice.SetPredicate():
            more = {"values": [value(each) for each in predicate.literals]}
        case _:
            more = {}
    return {"type": words[type(predicate)], "term": predicate.term.name, **more}


_WORDS: dict[str, type[Any]] = {
    "lt": ice.LessThan,
    "lt-eq": ice.LessThanOrEqual,
    "gt": ice.GreaterThan,
    "gt-eq": ice.GreaterThanOrEqual,
    "eq": ice.EqualTo,
    "not-eq": ice.NotEqualTo,
    "starts-with": ice.StartsWith,
    "not-starts-with": ice.NotStartsWith,
    "in": ice.In,
    "not-in": ice.NotIn,
    "is-null": ice.IsNull,
    "not-null": ice.NotNull,
    "is-nan": ice.IsNaN,
    "not-nan": ice.NotNaN,
}


@st.composite
def cases(draw: st.DrawFn, names: list[str]) -> tuple[list[list[r.Row]], list[str], Any]:
    some = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    return draw(r.files(some)), some, draw(r.predicates(some))


def test_the_drawn_filters_have_every_predicate() -> None:
    assert set(_WORDS.values()) == {
        kind
        for kind in vars(ice).values()
        if isinstance(kind, type)
        and issubclass(kind, ice.UnboundPredicate)
        and kind.__name__
        not in ("UnboundPredicate", "UnaryPredicate", "SetPredicate", "LiteralPredicate")
    }


@law(40)
@given(cases([name for name in r.PEER_NAMES if name not in ("i", "l")]))
def test_what_a_client_sends_picks_the_rows_that_it_picks_itself(case: Any) -> None:
    many, names, predicate = case
    columns = Schema(*(field for field in SCHEMA.fields if field.name in names))
    # As clients do when they scan: a null is neither less than a value nor not less.
    wanted = visitors.expression_evaluator(columns, visitors.rewrite_not(predicate), True)
    for document in (sent(predicate), counted(predicate)):
        if _is_unsure(read := filter_from_json(document, SCHEMA)):
            continue
        found = visitors.expression_evaluator(columns, read, True)
        for row in (row for rows in many for row in rows):
            record = Record(*(row[field.name] for field in columns.fields))
            assert found(record) == wanted(record), document


@law(50)
@given(cases([name for name in r.NAMES if name != "ns"]))
def test_no_file_is_lost_or_vouched_for_that_a_client_judges_otherwise(case: Any) -> None:
    many, names, predicate = case
    plain = visitors.rewrite_not(predicate)
    entries = r.entries_of(many, [r.stats_of(rows, names) for rows in many])
    for document in (sent(predicate), counted(predicate)):
        bound = bind(filter_from_json(document, SCHEMA), r.SHAPE)
        kept, whole = may_match(entries, bound), must_match(entries, bound)
        for at, rows in enumerate(many):
            for sql, rounded in r.READINGS:
                judged = [r.holds(plain, row, sql=sql, rounded=rounded) for row in rows]
                assert kept[at].as_py() or not any(judged), document
                assert not whole[at].as_py() or all(judged), document


@law(40)
@given(cases(r.NAMES))
def test_a_filter_that_is_told_and_read_again_prunes_the_same(case: Any) -> None:
    many, names, predicate = case
    told = filter_to_json(visitors.rewrite_not(predicate), SCHEMA)
    read = filter_from_json(msgspec.json.decode(msgspec.json.encode(told)), SCHEMA)
    entries = r.entries_of(many, [r.stats_of(rows, names) for rows in many])
    before, after = (bind(each, r.SHAPE) for each in (predicate, read))
    wide, narrow = (may_match(entries, each).to_pylist() for each in (after, before))
    if EVERY_ROW in _parts(told):
        assert all(kept for kept, wanted in zip(wide, narrow, strict=True) if wanted)
    else:
        assert wide == narrow
        assert must_match(entries, after) == must_match(entries, before)


def _is_unsure(expression: ice.BooleanExpression) -> bool:
    return EVERY_ROW in _parts(filter_to_json(expression, SCHEMA))


def _parts(document: Any) -> list[Any]:
    if not isinstance(document, dict):
        return [document]
    inner = [document[word] for word in ("left", "right") if word in document]
    return [document, *(part for each in inner for part in _parts(each))]


NESTED = Schema(
    NestedField(1, "n", LongType()),
    NestedField(2, "s", StringType()),
    NestedField(
        3,
        "a",
        StructType(NestedField(4, "B", IntegerType()), NestedField(5, "u", UUIDType())),
    ),
    NestedField(6, "many", ListType(element_id=7, element_type=LongType())),
    NestedField(8, "at", TimestampNanoType()),
)


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (True, "true"),
        ({"type": "false"}, "false"),
        ({"type": "literal", "value": True}, "true"),
        ({"type": "eq", "term": "n", "value": 1}, "n = 1"),
        ({"type": "EQ", "term": "n", "value": 1}, "n = 1"),
        ({"type": "lt_eq", "term": "n", "value": 1}, "n <= 1"),
        ({"type": "lt", "left": {"type": "reference", "name": "n"}, "right": 1}, "n < 1"),
        ({"type": "lt", "left": 1, "right": {"type": "reference", "id": 1}}, "n > 1"),
        ({"type": "lt", "term": {"type": "reference", "term": "n"}, "value": 1}, "n < 1"),
        ({"type": "eq", "term": "n", "value": {"type": "literal", "value": 1}}, "n = 1"),
        ({"type": "is-null", "child": {"type": "reference", "name": "a.B"}}, "a.B is null"),
        ({"type": "is-null", "term": "many"}, "many is null"),
        (
            {"type": "in", "term": "n", "values": {"type": "literals", "values": [1, 2]}},
            "n in (1, 2)",
        ),
        ({"type": "in", "term": "n", "values": []}, "false"),
        ({"type": "not", "child": {"type": "in", "term": "n", "values": []}}, "true"),
        (
            {"type": "not", "child": {"type": "starts-with", "term": "s", "value": "x"}},
            "not (s starts with 'x')",
        ),
        (
            {
                "type": "eq",
                "term": {"type": "transform", "transform": "bucket[16]", "term": "n"},
                "value": 3,
            },
            "bucket(16, n) = 3",
        ),
    ],
)
def test_a_document_says_what_a_text_says(document: Any, text: str) -> None:
    wanted = visitors.rewrite_not(parse_filter(text))
    assert filter_from_json(document, NESTED) == wanted


@pytest.mark.parametrize(
    "unknown",
    [
        {"type": "eq", "left": {"type": "apply", "function": "f", "arguments": []}, "right": 1},
        {
            "type": "lt",
            "left": {"type": "reference", "name": "n"},
            "right": {"type": "reference", "name": "a.B"},
        },
        {
            "type": "eq",
            "term": {"type": "transform", "transform": "soundex", "term": "s"},
            "value": 1,
        },
        {
            "type": "in",
            "child": {"type": "apply", "function": "f", "arguments": []},
            "values": [1],
        },
        {"type": "lt", "term": "n", "value": None},
    ],
    ids=["function", "two columns", "transform", "in a function", "infinity"],
)
def test_what_filters_cannot_say_is_left_to_who_judges_rows(unknown: Any) -> None:
    known = {"type": "eq", "term": "n", "value": 1}
    both = {"type": "and", "left": unknown, "right": known}
    assert filter_from_json(both, NESTED) == ice.And(Unsure(), ice.EqualTo("n", 1))
    neither = {"type": "not", "child": both}
    assert filter_from_json(neither, NESTED) == ice.Or(Unsure(), ice.NotEqualTo("n", 1))
    assert filter_to_json(filter_from_json(unknown, NESTED), NESTED) == EVERY_ROW


def test_a_moment_of_a_day_rules_no_day_out() -> None:
    document = {"type": "gt-eq", "term": "dt", "value": "1970-01-02T12:00:00"}
    assert filter_from_json(document, SCHEMA) == Unsure()


def test_a_number_for_a_time_counts_microseconds_whatever_the_column_does() -> None:
    document = {"type": "eq", "term": "at", "value": 7}
    assert filter_from_json(document, NESTED).literal.value == 7000  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (None, "None is no part of a filter"),
        ("n = 1", "'n = 1' is no part of a filter"),
        (
            {"type": "like", "term": "s", "value": "a%"},
            "a filter has no 'like'; there are: and, or",
        ),
        ({"type": "eq", "term": "n"}, "eq needs a value"),
        ({"type": "eq", "value": 1}, "eq needs a term"),
        ({"type": "eq", "term": "n", "value": [1]}, "'n': [1] is no value"),
        ({"type": "in", "term": "n", "values": 1}, "in needs a list of values"),
        ({"type": "is-null", "term": "n", "value": 1}, "is-null takes no value"),
        ({"type": "and", "left": True}, "has no right"),
        ({"type": "not"}, "has no child"),
        ({"type": "literal", "value": 1}, "neither true nor false"),
        ({"type": "eq", "term": "m", "value": 1}, "no column 'm' to filter on; there are: n"),
        ({"type": "eq", "term": "N", "value": 1}, "no column 'N'"),
        ({"type": "eq", "term": "many.element", "value": 1}, "within a list or map"),
        ({"type": "eq", "term": {"type": "reference", "id": 99}, "value": 1}, "id 99"),
        ({"type": "eq", "term": {"type": "column"}, "value": 1}, "is no term of a filter"),
        (
            {
                "type": "eq",
                "term": {"type": "transform", "transform": "bucket[x]", "term": "n"},
                "value": 1,
            },
            "'bucket[x]' is no transform",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(document: Any, told: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        filter_from_json(document, NESTED)
    assert told in str(refused.value)


def test_bytes_that_are_no_hex_digits_are_refused() -> None:
    with pytest.raises(InvalidInput, match="'b' is binary: 'zz' is not in pairs of hex digits"):
        filter_from_json({"type": "eq", "term": "b", "value": "zz"}, SCHEMA)


def test_names_are_found_in_any_case_where_that_is_asked_for() -> None:
    document = {"type": "eq", "term": "A.b", "value": 1}
    found = filter_from_json(document, NESTED, case_sensitive=False)
    assert filter_to_json(found, NESTED, case_sensitive=False) == document


def test_a_thousand_parts_are_no_matter_but_a_filter_deeper_than_that_is_refused() -> None:
    one = {"type": "eq", "term": "n", "value": 1}
    chain: Any = one
    for _ in range(2000):
        chain = {"type": "or", "left": chain, "right": one}
    bind(filter_from_json(chain, NESTED), r.SHAPE.__class__(schema=NESTED))
    deep: Any = one
    for _ in range(100_000):
        deep = {"type": "not", "child": deep}
    with pytest.raises(InvalidInput, match="nests too deep"):
        filter_from_json(deep, NESTED)


@pytest.mark.parametrize(
    ("expression", "document"),
    [
        (ice.EqualTo("dt", dt.date(2020, 1, 2)), "2020-01-02"),
        (ice.EqualTo("ts", NOON - dt.timedelta(hours=9)), "2020-01-02T03:00:00.000000"),
        (ice.EqualTo("tz", "2020-01-02T03:00:00+02:00"), "2020-01-02T01:00:00.000000+00:00"),
        (ice.EqualTo("ns", "2020-01-02T03:00:00.000000001"), "2020-01-02T03:00:00.000000001"),
        (ice.EqualTo("tm", dt.time(1, 2, 3)), "01:02:03.000000"),
        (ice.EqualTo("dec", Decimal("1.5")), "1.50"),
        (ice.EqualTo("dec", Decimal("1.555")), "1.555"),
        (ice.EqualTo("u", uuid.UUID(int=7)), "00000000-0000-0000-0000-000000000007"),
        (ice.EqualTo("b", b"\x00\xff"), "00FF"),
        (ice.EqualTo("x", b"\x00\xff"), "00FF"),
        (ice.EqualTo("o", True), True),
        (ice.EqualTo("d", 3), 3.0),
        (ice.EqualTo("i", 2**40), 2**40),
        (ice.EqualTo("s", 'a"b'), 'a"b'),
    ],
    ids=str,
)
def test_a_value_is_told_as_its_column_has_it(
    expression: ice.BooleanExpression, document: Any
) -> None:
    found = filter_to_json(expression, SCHEMA)["value"]
    assert (found, type(found)) == (document, type(document))


@pytest.mark.parametrize(
    "expression",
    [
        ice.EqualTo("d", math.inf),
        ice.EqualTo("l", 2**70),
        ice.EqualTo("dt", NOON),
    ],
    ids=str,
)
def test_a_value_that_has_no_json_is_every_row(expression: ice.BooleanExpression) -> None:
    assert filter_to_json(expression, SCHEMA) == EVERY_ROW


def test_a_transform_is_told_as_one() -> None:
    made: Any = ice.EqualTo
    term = {"type": "transform", "transform": "day", "term": "ts"}
    found = filter_to_json(made(Transformed("day", "ts"), "2020-01-02"), SCHEMA)
    assert found == {"type": "eq", "term": term, "value": "2020-01-02"}
    assert filter_to_json(filter_from_json(found, SCHEMA), SCHEMA) == found
