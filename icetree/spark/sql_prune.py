"""What an optimised plan asks of each relation in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    GreaterThan,
    GreaterThanOrEqual,
)
from pyiceberg.schema import Schema

from icetree.spark.pushdown import filter_of
from icetree.spark.sql_plan import kind, seq

_RELATION: Final = re.compile(r"\bRelation ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """A view, and the schema of the table it stands for."""

    view: str
    schema: Schema


def marker(plan: Any) -> str:
    """Return what tells the relation of a plan from all others: the folder it is said to be in."""
    [leaf] = seq(plan.collectLeaves())
    found = _place(leaf)
    assert found is not None
    return found


def pruned_by(plan: Any, markers: Mapping[str, Pruned]) -> dict[str, list[BooleanExpression]]:
    """Return, for each view, the filters that keep what each of its occurrences needs.

    Where a part of the plan cannot be seen, nothing is left out.
    """
    found: dict[str, list[BooleanExpression]] = {each.view: [] for each in markers.values()}
    seen = 0
    for relation, condition in _relations(plan, None):
        seen += 1
        pruned = markers.get(_place(relation) or "")
        if pruned is not None:
            told = AlwaysTrue() if condition is None else filter_of(condition, pruned.schema)
            found[pruned.view].append(told)
    if seen < len(_RELATION.findall(plan.toString())):
        return {view: [AlwaysTrue()] for view in found}
    return found


def _relations(node: Any, condition: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the relations below a node, each with the condition right above it."""
    what = kind(node)
    if what == "LogicalRelation":
        yield node, condition
        return
    above = node.condition() if what == "Filter" else None
    for child in seq(node.children()):
        yield from _relations(child, above)
    for plan in seq(node.subqueries()):
        yield from _relations(plan, None)


def _place(leaf: Any) -> str | None:
    if kind(leaf) != "LogicalRelation" or kind(leaf.relation()) != "HadoopFsRelation":
        return None
    place: str = leaf.relation().location().rootPaths().mkString(",")
    return place


def steady(now: BooleanExpression, later: BooleanExpression) -> BooleanExpression:
    """Return the parts of a filter that time does not change, or only makes narrower."""
    others = list(_parts(later))
    kept: BooleanExpression = AlwaysTrue()
    for part in _parts(now):
        if part in others or any(_rises(part, other) for other in others):
            kept = And(kept, part)
    return kept


def _parts(expression: BooleanExpression) -> Iterator[BooleanExpression]:
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        if isinstance(part, And):
            waiting += [part.right, part.left]
        else:
            yield part


def _rises(now: BooleanExpression, later: BooleanExpression) -> bool:
    """Tell whether this is a lower bound that goes up with time."""
    return (
        isinstance(now, GreaterThan | GreaterThanOrEqual)
        and isinstance(later, GreaterThan | GreaterThanOrEqual)
        and now.term == later.term
        and type(now.literal) is type(later.literal)
        and bool(now.literal.value <= later.literal.value)
    )
