"""Queries that a table's metadata answers by itself: how many rows, the least and the greatest value.

The answer is a row that Spark reads from its own plan, under an alias that says where it comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.types import (
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    NestedField,
    TimestamptzType,
)
from pyspark.sql import DataFrame

from icetree.errors import InvalidInput
from icetree.spark.names import quoted
from icetree.spark.sql.bind import Bound, BoundTable
from icetree.spark.trees import kind, option, seq
from icetree.spark.types import spark_type
from icetree.spec.stats import column
from icetree.table.scan.planning import planner
from icetree.table.scan.scan import Scan

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

#: Types whose bounds are values, and compare the same everywhere.
_PLAIN: Final = (DateType, DecimalType, IntegerType, LongType, TimestamptzType)
_RELATIONS: Final = ("UnresolvedRelation", "RelationTimeTravel")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """An aggregate: `count` of rows, or `min` or `max` of a column."""

    what: str
    of: str | None = None


def told_by_metadata(
    lake: SparkLake, plan: Any, bound: Sequence[Bound], rows: DataFrame
) -> DataFrame | None:
    """Return what a query finds where metadata tells it exactly; `rows` is the query itself.

    Nothing may be in the way: no condition, no grouping, and for values no deletes.
    """
    asked = _asked(plan)
    table = bound[0] if len(bound) == 1 else None
    if asked is None or not isinstance(table, BoundTable):
        return None
    if table.scan is None or table.kept is not None or table.hidden:
        return None
    values = _values(asked, table.scan(AlwaysTrue()))
    if values is None or len(values) != len(rows.columns):
        return None
    told = ", ".join(
        f"{value} AS {quoted(name)}" for value, name in zip(values, rows.columns, strict=True)
    )
    place = quoted(f"metadata of {table.ref.name}")
    return lake.spark.sql(f"SELECT * FROM (SELECT {told}) AS {place}")


def _asked(plan: Any) -> list[_Asked] | None:
    """Return the aggregates of a query that is nothing else; None for any other."""
    if kind(plan) != "Project":
        return None
    [below] = seq(plan.children())
    if kind(below) == "SubqueryAlias":
        [below] = seq(below.children())
    if kind(below) not in _RELATIONS:
        return None
    found = [_aggregate(each) for each in seq(plan.projectList())]
    return [each for each in found if each] if all(found) else None


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
        return _Asked(what=names[0], of=parts[0]) if len(parts) == 1 else None
    return None


def _values(asked: list[_Asked], scan: Scan) -> list[str] | None:
    """Return the answers as SQL; None where one is not known exactly."""
    found: list[str] = []
    for each in asked:
        value = _count(scan) if each.of is None else _bound(each.what, each.of, scan)
        if value is None:
            return None
        found.append(value)
    return found


def _count(scan: Scan) -> str | None:
    try:
        return f"{scan.count(metadata_only=True)}L"
    except InvalidInput:
        return None


def _bound(what: str, name: str, scan: Scan) -> str | None:
    field = _field(name, scan)
    if field is None:
        return None
    tasks = (
        planner(
            scan.files,
            scan.metadata,
            scan.snapshot,
            schema_id=scan.schema.schema_id,
            stats_columns=True,
        )
        .whole()
        .tasks
    )
    if not _is_whole(tasks):
        return None
    type = spark_type(field.field_type).simpleString()
    values, nulls, tight, bound = (
        _stat(tasks, field, stat)
        for stat in ("values", "nulls", "tight", "lower" if what == "min" else "upper")
    )
    rows = pc.equal(values, tasks["record_count"].combine_chunks())
    empty = pc.fill_null(pc.and_(rows, pc.equal(nulls, values)), False)
    known = pc.and_(pc.fill_null(tight, False), pc.is_valid(bound))
    if not pc.all(pc.or_(empty, known)).as_py():
        return None
    there = bound.filter(pc.invert(empty))
    if not len(there):
        return f"CAST(NULL AS {type})"
    best = (pc.min if what == "min" else pc.max)(there)
    if isinstance(field.field_type, TimestamptzType):
        return f"timestamp_micros({best.cast(pa.int64()).as_py()})"
    if isinstance(field.field_type, DateType):
        return f"date_from_unix_date({best.cast(pa.int32()).as_py()})"
    return f"CAST('{best.as_py()}' AS {type})"


def _field(name: str, scan: Scan) -> NestedField | None:
    """Return the column of a name, where there is but one in any case, and its bounds are values."""
    alike = [each for each in scan.schema.fields if each.name.lower() == name.lower()]
    if len(alike) != 1 or not isinstance(alike[0].field_type, _PLAIN):
        return None
    return alike[0]


def _is_whole(tasks: pa.Table) -> bool:
    """Tell whether nothing is deleted from any file."""
    lists = (
        pc.fill_null(pc.list_value_length(tasks[f"{each}_deletes"]), 0)
        for each in ("equality", "position")
    )
    return tasks["dv_location"].null_count == tasks.num_rows and not any(
        pc.sum(each).as_py() for each in lists
    )


def _stat(tasks: pa.Table, field: NestedField, stat: str) -> pa.Array:
    name = column(field.field_id, stat)
    if name not in tasks.column_names:
        return pa.nulls(tasks.num_rows, pa.bool_() if stat == "tight" else pa.int64())
    return tasks[name].combine_chunks()
