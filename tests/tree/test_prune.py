"""Pruning: what may match is never lost, what must match always does."""

from __future__ import annotations

import math
import time
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import expressions as ice
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import GeometryType, IntegerType, NestedField, StructType

from icetree.errors import InvalidInput
from icetree.spec.entry.entry import Entry, to_table
from icetree.spec.entry.stats import FieldStats
from icetree.spec.schema.shape import Shape
from icetree.tree.prune.bind import bind
from icetree.tree.prune.predicates import Transformed
from icetree.tree.prune.prune import may_match, must_match, residuals
from tests.tree import rows as r


def _pruned(predicate: ice.BooleanExpression, **stats: FieldStats) -> bool:
    known = {r.IDS[name]: each for name, each in stats.items()}
    table = to_table([Entry(location="f", record_count=3, stats=known)], r.SHAPE)
    return not may_match(table, bind(predicate, r.SHAPE))[0].as_py()


_WHOLE = {"values": 3, "nulls": 0, "nans": 0}


@pytest.mark.parametrize(
    ("predicate", "stats", "must"),
    [
        (ice.EqualTo("i", 5), {"lower": 5, "upper": 5}, True),
        (ice.EqualTo("i", 5), {"lower": 5, "upper": 5, "nulls": 1}, False),
        (ice.EqualTo("i", 5), {"lower": 5, "upper": 5, "nulls": None}, False),
        (ice.EqualTo("i", 5), {"lower": 4, "upper": 5}, False),
        (ice.LessThan("d", 3.0), {"lower": 1.0, "upper": 2.0}, True),
        (ice.LessThan("d", 2.0), {"lower": 1.0, "upper": 2.0}, False),
        (ice.LessThan("d", 3.0), {"lower": 1.0, "upper": 2.0, "nans": 1}, False),
        (ice.LessThan("d", 3.0), {"lower": 1.0, "upper": 2.0, "nans": None}, False),
        (ice.NotEqualTo("i", 5), {"lower": 6, "upper": 9}, True),
        (ice.NotEqualTo("i", 5), {"lower": 6, "upper": 9, "nulls": 1}, False),
        (ice.NotEqualTo("d", 5.0), {"lower": 6.0, "upper": 9.0, "nans": 1}, True),
        (ice.In("i", [5, 6]), {"lower": 5, "upper": 5}, True),
        (ice.In("i", [5, 6]), {"lower": 5, "upper": 6}, False),
        (ice.StartsWith("s", "ab"), {"lower": "aba", "upper": "abz"}, True),
        (ice.StartsWith("s", "ab"), {"lower": "aba", "upper": "ac"}, False),
        (ice.NotStartsWith("s", "ab"), {"lower": "ac", "upper": "b"}, True),
        (ice.NotStartsWith("s", "ab"), {"lower": "a", "upper": "b"}, False),
        (ice.IsNull("i"), {"nulls": 3}, True),
        (ice.IsNull("i"), {"nulls": 2}, False),
        (ice.NotNull("i"), {}, True),
        (ice.IsNaN("d"), {"nans": 3}, True),
        (ice.NotNaN("d"), {"nulls": 1}, True),
        (ice.LessThan("i", 2**40), {"lower": 1, "upper": 9}, True),
        (ice.LessThan("i", 2**40), {"lower": 1, "upper": 9, "nulls": 1}, False),
        (ice.EqualTo("f", 0.1), {"lower": r.F32, "upper": r.F32}, False),
        (ice.In("f", [0.1, 2.0]), {"lower": r.F32, "upper": r.F32}, False),
        (ice.In("f", [0.1, 2.0]), {"lower": 2.0, "upper": 2.0}, True),
        (ice.NotIn("f", [0.1, 2.0]), {"lower": r.F32, "upper": r.F32}, False),
    ],
    ids=str,
)
def test_what_stats_prove(predicate: Any, stats: dict[str, Any], must: bool) -> None:
    known = {r.IDS[predicate.term.name]: FieldStats(**_WHOLE | stats)}
    table = to_table([Entry(location="f", record_count=3, stats=known)], r.SHAPE)
    assert must_match(table, bind(predicate, r.SHAPE)).to_pylist() == [must]


