"""Filters as JSON of Iceberg's REST protocol, for clients that test rows by them."""

from __future__ import annotations

from math import isfinite
from typing import Any, Final

import msgspec
from pyiceberg import expressions as ice
from pyiceberg.expressions.literals import (
    DecimalLiteral,
    DoubleLiteral,
    FloatLiteral,
    Literal,
    LongLiteral,
)
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType

from icetree.codec.json_values import json_values
from icetree.errors import InvalidInput
from icetree.filters.from_json import COMPARISONS, SETS, UNARY
from icetree.tree.prune import literals
from icetree.tree.prune.literals import Fit
from icetree.tree.prune.predicates import Extracted, Transformed

#: What every row satisfies, said so that no client takes it for leave to count rows unread.
EVERY_ROW: Final = {"type": "not", "child": False}

_WORDS: Final = {kind: word for word, kind in {**COMPARISONS, **SETS, **UNARY}.items()}


def filter_to_json(
    expression: ice.BooleanExpression, schema: Schema, *, case_sensitive: bool = True
) -> Any:
    """Return a filter, its `not`s moved to the predicates, as a JSON document.

    A predicate that JSON cannot say is `EVERY_ROW`, as is `Unsure`: who tests rows knows better.
    """
    match expression:
        case ice.AlwaysTrue():
            return True
        case ice.AlwaysFalse():
            return False
        case ice.And() | ice.Or():
            both = (
                filter_to_json(side, schema, case_sensitive=case_sensitive)
                for side in (expression.left, expression.right)
            )
            word = "and" if isinstance(expression, ice.And) else "or"
            return {"type": word, **dict(zip(("left", "right"), both, strict=True))}
    word = _WORDS.get(type(expression), "")
    if not word or not isinstance(expression, ice.UnboundPredicate):
        return EVERY_ROW
    if isinstance(expression.term, Extracted):
        return EVERY_ROW
    type_ = _type_of(expression.term, schema, case_sensitive)
    found: dict[str, Any] = {"type": word, "term": _term(expression.term)}
    try:
        match expression:
            case ice.LiteralPredicate():
                found["value"] = _value(expression.literal, type_)
            case ice.SetPredicate():
                found["values"] = [_value(each, type_) for each in expression.literals]
    except _Unsayable:
        return EVERY_ROW
    return found


def names_in(expression: ice.BooleanExpression) -> frozenset[str]:
    """Return the columns that a filter without `not` looks at, as it names them."""
    match expression:
        case ice.And() | ice.Or():
            return names_in(expression.left) | names_in(expression.right)
        case ice.UnboundPredicate() if type(expression) in _WORDS:
            term: Any = expression.term
            return frozenset({term.name})
    return frozenset()


class _Unsayable(Exception):
    """JSON has no text for a value."""


def _type_of(term: Any, schema: Schema, case_sensitive: bool) -> IcebergType:
    type_ = schema.find_field(term.name, case_sensitive=case_sensitive).field_type
    return term.transform.result_type(type_) if isinstance(term, Transformed) else type_


def _term(term: Any) -> Any:
    if isinstance(term, Transformed):
        return {"type": "transform", "transform": str(term.transform), "term": term.name}
    return term.name


def _value(literal: Literal[Any], type_: IcebergType) -> Any:
    try:
        value, fit = literals.fit(literal, type_, "value")
        array = literals.array([value], type_) if fit is Fit.EXACT else None
    except InvalidInput:
        raise _Unsayable from None
    if array is not None and len(array):
        text = json_values(array, type_)[0].as_py()
        if text == "null":
            raise _Unsayable
        return msgspec.json.decode(text)
    return _number(literal)


def _number(literal: Literal[Any]) -> Any:
    """Return a number that is none of the column's values, as it was given."""
    match literal:
        case DecimalLiteral():
            return f"{literal.value:f}"
        case LongLiteral() if -(2**63) <= literal.value < 2**63:
            return literal.value
        case DoubleLiteral() | FloatLiteral() if isfinite(literal.value):
            return literal.value
    raise _Unsayable
