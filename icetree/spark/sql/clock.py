"""Filters that the time of day has a part in."""

from __future__ import annotations

from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    GreaterThan,
    GreaterThanOrEqual,
)

from icetree.tree.prune.predicates import operands


def steady(now: BooleanExpression, later: BooleanExpression) -> BooleanExpression:
    """Return the parts of a filter that time does not change, or only makes narrower."""
    others = list(operands(later, And))
    kept: BooleanExpression = AlwaysTrue()
    for part in operands(now, And):
        if part in others or any(_rises(part, other) for other in others):
            kept = And(kept, part)
    return kept


def _rises(now: BooleanExpression, later: BooleanExpression) -> bool:
    """Tell whether this is a lower bound that goes up with time."""
    return (
        isinstance(now, GreaterThan | GreaterThanOrEqual)
        and isinstance(later, GreaterThan | GreaterThanOrEqual)
        and now.term == later.term
        and type(now.literal) is type(later.literal)
        and bool(now.literal.value <= later.literal.value)
    )