def test_an_entry_that_carries_only_a_bucket_is_pruned_by_its_column() -> None:
    bucket = BucketTransform(4).transform(IntegerType())(12)
    id = next(id for id, e in r.EXPRESSIONS.items() if e.transform == "bucket[4]")
    stats = {id: FieldStats(lower=bucket, upper=bucket, values=3, nulls=0)}
    table = to_table([Entry(location="f", record_count=3, stats=stats)], r.SHAPE)
    outsider = next(
        n for n in range(99) if BucketTransform(4).transform(IntegerType())(n) != bucket
    )
    assert may_match(table, bind(ice.EqualTo("i", 12), r.SHAPE)).to_pylist() == [True]
    assert may_match(table, bind(ice.EqualTo("i", outsider), r.SHAPE)).to_pylist() == [False]


def test_a_predicate_on_a_transform_uses_the_stats_of_an_equal_expression() -> None:
    id = next(id for id, e in r.EXPRESSIONS.items() if e.transform == "bucket[4]")
    stats = [{id: FieldStats(lower=n, upper=n, values=1, nulls=0)} for n in range(4)]
    table = to_table((Entry(location="f", record_count=1, stats=s) for s in stats), r.SHAPE)
    third = bind(ice.EqualTo(Transformed("bucket[4]", "i"), 2), r.SHAPE)
    assert may_match(table, third).to_pylist() == [False, False, True, False]
    assert must_match(table, third).to_pylist() == [False, False, True, False]
    unknown = bind(ice.EqualTo(Transformed("bucket[5]", "i"), 2), r.SHAPE)
    assert may_match(table, unknown).to_pylist() == [True] * 4
    assert must_match(table, unknown).to_pylist() == [False] * 4


def test_a_bound_predicate_on_a_transform_is_taken_as_it_is() -> None:
    term = Transformed("bucket[4]", "i").bind(r.SHAPE.schema)
    id = next(id for id, e in r.EXPRESSIONS.items() if e.transform == "bucket[4]")
    stats = {id: FieldStats(lower=1, upper=1)}
    table = to_table([Entry(location="f", record_count=1, stats=stats)], r.SHAPE)
    bound = ice.BoundEqualTo(term, ice.literal(2))
    assert may_match(table, bind(bound, r.SHAPE)).to_pylist() == [False]


def test_a_nan_bound_tells_nothing() -> None:
    nan = FieldStats(lower=math.nan, upper=math.nan, values=3, nulls=0, nans=0)
    for predicate in (ice.LessThan("d", 1.0), ice.In("d", [1.0, 2.0]), ice.NotIn("d", [1.0, 2.0])):
        assert not _pruned(predicate, d=nan)


def test_text_is_ordered_by_its_utf8_bytes() -> None:
    # In UTF-16 order the emoji would come before U+FFFF.
    assert _pruned(ice.LessThan("s", "\U0001f600"), s=FieldStats(lower="\U0001f600"))
    assert not _pruned(ice.LessThan("s", "\U0001f600"), s=FieldStats(lower="\uffff"))


def test_uuids_are_ordered_as_unsigned_bytes() -> None:
    high = FieldStats(lower=b"\x80" + b"\x00" * 15, upper=b"\xff" * 16)
    literal = r.literal("u", b"\x7f" * 16)
    assert _pruned(ice.LessThanOrEqual("u", literal), u=high)
    assert not _pruned(ice.GreaterThan("u", literal), u=high)


def test_many_literals_prune_by_their_range() -> None:
    far = ice.In("i", list(range(1000, 2000)))
    assert _pruned(far, i=FieldStats(lower=1, upper=999))
    assert not _pruned(far, i=FieldStats(lower=1, upper=1000))


def test_a_gap_between_literals_prunes() -> None:
    assert _pruned(ice.In("i", [1, 10, 20]), i=FieldStats(lower=11, upper=19))
    assert not _pruned(ice.In("i", [1, 10, 20]), i=FieldStats(lower=10, upper=19))


def test_a_file_of_one_value_is_pruned_by_its_negation() -> None:
    five = FieldStats(lower=5, upper=5, values=3, nulls=0)
    assert _pruned(ice.NotEqualTo("i", 5), i=five)
    assert not _pruned(ice.NotEqualTo("i", 5), i=FieldStats(lower=5, upper=5, values=3, nulls=1))


