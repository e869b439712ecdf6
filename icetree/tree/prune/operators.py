"""PyIceberg's predicates by what they test, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from pyiceberg import expressions as ice
from pyiceberg.expressions.literals import Literal

from icetree.tree.prune.predicates import Op

Literals: TypeAlias = Sequence[Literal[Any]]

BOUND: Final[dict[Op, type[ice.BoundPredicate]]] = {
    Op.LT: ice.BoundLessThan,
    Op.LE: ice.BoundLessThanOrEqual,
    Op.GT: ice.BoundGreaterThan,
    Op.GE: ice.BoundGreaterThanOrEqual,
    Op.EQ: ice.BoundEqualTo,
    Op.NE: ice.BoundNotEqualTo,
    Op.IN: ice.BoundIn,
    Op.NOT_IN: ice.BoundNotIn,
    Op.STARTS: ice.BoundStartsWith,
    Op.NOT_STARTS: ice.BoundNotStartsWith,
    Op.IS_NULL: ice.BoundIsNull,
    Op.NOT_NULL: ice.BoundNotNull,
    Op.IS_NAN: ice.BoundIsNaN,
    Op.NOT_NAN: ice.BoundNotNaN,
}
_UNBOUND: Final[dict[Op, type[ice.UnboundPredicate]]] = {
    Op.LT: ice.LessThan,
    Op.LE: ice.LessThanOrEqual,
    Op.GT: ice.GreaterThan,
    Op.GE: ice.GreaterThanOrEqual,
    Op.EQ: ice.EqualTo,
    Op.NE: ice.NotEqualTo,
    Op.IN: ice.In,
    Op.NOT_IN: ice.NotIn,
    Op.STARTS: ice.StartsWith,
    Op.NOT_STARTS: ice.NotStartsWith,
    Op.IS_NULL: ice.IsNull,
    Op.NOT_NULL: ice.NotNull,
    Op.IS_NAN: ice.IsNaN,
    Op.NOT_NAN: ice.NotNaN,
}
OPS: Final[dict[type[Any], Op]] = {
    kind: op for kinds in (BOUND, _UNBOUND) for op, kind in kinds.items()
}


def literals_of(predicate: ice.BooleanExpression) -> Literals:
    match predicate:
        case ice.SetPredicate() | ice.BoundSetPredicate():
            return tuple(predicate.literals)
        case ice.LiteralPredicate() | ice.BoundLiteralPredicate():
            return (predicate.literal,)
    return ()
