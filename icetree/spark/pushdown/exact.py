"""Conditions of Spark's that a filter of ours says exactly: it keeps just the rows where they are true."""

from __future__ import annotations

from typing import Any, Final

from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, Or
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from icetree.spark.pushdown.expression import filter_of
from icetree.spark.trees import kind, seq

#: Types that Spark and we compare alike. Of floats, -0.0 and NaN are not.
COMPARED_ALIKE: Final = (
    BooleanType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)
_COMPARISONS: Final = (
    "EqualTo",
    "GreaterThan",
    "GreaterThanOrEqual",
    "LessThan",
    "LessThanOrEqual",
)


def exact_filter(plan: Any, schema: Schema) -> BooleanExpression | None:
    """Return which rows of its one table an optimised query without grouping aggregates.

    None where that cannot be said.
    """
    if kind(plan) != "Aggregate" or len(seq(plan.groupingExpressions())):
        return None
    found: BooleanExpression = AlwaysTrue()
    [node] = seq(plan.children())
    while kind(node) != "LogicalRelation":
        if kind(node) == "Filter":
            said = _exactly(node.condition(), schema)
            if said is None:
                return None
            found = And(found, said)
        elif kind(node) != "Project" or not all(map(_is_column, seq(node.projectList()))):
            return None
        [node] = seq(node.children())
    return found


def _exactly(condition: Any, schema: Schema) -> BooleanExpression | None:
    if kind(condition) in ("And", "Or"):
        left, right = (_exactly(each, schema) for each in seq(condition.children()))
        if left is None or right is None:
            return None
        return And(left, right) if kind(condition) == "And" else Or(left, right)
    return filter_of(condition, schema) if _is_exact(condition, schema) else None


def _is_exact(test: Any, schema: Schema) -> bool:
    """Tell whether a test is of one column, against constants of its type if any."""
    what = kind(test)
    if what in ("IsNotNull", "IsNull"):
        [value] = seq(test.children())
        return _is_plain(value, schema)
    if what not in (*_COMPARISONS, "In"):
        # A flag by itself.
        return _is_plain(test, schema) and test.dataType().simpleString() == "boolean"
    value, *others = seq(test.children())
    if what in _COMPARISONS and kind(value) == "Literal":
        [value], others = others, [value]
    type = value.dataType().simpleString()
    return _is_plain(value, schema) and all(
        kind(each) == "Literal"
        and each.value() is not None
        and each.dataType().simpleString() == type
        for each in others
    )


def _is_plain(value: Any, schema: Schema) -> bool:
    if not _is_column(value):
        return False
    # Under the name that the query has for it.
    name = value.name().lower()
    types: list[IcebergType] = [
        field.field_type for field in schema.fields if field.name.lower() == name
    ]
    return len(types) == 1 and isinstance(types[0], COMPARED_ALIKE)


def _is_column(value: Any) -> bool:
    return kind(value) == "AttributeReference"
