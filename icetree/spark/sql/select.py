"""Queries: the tables of the lake that a query names become temporary views, for its sake.

Most tables are planned when the query runs, by what Spark asks them for. For the sake of others, views
are empty at first, and Spark plans the query: the conditions that it pushes down to each tell which
files the real views can leave out. Then the query runs on those.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.schema import Schema
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from icetree.errors import InvalidInput, NotFound
from icetree.spark.cache import Held
from icetree.spark.complaints import plainly, quietly
from icetree.spark.functions.calls import calls_boxes
from icetree.spark.names import quoted
from icetree.spark.pushdown.plan import Pruned, marker, optimized, pruned_by
from icetree.spark.read.metadata_tables import metadata_table
from icetree.spark.read.nothing import nothing
from icetree.spark.read.scan import dataframe, is_lazy
from icetree.spark.sql.bind import (
    Bound,
    BoundTable,
    BoundView,
    bind,
    called,
    place_of,
    rewrite,
    tables_of,
    texts_of,
    version_of,
)
from icetree.spark.sql.clock import steady
from icetree.spark.sql.revealed import revealed, trouble_of
from icetree.spark.sql.scope import Scope
from icetree.spark.sql.told import told_by_metadata
from icetree.spark.sql.views.temporary import TemporaryView
from icetree.spark.tokens import tokens
from icetree.spark.trees import analyzed, parse
from icetree.spark.types import is_known, spark_schema
from icetree.surroundings import random_bits

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

#: Words without which no condition reaches a table.
_CONDITIONS: Final = frozenset({"WHERE", "ON", "HAVING", "JOIN", "USING", "QUALIFY", "FILTER"})
#: Functions of the time, which goes on between one planning and the next.
_CLOCK: Final = re.compile(
    r"\b(now|current_\w+|curdate|localtimestamp|unix_timestamp|getdate|sysdate)\b", re.IGNORECASE
)


def select(lake: SparkLake, text: str, *, plan: Any = None) -> DataFrame:
    """Return what a query finds, from metadata alone where that tells it exactly."""
    rows, told = _both(lake, text, parse(lake.spark, text) if plan is None else plan)
    return rows if told is None else told


def told_alone(lake: SparkLake, text: str) -> DataFrame | None:
    """Return what a query finds where metadata alone tells it."""
    return _both(lake, text, parse(lake.spark, text))[1]


def _both(lake: SparkLake, text: str, plan: Any) -> tuple[DataFrame, DataFrame | None]:
    """Return what a query finds by reading rows, and by metadata where that tells it."""
    bound = bound_to(lake, text, plan)
    rows = _selected(lake, text, bound)
    # What the time of day decides is decided when the query runs.
    same = None if _CLOCK.search(text) else partial(_on_nothing, lake, text, bound)
    return rows, told_by_metadata(lake, plan, bound, rows, same)


def select_view(lake: SparkLake, view: TemporaryView) -> tuple[DataFrame, frozenset[str]]:
    """Return what a view finds now, under its own names, and the tables that it reads."""
    bound = bound_to(lake, view.text, parse(lake.spark, view.text), Scope())
    tables = frozenset(each.ref.name for each in tables_of(bound))
    return view.named(_selected(lake, view.text, bound)), tables


def select_within(lake: SparkLake, text: str, plan: Any, scope: Scope) -> DataFrame:
    """Return what a query finds whose names are looked for in a scope of its own."""
    return _selected(lake, text, bound_to(lake, text, plan, scope))


def _selected(lake: SparkLake, text: str, bound: Sequence[Bound]) -> DataFrame:
    if not bound:
        with plainly():
            return lake.spark.sql(text)
    rewritten = rewrite(text, bound)
    filters = _filters(lake, text, rewritten, bound)
    with _views(lake, bound, _reading(lake, filters)), plainly(called(bound)):
        return lake.spark.sql(rewritten)


def unpruned(
    lake: SparkLake, text: str, bound: Sequence[Bound], *, query: str | None = None
) -> DataFrame:
    """Run a statement that is no query on the tables it reads; `query` is what it reads by."""
    filters: dict[str, BooleanExpression] = {}
    if query is not None:
        inner = bound_to(lake, query, parse(lake.spark, query))
        found = _filters(lake, query, rewrite(query, inner), inner)
        # The same tables in the same order, under the names of other views.
        same = zip(tables_of(bound), tables_of(inner), strict=True)
        filters = {mine.view: found[its.view] for mine, its in same}
    views = _views(lake, bound, _reading(lake, filters))
    with views, plainly(called(bound) if bound else None):
        return lake.spark.sql(rewrite(text, bound))


@contextmanager
def with_tables(lake: SparkLake, expression: str, *, of: Schema, alias: str) -> Iterator[str]:
    """Give an expression in which views stand for the tables that its subqueries read.

    It is of rows of a schema, which it calls by an alias.
    """
    own = f"__icetree_{random_bits(128):032x}"
    before, after = "SELECT ", f"\nFROM {own} AS {quoted(alias)}"
    text = before + expression + after
    known = [field for field in of.fields if is_known(field)]
    nothing(lake.spark, spark_schema(known)).createOrReplaceTempView(own)
    try:
        bound = bound_to(lake, text, parse(lake.spark, text))
    finally:
        lake.spark.catalog.dropTempView(own)
    with _views(lake, bound, _reading(lake, {})):
        yield rewrite(text, bound)[len(before) : -len(after)]


# --- which tables ------------------------------------------------------------------------------


def bound_to(lake: SparkLake, text: str, plan: Any, scope: Scope | None = None) -> list[Bound]:
    """Return what `bind` does, each table with the metadata columns that the statement reads of it."""
    return _revealed(lake, text, bind(lake, text, plan, scope))


def _revealed(lake: SparkLake, text: str, bound: Sequence[Bound]) -> list[Bound]:
    inside = [
        replace(each, within=tuple(_revealed(lake, each.saved.text, each.within)))
        if isinstance(each, BoundView)
        else each
        for each in bound
    ]
    return revealed(text, inside, partial(_judged, lake, text))


def _judged(lake: SparkLake, text: str, bound: Sequence[Bound]) -> Any:
    """Return Spark's plan of a statement whose tables are empty, or what it has against it."""
    with _views(lake, bound, partial(_empty, lake)), quietly():
        try:
            return analyzed(lake.spark, rewrite(text, bound))
        except (PySparkException, Py4JJavaError) as error:
            return trouble_of(error, partial(place_of, text, bound))


