"""Views of the lake as queries read them: their text in Spark's dialect, under their own columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.schema import Schema
from pyspark.sql import Column, DataFrame, SparkSession

from icetree.errors import InvalidInput, NotFound
from icetree.spark.functions.calls import with_functions
from icetree.spark.jvm import java_of
from icetree.spark.names import column
from icetree.spark.sql.scope import Scope
from icetree.spark.trees import parse_query
from icetree.spark.types import nullable, spark_type

_ANEW: Final = "; CREATE OR REPLACE VIEW makes it anew"
#: In a version's summary: what its query calls the columns, as JSON.
QUERY_COLUMNS: Final = "icetree.query-columns"

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake
    from icetree.table.views.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class LastingView:
    """A view of the lake, as one statement reads it."""

    name: str
    #: Its query, with functions under the names that this session knows them by.
    text: str
    plan: Any
    scope: Scope
    schema: Schema
    #: What its query called the columns, in their order; none where nobody has noted it.
    found: tuple[str, ...] = ()

    def named(self, rows: DataFrame) -> DataFrame:
        """Return the rows of the query as the view has them: its columns, under their names and types.

        Columns that the query finds beyond those are left out: they came later.
        """
        # By number: a query may call two columns the same.
        numbered = rows.toDF(*map(str, range(len(rows.columns))))
        return numbered.select(
            [
                self._column(rows, at, field).alias(field.name, metadata=_comment(field.doc))
                for at, field in zip(self._places(rows), self.schema.fields, strict=True)
            ]
        )

    def _places(self, rows: DataFrame) -> Sequence[int]:
        """Return where the query has each of the view's columns."""
        own, wanted = rows.columns, self.found
        if len(wanted) == len(self.schema.fields):
            for name in wanted:
                if own.count(name) != 1:
                    found = "no" if name not in own else "more than one"
                    raise InvalidInput(f"its query finds {found} column {name!r} now{_ANEW}")
            return [own.index(name) for name in wanted]
        if len(own) < len(self.schema.fields):
            raise InvalidInput(
                f"it has {len(self.schema.fields)} columns, but its query finds {len(own)} now{_ANEW}"
            )
        return range(len(self.schema.fields))

    def _column(self, rows: DataFrame, at: int, field: Any) -> Column:
        is_now = nullable(rows.schema[at].dataType)
        was = nullable(spark_type(field.field_type, column=field.name))
        found = column(str(at))
        if is_now == was:
            return found
        if not _can_become(rows.sparkSession, is_now, was):
            raise InvalidInput(
                f"its column {field.name!r} is {was.simpleString()}, but its query finds "
                f"{is_now.simpleString()} now{_ANEW}"
            )
        return found.cast(was)


def lasting_view(lake: SparkLake, view: View, within: Scope) -> LastingView:
    """Return a view as a statement reads it, within the views that lead to it."""
    name = str(view.name)
    scope = within.within(name, view.version, lake.catalog.name)
    text = with_functions(view.text, lake.spark)
    try:
        plan = parse_query(lake.spark, text)
    except InvalidInput as error:
        raise InvalidInput(f"the query of view {name} cannot be read: {error}") from None
    return LastingView(
        name=name,
        text=text,
        plan=plan,
        scope=scope,
        schema=view.schema,
        found=_noted(view.version.summary.get(QUERY_COLUMNS)),
    )


def _noted(columns: str | None) -> tuple[str, ...]:
    """Return what is noted of a query's columns; nothing where that cannot be read."""
    try:
        found = json.loads(columns or "[]")
    except ValueError:
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()


def refuse_unknown(view: str, parts: Sequence[str], scope: Scope) -> None:
    """Refuse a name that only this session could know."""
    where = f" in namespace {scope.namespace}" if scope.namespace else ""
    raise NotFound(
        f"view {view} names {'.'.join(parts)}, and there is no such table or view{where}; a "
        "temporary view cannot be a part of one that lasts"
    )


def _comment(doc: str | None) -> dict[str, str]:
    return {} if doc is None else {"comment": doc}


def _can_become(spark: SparkSession, have: Any, want: Any) -> bool:
    """Tell whether every value of one type is one of another, as Spark sees it."""
    java, session = java_of(spark), spark._jsparkSession  # noqa: SLF001  # Spark has no other door
    types = [session.parseDataType(each.json()) for each in (have, want)]
    return bool(java.org.apache.spark.sql.catalyst.expressions.Cast.canUpCast(*types))
