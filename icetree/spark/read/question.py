"""What is asked of a table as one filter: however it was said, the same question is the same filter."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, Final

from pyiceberg import expressions as ice
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression

#: Tests that neither a null nor a NaN passes. Spark adds to each that there is a value.
_NEED_A_VALUE: Final = (
    ice.EqualTo,
    ice.GreaterThan,
    ice.GreaterThanOrEqual,
    ice.In,
    ice.LessThan,
    ice.LessThanOrEqual,
    ice.StartsWith,
)


def question(own: BooleanExpression, more: Iterable[BooleanExpression] = ()) -> BooleanExpression:
    """Return the conjunction: each part once, in one order, without those that follow from others.

    Every part of `own` stays, so that what it ruled out, such as a delete, is ruled out here, too.
    """
    stay = {repr(part): part for part in _parts(own) if not isinstance(part, AlwaysTrue)}
    parts = stay | {repr(part): part for each in more for part in _parts(each)}
    told = {repr(part.term) for part in parts.values() if isinstance(part, _NEED_A_VALUE)}
    left = [
        part
        for said, part in sorted(parts.items())
        if said in stay or not _follows(part, parts.keys(), told=told)
    ]
    return reduce(And, left) if left else AlwaysTrue()


def _follows(part: Any, parts: Iterable[str], *, told: set[str]) -> bool:
    match part:
        case AlwaysTrue():
            return True
        case ice.NotNull() | ice.NotNaN():
            return repr(part.term) in told
        case ice.Or():
            # To Spark a NaN is above all numbers, so that it asks for one, too, where we need not.
            return any(repr(each) in parts for each in _parts(part, of=ice.Or))
    return False


def _parts(filter: BooleanExpression, *, of: Any = And) -> list[BooleanExpression]:
    found, waiting = [], [filter]
    while waiting:
        each: Any = waiting.pop()
        if isinstance(each, of):
            waiting += [each.right, each.left]
        else:
            found.append(each)
    return found
