"""Statements that change rows, by kind; DELETE and UPDATE: their clauses, handed to the lake's own verbs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import TYPE_CHECKING, Any, Final

from icetree.errors import InvalidInput
from icetree.spark.sql.apart import told_apart
from icetree.spark.sql.assign import Assignments, assignment
from icetree.spark.sql.called import has_subquery, shortened, unqualified
from icetree.spark.sql.columns import own_path
from icetree.spark.sql.insert import insert, replace_where
from icetree.spark.sql.merge import merge
from icetree.spark.sql.names import target_of
from icetree.spark.sql.select import with_tables
from icetree.spark.tokens import Cursor, knowing
from icetree.spark.trees import kind, option, parse, seq
from icetree.table.commit.counts import RowCounts
from icetree.table.table import Table

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

#: Statements whose table can have an alias.
_ALIASED: Final = frozenset({"DeleteFromTable", "UpdateTable", "MergeIntoTable"})


def run_dml(lake: SparkLake, plan: Any, text: str) -> RowCounts | None:
    """Carry out a statement, and return how many rows it changed.

    None where it is none of these, or changes no table of the lake.
    """
    statement = plan
    if kind(plan) == "UnresolvedWith":
        [statement] = seq(plan.children())
    run = STATEMENTS.get(kind(statement))
    if run is None:
        return None
    if kind(statement) in _ALIASED:
        apart = told_apart(text, plan, lake.namespace)
        if apart != text:
            return run_dml(lake, parse(lake.spark, apart), apart)
    return run(lake, statement, text)


def _delete(lake: SparkLake, plan: Any, text: str) -> RowCounts | None:
    found, parts, alias = target_of(lake, plan.table())
    if found is None:
        return None
    cursor = Cursor(text)
    ctes = cursor.until("DELETE")
    cursor.until("WHERE", ";")
    condition = knowing(ctes, cursor.until(";")) if cursor.accept("WHERE") else None
    _require_found(condition, None if plan.condition().toString() == "true" else plan.condition())
    with ExitStack() as views:
        if condition is not None:
            own = shortened(lake, condition, parts, alias, found.name)
            alias = alias or parts[-1]
            bound = _with_subqueries(lake, own, lake.table(found.name), alias)
            condition = views.enter_context(bound)
        done = lake.delete(found.name, condition, alias=alias or parts[-1], **found.how)
    return done.rows


def _update(lake: SparkLake, plan: Any, text: str) -> RowCounts | None:
    found, parts, alias = target_of(lake, plan.table())
    if found is None:
        return None
    cursor = Cursor(text)
    ctes = cursor.until("UPDATE")
    cursor.until("SET")
    cursor.expect("SET")
    pairs_given = [assignment(each) for each in cursor.listed("WHERE", ";")]
    condition = cursor.until(";") if cursor.accept("WHERE") else None
    _require_found(condition, option(plan.condition()))
    table = lake.table(found.name)
    to = Assignments(table.schema)
    with ExitStack() as views:

        def bound(text: str) -> str:
            own = shortened(lake, knowing(ctes, text), parts, alias, found.name)
            return views.enter_context(_with_subqueries(lake, own, table, alias or parts[-1]))

        for path, value in pairs_given:
            own = own_path(table.schema, unqualified(path, parts, alias, table))
            to.add(own, bound(value))
        where = None if condition is None else bound(condition)
        done = lake.update(found.name, to.values, where, alias=alias or parts[-1], **found.how)
    return done.rows


def _require_found(condition: str | None, parsed: Any) -> None:
    """Refuse a statement whose condition Spark sees and we do not: all rows would be meant."""
    if condition is None and parsed is not None:
        raise InvalidInput(
            "it cannot be told where the condition of the statement begins: put names that are "
            "keywords, such as `case`, in backticks"
        )


def _with_subqueries(
    lake: SparkLake, text: str, table: Table, alias: str
) -> AbstractContextManager[str]:
    """Return an expression of a table's rows whose subqueries, where it has any, are of the lake's."""
    if has_subquery(text):
        return with_tables(lake, text, of=table.schema, alias=alias)
    return nullcontext(text)


def _merge(lake: SparkLake, plan: Any, text: str) -> RowCounts | None:
    found, parts, alias = target_of(lake, plan.targetTable())
    if found is None:
        return None
    return merge(lake, found, parts, alias, plan, text).rows


STATEMENTS: Final[Mapping[str, Callable[[Any, Any, str], RowCounts | None]]] = {
    "InsertIntoStatement": insert,
    "OverwriteByExpression": replace_where,
    "DeleteFromTable": _delete,
    "UpdateTable": _update,
    "MergeIntoTable": _merge,
}