# --- which files -------------------------------------------------------------------------------


def _filters(
    lake: SparkLake, text: str, rewritten: str, bound: Sequence[Bound]
) -> dict[str, BooleanExpression]:
    """Return, for each view of a table, a filter that keeps every row the query can use."""
    everything: dict[str, BooleanExpression] = {e.view: AlwaysTrue() for e in tables_of(bound)}
    texts = " ".join(texts_of(text, bound))
    # What is judged in Python Spark tells no table of.
    if not calls_boxes(texts) and all(_asks_itself(lake, each) for each in tables_of(bound)):
        return everything
    words = {token.text.upper() for token in tokens(texts) if token.kind == "word"}
    if not words & _CONDITIONS:
        return everything
    found = _pushed_down(lake, rewritten, bound)
    if _CLOCK.search(texts):
        # What the time of day decides may be decided otherwise by the time the query runs.
        later = _pushed_down(lake, rewritten, bound)
        found = {view: steady(each, later[view]) for view, each in found.items()}
    return everything | found


def _asks_itself(lake: SparkLake, bound: BoundTable) -> bool:
    """Tell whether nothing is planned for a table before the query runs."""
    if bound.scan is None or bound.kept is not None:
        return True
    return is_lazy(lake.spark, bound.scan(AlwaysTrue()))


def _pushed_down(
    lake: SparkLake, rewritten: str, bound: Sequence[Bound]
) -> dict[str, BooleanExpression]:
    markers: dict[str, Pruned] = {}
    plan = _planned_on_nothing(lake, rewritten, bound, markers)
    return pruned_by(plan, markers)


