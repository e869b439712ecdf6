"""Which rows a statement is about: what files are chosen by, and what rows are tested with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyiceberg import expressions as ice
from pyiceberg.expressions import AlwaysTrue, BooleanExpression

from icetree.errors import InvalidInput
from icetree.filters.expression import Call, Column, Constant, Expression, conjuncts
from icetree.filters.expression_parser import parse_expression
from icetree.filters.filter import parse_filter
from icetree.rows.matching.terms import Scope, Side, Term
from icetree.rows.schema import arrow_schema
from icetree.spec.schema.shape import Shape
from icetree.tree.prune.bind import bind

_SIGNS: dict[str, Any] = {
    "=": ice.EqualTo,
    "<": ice.LessThan,
    "<=": ice.LessThanOrEqual,
    ">": ice.GreaterThan,
    ">=": ice.GreaterThanOrEqual,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition on rows of a table."""

    #: Lets every row through that the condition is true of, and tells others which those may be.
    filter: BooleanExpression
    #: Tests the rows that the filter lets through; None where that one says it all.
    test: Term | None = None


def table_side(shape: Shape, name: str = "target") -> Side:
    """Return a table's columns, for expressions over them."""
    return Side(name=name, schema=arrow_schema(shape.schema))


def condition_of(where: BooleanExpression | str | None, shape: Shape) -> Condition:
    """Return what a caller's condition means; none holds for every row.

    A text that is no filter may still be an expression over columns, such as `n % 2 = 0`.
    """
    if where is None:
        return Condition(filter=AlwaysTrue())
    try:
        return Condition(filter=parse_filter(where))
    except InvalidInput:
        if not isinstance(where, str):
            raise
        try:
            found = parse_expression(where)
        except InvalidInput:
            found = None
        if found is None:
            raise
    return _of_expression(found, shape)


def _of_expression(found: Expression, shape: Shape) -> Condition:
    test = Scope(sides=(table_side(shape),)).bind(found)
    # A mistake in types shows without a row.
    test.holds({name: pa.array([], _type(name[1], shape)) for name in test.needs}, 0)
    parts = [part for each in conjuncts(found) if (part := _as_filter(each, shape)) is not None]
    return Condition(filter=all_of(parts), test=test)


def all_of(parts: Iterable[BooleanExpression]) -> BooleanExpression:
    """Return the filter that lets through what all of these do."""
    every: BooleanExpression = AlwaysTrue()
    for part in parts:
        every = ice.And(every, part)
    return every


def _type(column: str, shape: Shape) -> pa.DataType:
    return arrow_schema(shape.schema).field(column).type


def _as_filter(expression: Expression, shape: Shape) -> BooleanExpression | None:
    """Return a comparison of a column with a value as a filter, where it is one."""
    match expression:
        case Call(function=sign, arguments=(Column() as column, Constant(value=value))) if (
            sign in _SIGNS and isinstance(value, int | str) and not isinstance(value, bool)
        ):
            found: BooleanExpression = _SIGNS[sign](str(column), value)
            try:
                bind(found, shape)
            except InvalidInput:
                return None
            return found
    return None
