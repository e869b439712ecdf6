"""Queries that a table's metadata answers by itself: how many rows, the least and the greatest value.

The answer is a row that Spark reads from its own plan, under an alias that says where it comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.types import (
    BooleanType,
    DateType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)
from pyspark.sql import DataFrame

from icetree.filters.text import predicate_text
from icetree.spark.names import quoted
from icetree.spark.pushdown.exact import exact_filter
from icetree.spark.read.plan import LEAVES, Executors
from icetree.spark.sql.bind import Bound, BoundTable
from icetree.spark.trees import kind, option, seq
from icetree.spark.types import spark_type
from icetree.table.scan.scan import Scan
from icetree.table.scan.told import EXACT, End, told
from icetree.visible import log_of

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

log = log_of(__name__)

_RELATIONS: Final = ("UnresolvedRelation", "RelationTimeTravel")
_MICROS_A_DAY: Final = 86_400 * 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """An aggregate: `count` of rows, or `min` or `max` of a column."""

    what: Literal["count", "min", "max"]
    of: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Query:
    """A query that is nothing but aggregates of a table, perhaps of some of its rows."""

    asked: tuple[_Asked, ...]
    has_condition: bool


def told_by_metadata(
    lake: SparkLake,
    plan: Any,
    bound: Sequence[Bound],
    rows: DataFrame,
    on_nothing: Callable[[], Any] | None,
) -> DataFrame | None:
    """Return what a query finds where metadata tells it exactly; `rows` is the query itself.

    Nothing may be in the way: no grouping, no condition that a file meets in part, and for values no
    deletes. `on_nothing` gives the optimised plan of the query, on a relation that is empty; None
    where that would not be the same again.
    """
    query = _query(plan)
    table = bound[0] if len(bound) == 1 else None
    if query is None or not isinstance(table, BoundTable):
        return None
    if table.scan is None or table.kept is not None or table.hidden:
        return None
    whole = table.scan(AlwaysTrue())
    fields = [None if each.of is None else _field(each.of, whole) for each in query.asked]
    if any(field is None and each.of for field, each in zip(fields, query.asked, strict=True)):
        return None
    where: BooleanExpression | None = AlwaysTrue()
    if query.has_condition:
        where = None if on_nothing is None else exact_filter(on_nothing(), whole.schema)
    if where is None:
        return None
    values = _values(lake, query.asked, fields, table.scan(where))
    if values is None or len(values) != len(rows.columns):
        return None
    told = ", ".join(
        f"{value} AS {quoted(name)}" for value, name in zip(values, rows.columns, strict=True)
    )
    place = quoted(f"metadata of {table.ref.name}")
    return lake.spark.sql(f"SELECT * FROM (SELECT {told}) AS {place}")


def _query(plan: Any) -> _Query | None:
    """Return the aggregates of a query that is nothing else; None for any other."""
    if kind(plan) != "Project":
        return None
    [below] = seq(plan.children())
    has_condition = kind(below) == "Filter"
    if has_condition:
        [below] = seq(below.children())
    if kind(below) == "SubqueryAlias":
        [below] = seq(below.children())
    if kind(below) not in _RELATIONS:
        return None
    found = [_aggregate(each) for each in seq(plan.projectList())]
    asked = tuple(each for each in found if each)
    return _Query(asked=asked, has_condition=has_condition) if all(found) else None


def _aggregate(node: Any) -> _Asked | None:
    if kind(node) in ("UnresolvedAlias", "Alias"):
        [node] = seq(node.children())
    if kind(node) != "UnresolvedFunction" or node.isDistinct() or node.ignoreNulls():
        return None
    if option(node.filter()) is not None or len(seq(node.orderingWithinGroup())):
        return None
    names, arguments = [each.lower() for each in seq(node.nameParts())], seq(node.arguments())
    if len(arguments) != 1:
        return None
    [argument] = arguments
    if names == ["count"]:
        every = kind(argument) == "UnresolvedStar" and option(argument.target()) is None
        one = kind(argument) == "Literal" and argument.toString() == "1"
        return _Asked(what="count") if every or one else None
    if names in (["min"], ["max"]) and kind(argument) == "UnresolvedAttribute":
        parts = seq(argument.nameParts())
        what: Literal["min", "max"] = "min" if names == ["min"] else "max"
        return _Asked(what=what, of=parts[0]) if len(parts) == 1 else None
    return None


def _field(name: str, scan: Scan) -> NestedField | None:
    """Return the column of a name, where there is but one in any case, and its bounds are values."""
    alike = [each for each in scan.schema.fields if each.name.lower() == name.lower()]
    if len(alike) != 1 or not isinstance(alike[0].field_type, EXACT):
        return None
    return alike[0]


def _values(
    lake: SparkLake,
    asked: Sequence[_Asked],
    fields: Sequence[NestedField | None],
    scan: Scan,
) -> list[str] | None:
    """Return the answers as SQL, from one plan; None where one is not known exactly."""
    ends = [
        None
        if field is None or each.what == "count"
        else End(what=each.what, field_id=field.field_id)
        for each, field in zip(asked, fields, strict=True)
    ]
    run = Executors(spark=lake.spark, scan=scan, leaves_here=LEAVES)
    found = told(scan, [end for end in ends if end], run=run)
    what = "tells" if found else "does not tell"
    log.info("metadata %s it: %r, where %s", what, scan, predicate_text(scan.where))
    if found is None:
        return None
    return [
        f"{found.rows}L" if end is None or field is None else _sql(found.ends[end], field)
        for end, field in zip(ends, fields, strict=True)
    ]


def _sql(value: pa.Scalar, field: NestedField) -> str:
    type, name = field.field_type, spark_type(field.field_type).simpleString()
    if not value.is_valid:
        return f"CAST(NULL AS {name})"
    match type:
        case TimestamptzType():
            return f"timestamp_micros({_long(value.cast(pa.int64()).as_py())})"
        case TimestampType():
            days, micros = divmod(value.cast(pa.int64()).as_py(), _MICROS_A_DAY)
            seconds = f"CAST('{micros // 10**6}.{micros % 10**6:06}' AS DECIMAL(18, 6))"
            start = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
            return f"{start} + make_dt_interval({days}, 0, 0, {seconds})"
        case DateType():
            return f"date_from_unix_date({value.cast(pa.int32()).as_py()})"
        case StringType():
            # As bytes, in which nothing needs an escape.
            return f"CAST(X'{value.as_py().encode().hex()}' AS STRING)"
        case BooleanType():
            return str(value.as_py()).lower()
    found = value.as_py()
    return f"CAST('{found:f}' AS {name})" if isinstance(found, Decimal) else _long(found, name)


def _long(value: int, type: str = "bigint") -> str:
    # The least of all has no literal.
    return f"CAST('{value}' AS {type})"