def test_a_literal_beyond_the_type_is_unequal_to_nulls_too() -> None:
    all_null = FieldStats(values=3, nulls=3)
    some = FieldStats(lower=1, upper=2**31 - 1, values=3, nulls=0)
    assert not _pruned(ice.NotEqualTo("i", 2**40), i=all_null)
    assert not _pruned(ice.NotEqualTo("i", -(2**40)), i=all_null)
    assert _pruned(ice.EqualTo("i", 2**40), i=some)
    assert _pruned(ice.In("i", [2**40, 2**41]), i=some)
    assert _pruned(ice.LessThan("i", -(2**40)), i=some)
    assert not _pruned(ice.LessThan("i", 2**40), i=some)


@pytest.mark.parametrize(
    ("expression", "predicate", "value", "may", "must"),
    [
        ("truncate[2]", ice.StartsWith("s", "ab"), "ab", True, True),
        ("truncate[2]", ice.StartsWith("s", "abc"), "ab", True, False),
        ("truncate[2]", ice.EqualTo("s", "abc"), "ac", False, False),
        ("truncate[2]", ice.NotStartsWith("s", "ab"), "ab", False, False),
        ("day", ice.LessThan("ts", r.literal("ts", r.DAY)), 0, True, True),
        ("day", ice.LessThan("ts", r.literal("ts", r.DAY + 1)), 1, True, False),
        ("day", ice.LessThan("ts", r.literal("ts", r.DAY)), 1, False, False),
        ("month", ice.GreaterThan("dt", r.literal("dt", 40)), 0, False, False),
        ("month", ice.GreaterThan("dt", r.literal("dt", 40)), 2, True, True),
        ("bucket[4]", ice.IsNull("i"), 1, False, False),
        ("bucket[4]", ice.NotNull("i"), 1, True, True),
    ],
    ids=str,
)
def test_a_partition_alone_answers_for_its_column(
    expression: str, predicate: Any, value: Any, may: bool, must: bool
) -> None:
    source = r.IDS[predicate.term.name]
    [id] = (
        id
        for id, each in r.EXPRESSIONS.items()
        if each.transform == expression and each.source_ids == (source,)
    )
    stats = {id: FieldStats(lower=value, upper=value, values=3, nulls=0)}
    table = to_table([Entry(location="f", record_count=3, stats=stats)], r.SHAPE)
    bound = bind(predicate, r.SHAPE)
    assert may_match(table, bound).to_pylist() == [may]
    assert must_match(table, bound).to_pylist() == [must]


def test_empty_files_match_no_predicate_but_stay_without_one() -> None:
    table = to_table([Entry(location="f", record_count=0)], r.SHAPE)
    assert may_match(table, bind(ice.IsNull("i"), r.SHAPE)).to_pylist() == [False]
    assert may_match(table, bind(ice.AlwaysTrue(), r.SHAPE)).to_pylist() == [True]


def test_stats_of_row_groups_need_no_other_column() -> None:
    groups = pa.table(
        {"1:lower": pa.array([1, 10], pa.int32()), "1:upper": pa.array([9, 19], pa.int32())}
    )
    assert may_match(groups, bind(ice.GreaterThan("i", 9), r.SHAPE)).to_pylist() == [False, True]


def test_a_column_that_was_widened_is_compared_in_its_new_type() -> None:
    old = pa.table({"2:lower": pa.array([1], pa.int32()), "2:upper": pa.array([9], pa.int32())})
    assert may_match(old, bind(ice.GreaterThan("l", 2**40), r.SHAPE)).to_pylist() == [False]
    assert may_match(old, bind(ice.EqualTo("l", 9), r.SHAPE)).to_pylist() == [True]


def test_a_rounded_literal_is_safe_for_both_ways_to_round() -> None:
    float_tenth = FieldStats(lower=r.F32, upper=r.F32, values=3, nulls=0, nans=0)
    # As doubles, the float nearest 0.1 is greater than 0.1; as floats, they are equal.
    assert not _pruned(ice.GreaterThan("f", 0.1), f=float_tenth)
    assert not _pruned(ice.EqualTo("f", 0.1), f=float_tenth)
    assert not _pruned(ice.NotEqualTo("f", 0.1), f=float_tenth)
    assert not _pruned(ice.In("f", [0.1, 2.0]), f=float_tenth)
    assert not _pruned(ice.NotIn("f", [0.1, 2.0]), f=float_tenth)
    assert _pruned(ice.LessThan("f", 0.05), f=float_tenth)


