"""What an optimised plan of Spark's asks of each relation in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Final

from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, And, BooleanExpression, Or
from pyiceberg.schema import Schema
from pyspark.sql import DataFrame

from icetree.spark.functions.boxes import box_named
from icetree.spark.pushdown.expression import BoxTest, filter_of
from icetree.spark.trees import kind, seq

_RELATION: Final = re.compile(r"\bRelation ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """A view, and the schema of the table it stands for."""

    view: str
    schema: Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class _Above:
    """What rows of a relation are asked for right above it."""

    conditions: tuple[Any, ...] = ()
    #: Results in Python that conditions speak of.
    tests: Mapping[int, BoxTest] = field(default_factory=dict)


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
    for relation, above in _relations(plan, _Above()):
        seen += 1
        pruned = markers.get(_place(relation) or "")
        if pruned is not None:
            told = [filter_of(e, pruned.schema, tests=above.tests) for e in above.conditions]
            all_told = reduce(And, told) if told else AlwaysTrue()
            found[pruned.view] = Or(found[pruned.view], all_told)
    if seen < len(_RELATION.findall(plan.toString())):
        return {view: AlwaysTrue() for view in found}
    return found


def _relations(node: Any, above: _Above) -> Iterator[tuple[Any, _Above]]:
    """Yield the relations below a node, each with the conditions right above it."""
    what = kind(node)
    if what == "LogicalRelation":
        yield node, above
        return
    below = _Above()
    if what == "Filter":
        below = replace(above, conditions=(*above.conditions, node.condition()))
    elif what == "ArrowEvalPython":
        below = replace(above, tests={**above.tests, **_tests(node)})
    elif what == "Project" and all(
        kind(each) == "AttributeReference" for each in seq(node.projectList())
    ):
        below = above
    for child in seq(node.children()):
        yield from _relations(child, below)
    for plan in seq(node.subqueries()):
        yield from _relations(plan, _Above())


def _tests(node: Any) -> dict[int, BoxTest]:
    """Return the tests of boxes among what is worked out in Python, by the ids of their results."""
    found = {}
    for function, result in zip(seq(node.udfs()), seq(node.resultAttrs()), strict=True):
        box = box_named(function.name())
        if box is not None:
            [of] = seq(function.children())
            found[result.exprId().id()] = BoxTest(of=of, box=box)
    return found


def _place(leaf: Any) -> str | None:
    if kind(leaf) != "LogicalRelation" or kind(leaf.relation()) != "HadoopFsRelation":
        return None
    place: str = leaf.relation().location().rootPaths().mkString(",")
    return place


def optimized(frame: DataFrame) -> Any:
    """Return Spark's logical plan of a DataFrame, optimised."""
    return frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001  # Spark has no other door
