"""Temporary views over tables of the lake: kept as text, so that they follow their tables.

Spark's own catalog says which views there are. A view of ours has a mark in it, by which the lake
knows the view's text again: whoever drops, renames or replaces the view in Spark need not tell us.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame, SparkSession

from icetree.errors import InvalidInput
from icetree.spark.complaints import plainly
from icetree.spark.trees import kind, named_tables, option, parse
from icetree.surroundings import random_bits

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

_MARK: Final = "__icetree_view_"
_GLOBAL: Final = "spark.sql.globalTempDatabase"


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryView:
    """A view, as it was said."""

    mark: str
    #: Its query, in which tables of the lake have their full names.
    text: str
    #: Names for its columns; none where the query's own are good.
    columns: tuple[str, ...]

    def named(self, rows: DataFrame) -> DataFrame:
        """Return the rows of the query with the view's names for their columns."""
        if not self.columns:
            return rows
        if len(self.columns) != len(rows.columns):
            raise InvalidInput(
                f"it names {len(self.columns)} columns, but its query finds {len(rows.columns)}"
            )
        return rows.toDF(*self.columns)


def temporary_view(spark: SparkSession, parts: Sequence[str]) -> Any:
    """Return Spark's entry of a temporary view; None where it has none of that name."""
    catalog = spark._jsparkSession.sessionState().catalog()  # noqa: SLF001  # Spark's only door
    if len(parts) == 1:
        return option(catalog.getRawTempView(parts[0]))
    if len(parts) == 2 and parts[0].lower() == spark.conf.get(_GLOBAL):
        return option(catalog.getRawGlobalTempView(parts[1]))
    return None


def view_of(lake: SparkLake, temporary: Any) -> TemporaryView | None:
    """Return the text of a temporary view; None for one that is Spark's own."""
    plan = option(temporary.plan())
    if plan is None or kind(plan) != "SubqueryAlias":
        return None
    return lake.kept.views.get(plan.identifier().name())


def find_view(lake: SparkLake, parts: Sequence[str]) -> TemporaryView | None:
    """Return the view of ours that a name stands for."""
    temporary = temporary_view(lake.spark, parts)
    return None if temporary is None else view_of(lake, temporary)


def make_view(
    lake: SparkLake,
    name: str,
    text: str,
    rows: DataFrame,
    columns: Sequence[str] = (),
    *,
    replace: bool,
    is_global: bool = False,
) -> TemporaryView:
    """Give a name to a query; `rows` is what it finds now, which is what Spark itself will read."""
    spark = lake.spark
    parts = [spark.conf.get(_GLOBAL) or "", name] if is_global else [name]
    was = find_view(lake, parts) if replace else None
    if replace and any(_same(parts, each) for each in _views_in(lake, text)):
        raise InvalidInput(f"view {name} would read itself: give the new view another name")
    view = TemporaryView(mark=f"{_MARK}{random_bits(128):032x}", text=text, columns=tuple(columns))
    _register(view, name, rows, replace=replace, is_global=is_global)
    lake.kept.views[view.mark] = view
    if was is not None:
        forget_view(lake, was)
    return view


def _register(
    view: TemporaryView, name: str, rows: DataFrame, *, replace: bool, is_global: bool
) -> None:
    marked = view.named(rows).alias(view.mark)
    with plainly():
        if is_global:
            (marked.createOrReplaceGlobalTempView if replace else marked.createGlobalTempView)(name)
        else:
            (marked.createOrReplaceTempView if replace else marked.createTempView)(name)


def renew_view(view: TemporaryView, parts: Sequence[str], rows: DataFrame) -> None:
    """Let Spark itself read what a view finds now."""
    _register(view, parts[-1], rows, replace=True, is_global=len(parts) > 1)


def forget_view(lake: SparkLake, view: TemporaryView) -> None:
    """Forget a view that Spark has no longer."""
    lake.kept.views.pop(view.mark, None)
    lake.cache.release(view.mark)


def _views_in(lake: SparkLake, text: str) -> Iterator[Sequence[str]]:
    """Yield the names of the temporary views that a query reads, and that those read."""
    for named in named_tables(parse(lake.spark, text), text):
        temporary = temporary_view(lake.spark, named.parts)
        if temporary is not None:
            yield named.parts
            view = view_of(lake, temporary)
            if view is not None:
                yield from _views_in(lake, view.text)


def _same(parts: Sequence[str], others: Sequence[str]) -> bool:
    return [part.lower() for part in parts] == [part.lower() for part in others]