def _on_nothing(lake: SparkLake, text: str, bound: Sequence[Bound]) -> Any:
    return _planned_on_nothing(lake, rewrite(text, bound), bound, {})


def _planned_on_nothing(
    lake: SparkLake, rewritten: str, bound: Sequence[Bound], markers: dict[str, Pruned]
) -> Any:
    """Return Spark's plan of a query whose tables are empty, and note which is which."""

    def empty(each: BoundTable) -> DataFrame:
        found = _empty(lake, each)
        if each.scan is not None and each.kept is None:
            schema = each.scan(AlwaysTrue()).schema
            markers[marker(optimized(found))] = Pruned(view=each.view, schema=schema)
        return found

    with _views(lake, bound, empty), plainly(called(bound)):
        return optimized(lake.spark.sql(rewritten))


def _empty(lake: SparkLake, bound: BoundTable) -> DataFrame:
    """Return what Spark is shown of a table where only its columns matter."""
    if bound.scan is None or bound.kept is not None:
        return _frame(lake, bound, AlwaysTrue())
    return nothing(lake.spark, spark_schema(bound.scan(AlwaysTrue()).columns.fields))


# --- views -------------------------------------------------------------------------------------


@contextmanager
def _views(
    lake: SparkLake, bound: Sequence[Bound], frame: Callable[[BoundTable], DataFrame]
) -> Iterator[None]:
    """Make the views, and drop them again: a DataFrame that was made of one keeps its plan."""
    made: list[str] = []
    try:
        _make(lake, bound, frame, made)
        yield
    finally:
        for view in made:
            lake.spark.catalog.dropTempView(view)


def _make(
    lake: SparkLake,
    bound: Sequence[Bound],
    frame: Callable[[BoundTable], DataFrame],
    made: list[str],
) -> None:
    for each in bound:
        if isinstance(each, BoundView):
            _make(lake, each.within, frame, made)
            found = _view_frame(lake, each)
        else:
            found = frame(each)
        _apart(found).createOrReplaceTempView(each.view)
        made.append(each.view)


def _view_frame(lake: SparkLake, bound: BoundView) -> DataFrame:
    """Return what a view finds, once views stand for the tables that it names."""
    if bound.held is not None:
        assert isinstance(bound.saved, TemporaryView)  # of no other rows are kept
        return _held_view(lake, bound.saved, bound.held)
    try:
        with plainly(called(bound.within)):
            return bound.saved.named(lake.spark.sql(rewrite(bound.saved.text, bound.within)))
    except (InvalidInput, NotFound) as error:
        name = ".".join(bound.named.parts)
        raise type(error)(f"view {name} does not fit its tables any more: {error}") from None


def _held_view(lake: SparkLake, saved: TemporaryView, held: Held) -> DataFrame:
    """Return a view's rows as they are kept; they are those of now, where nobody asked before."""
    if held.rows is None:
        rows, held.tables = select_view(lake, saved)
        return held.keep(rows)
    return held.rows


def _reading(
    lake: SparkLake, filters: dict[str, BooleanExpression]
) -> Callable[[BoundTable], DataFrame]:
    return lambda each: _frame(lake, each, filters.get(each.view, AlwaysTrue()))


def _frame(lake: SparkLake, bound: BoundTable, where: BooleanExpression) -> DataFrame:
    if bound.kept is not None:
        return bound.kept
    if bound.scan is None:
        ref = bound.ref
        assert ref.metadata is not None
        return metadata_table(lake, ref.name, ref.metadata, at=version_of(lake, ref, bound.named))
    # Spark checks rows itself: files are all that is to be left out here.
    return dataframe(lake.spark, bound.scan(where), files_only=True)


def _apart(rows: DataFrame) -> DataFrame:
    """Return rows as another plan: when a view goes, Spark lets go of what anybody keeps of its plan."""
    return rows.where(f.lit(True))
