"""Filters as people read them: `n >= 5 and country in ('DE', 'US')`."""

from __future__ import annotations

from typing import Any

from pyiceberg import expressions as ice
from pyiceberg.expressions.literals import Literal

from icetree.spec import geo
from icetree.tree.prune.predicates import Extracted, Intersects, Transformed

_COMPARISONS: dict[type[Any], str] = {
    ice.LessThan: "<",
    ice.LessThanOrEqual: "<=",
    ice.GreaterThan: ">",
    ice.GreaterThanOrEqual: ">=",
    ice.EqualTo: "=",
    ice.NotEqualTo: "!=",
    ice.StartsWith: "starts with",
    ice.NotStartsWith: "not starts with",
}
_SETS: dict[type[Any], str] = {ice.In: "in", ice.NotIn: "not in"}
_UNARY: dict[type[Any], str] = {
    ice.IsNull: "is null",
    ice.NotNull: "is not null",
    ice.IsNaN: "is nan",
    ice.NotNaN: "is not nan",
}
#: Literals of a set that are shown; the rest are counted.
_SHOWN = 8


def predicate_text(expression: ice.BooleanExpression) -> str:
    """Return a filter as text; what is not known here is shown as PyIceberg does."""
    match expression:
        case ice.AlwaysTrue():
            return "true"
        case ice.AlwaysFalse():
            return "false"
        case ice.And():
            return f"{_inner(expression.left)} and {_inner(expression.right)}"
        case ice.Or():
            return f"{_inner(expression.left)} or {_inner(expression.right)}"
        case ice.Not():
            return f"not ({predicate_text(expression.child)})"
        case Intersects():
            found = f"st_intersects({expression.name}, {geo.text(expression.box)})"
            return f"not {found}" if expression.negated else found
    kind = type(expression)
    if isinstance(expression, ice.LiteralPredicate) and kind in _COMPARISONS:
        return f"{_term(expression.term)} {_COMPARISONS[kind]} {_literal(expression.literal)}"
    if isinstance(expression, ice.SetPredicate) and kind in _SETS:
        return f"{_term(expression.term)} {_SETS[kind]} ({_listed(expression.literals)})"
    if isinstance(expression, ice.UnaryPredicate) and kind in _UNARY:
        return f"{_term(expression.term)} {_UNARY[kind]}"
    return str(expression)


def _inner(expression: ice.BooleanExpression) -> str:
    text = predicate_text(expression)
    return f"({text})" if isinstance(expression, ice.Or) else text


def _term(term: Any) -> str:
    if isinstance(term, Transformed):
        word, _, argument = str(term.transform).partition("[")
        inside = f"{argument.rstrip(']')}, {term.name}" if argument else term.name
        return f"{word}({inside})"
    if isinstance(term, Extracted):
        return repr(term)
    return str(getattr(term, "name", term))


def _literal(literal: Literal[Any]) -> str:
    value = literal.value
    if isinstance(value, str):
        quoted = value.replace("'", "''")
        return f"'{quoted}'"
    return str(literal) if not isinstance(value, bool) else str(value).lower()


def _listed(literals: Any) -> str:
    texts = sorted(map(_literal, literals))
    more = [f"… {len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
    return ", ".join([*texts[:_SHOWN], *more])
