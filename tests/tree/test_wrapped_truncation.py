"""Truncating a number next to the least of its type wraps around, in the format itself."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import expressions as ice
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField

from icetree.spec.entry.entry import Entries, Entry, to_table
from icetree.spec.entry.stats import FieldStats
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape
from icetree.tree.prune.bind import bind
from icetree.tree.prune.prune import may_match, must_match
from tests.tree.rows import COMPARISONS

OPERATORS = {
    **COMPARISONS,
    ice.In: lambda value, listed: value in listed,
    ice.NotIn: lambda value, listed: value not in listed,
}
WIDTHS = (1, 2, 3, 7, 10, 16, 2**31 - 1)


def shape_of(type: IntegerType | LongType, width: int) -> Shape:
    expression = Expression(
        expr_id=101, source_ids=(1,), transform=f"truncate[{width}]", name="wide"
    )
    return Shape(schema=Schema(NestedField(1, "n", type)), expressions={101: expression})


def truncated(value: int, width: int, bits: int) -> int:
    """Return the truncation as Java's arithmetic gives it."""
    floor = value - value % width
    return (floor + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def files_of(values: list[int], width: int, bits: int, shape: Shape) -> Entries:
    """Return a file for each value, of which the partition alone is known."""
    wide = [truncated(value, width, bits) for value in values]
    stats = [{101: FieldStats(lower=n, upper=n, values=1, nulls=0)} for n in wide]
    return to_table([Entry(location="f", record_count=1, stats=each) for each in stats], shape)


def around(bits: int) -> list[int]:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return [*range(least, least + 12), -1, 0, 5, *range(most - 11, most + 1)]


def predicates(literals: list[int]) -> list[tuple[Any, Any]]:
    several = [literals[:3], literals[1:14], literals[-2:]]
    sets = (ice.In, ice.NotIn)
    return [
        (kind, literal) for kind in OPERATORS for literal in (several if kind in sets else literals)
    ]


@pytest.mark.parametrize(
    ("type", "bits"), [(IntegerType(), 32), (LongType(), 64), (LongType(), 32)], ids=str
)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_wrapped_partition_is_neither_pruned_nor_proven(type: Any, bits: int, width: int) -> None:
    # A long that was an int has files whose values wrapped as ints do.
    values, shape = around(bits), shape_of(type, width)
    files = files_of(values, width, bits, shape)
    for kind, literal in predicates(values):
        bound = bind(kind("n", literal), shape)
        holds = [OPERATORS[kind](value, literal) for value in values]
        may, must = may_match(files, bound).to_pylist(), must_match(files, bound).to_pylist()
        assert all(kept or not each for kept, each in zip(may, holds, strict=True)), bound
        assert all(each or not proven for proven, each in zip(must, holds, strict=True)), bound


def test_partitions_that_did_not_wrap_are_pruned_as_before() -> None:
    shape = shape_of(IntegerType(), 10)
    files = files_of([-(2**31), -(2**31) + 8, -5, 5, 25, 2**31 - 1], 10, 32, shape)
    below = bind(ice.LessThan("n", 10), shape)
    assert may_match(files, below) == pa.array([True, True, True, True, False, False])
    assert must_match(files, below) == pa.array([False, True, True, True, False, False])


def test_a_leaf_that_holds_a_wrapped_partition_is_read() -> None:
    shape = shape_of(IntegerType(), 10)
    wrapped = truncated(-(2**31), 10, 32)
    stats = {101: FieldStats(lower=20, upper=wrapped, values=2, nulls=0)}
    leaf = to_table([Entry(location="f", record_count=2, stats=stats)], shape)
    assert may_match(leaf, bind(ice.LessThan("n", 0), shape)).to_pylist() == [True]
    assert must_match(leaf, bind(ice.GreaterThan("n", 0), shape)).to_pylist() == [False]