def test_geometry_has_no_order_but_may_be_null() -> None:
    shape = Shape(schema=Schema(NestedField(1, "g", GeometryType())))
    stats = {1: FieldStats(lower={"x": 0.0}, upper={"x": 1.0}, values=2, nulls=0)}
    table = to_table([Entry(location="f", record_count=2, stats=stats)], shape)
    assert may_match(table, bind(ice.IsNull("g"), shape)).to_pylist() == [False]
    with pytest.raises(InvalidInput, match="'g' is geometry"):
        bind(ice.EqualTo("g", b"x"), shape)


def test_fields_of_structs_are_columns_too() -> None:
    inner = StructType(NestedField(2, "a", IntegerType()))
    shape = Shape(schema=Schema(NestedField(1, "p", inner)))
    stats = {2: FieldStats(lower=5, upper=6)}
    table = to_table([Entry(location="f", record_count=2, stats=stats)], shape)
    assert may_match(table, bind(ice.EqualTo("p.a", 7), shape)).to_pylist() == [False]


def test_an_unknown_column_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidInput, match=r"no column 'nope'.*: i, l, f"):
        bind(ice.EqualTo("nope", 1), r.SHAPE)
    with pytest.raises(InvalidInput, match="no column 'I'"):
        bind(ice.EqualTo("I", 1), r.SHAPE)
    bind(ice.EqualTo("I", 1), r.SHAPE, case_sensitive=False)


@pytest.mark.parametrize(
    "predicate",
    [
        ice.EqualTo("i", "five"),
        ice.In("dt", [1.5, 2.5]),
        ice.EqualTo("u", "not a uuid"),
        ice.LessThan("ns", 1.5),
        ice.StartsWith("i", 5),
        ice.EqualTo(Transformed("bucket[4]", "i"), "x"),
        ice.EqualTo(Transformed("day", "i"), 1),
    ],
    ids=str,
)
def test_a_literal_of_the_wrong_type_is_refused(predicate: ice.BooleanExpression) -> None:
    with pytest.raises(InvalidInput, match=" is "):
        bind(predicate, r.SHAPE)


def test_what_is_no_predicate_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not a predicate"):
        bind("i = 1", r.SHAPE)  # type: ignore[arg-type]


def test_residuals_come_in_their_distinct_combinations_only() -> None:
    stats = [
        {r.IDS["i"]: FieldStats(lower=n, upper=n + 1, values=2, nulls=0)} for n in (0, 5, 5, 9)
    ]
    table = to_table((Entry(location="f", record_count=2, stats=s) for s in stats), r.SHAPE)
    low, high = ice.GreaterThanOrEqual("i", 5), ice.LessThan("i", 10)
    codes, left = residuals(table, bind(ice.And(low, high), r.SHAPE))
    assert [left[code] for code in codes.to_pylist()] == [
        low,
        ice.AlwaysTrue(),
        ice.AlwaysTrue(),
        high,
    ]
    assert len(left) == 3


def test_more_conjuncts_than_bits_stay_in_the_residual() -> None:
    parts = [ice.GreaterThan("i", -n) for n in range(1, 71)]
    stats = {r.IDS["i"]: FieldStats(lower=0, upper=0, values=1, nulls=0)}
    table = to_table([Entry(location="f", record_count=1, stats=stats)], r.SHAPE)
    codes, [left] = residuals(table, bind(ice.And(*parts), r.SHAPE))
    assert codes.to_pylist() == [0]
    assert {str(part) for part in _conjuncts(left)} == {str(part) for part in parts[62:]}


def _conjuncts(expression: ice.BooleanExpression) -> list[ice.BooleanExpression]:
    if isinstance(expression, ice.And):
        return [*_conjuncts(expression.left), *_conjuncts(expression.right)]
    return [expression]


def test_judging_many_entries_builds_no_object_for_each() -> None:
    size = 200_000
    table = pa.table(
        {
            "1:lower": pa.array(range(size), pa.int32()),
            "1:upper": pa.array(range(size), pa.int32()),
            "record_count": pa.repeat(1, size),
        }
    )
    bound = bind(ice.EqualTo("i", 77), r.SHAPE)
    began = time.process_time()
    assert may_match(table, bound).true_count == 1
    assert time.process_time() - began < 0.1
