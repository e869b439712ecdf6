"""What an optimised plan of Spark's asks of each relation in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression, Or
from pyiceberg.schema import Schema
from pyspark.sql import DataFrame

from icetree.spark.pushdown.expression import filter_of
from icetree.spark.trees import kind, seq

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


def pruned_by(plan: Any, markers: Mapping[str, Pruned]) -> dict[str, BooleanExpression]:
    """Return, for each view, a filter that keeps what all its occurrences in the plan need.

    Where a part of the plan cannot be seen, nothing is left out.
    """
    # A table that no part of the plan reads need not be read.
    found: dict[str, BooleanExpression] = {each.view: AlwaysFalse() for each in markers.values()}
    seen = 0
    for relation, condition in _relations(plan, None):
        seen += 1
        pruned = markers.get(_place(relation) or "")
        if pruned is not None:
            told = AlwaysTrue() if condition is None else filter_of(condition, pruned.schema)
            found[pruned.view] = Or(found[pruned.view], told)
    if seen < len(_RELATION.findall(plan.toString())):
        return {view: AlwaysTrue() for view in found}
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


def optimized(frame: DataFrame) -> Any:
    """Return Spark's logical plan of a DataFrame, optimised."""
    return frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001  # Spark has no other door
