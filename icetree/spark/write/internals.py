"""All that writing knows of Spark's internals: what of a plan is Python's, and what bounds its batches.

`tests/spark/test_internals.py` tells when Spark changes something of this.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from py4j.clientserver import ClientServer
from pyspark.sql import DataFrame, SparkSession

from icetree.spark.jvm import java_of
from icetree.spark.trees import kind, seq

#: How many rows, and bytes, a batch has at most.
_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
#: Spark's word for a batch that is not weighed.
_UNBOUNDED: Final = 2**31 - 1

#: Parts of a plan that Java works out, as long as no expression of theirs is Python's.
_JAVAS: Final = frozenset(
    {
        *("Aggregate", "CTERelationDef", "CTERelationRef", "CollectMetrics", "Deduplicate"),
        *("Distinct", "EmptyRelation", "Except", "Expand", "Filter", "GlobalLimit", "Intersect"),
        *("Join", "LateralJoin", "LocalLimit", "LocalRelation", "Offset", "OneRowRelation"),
        *("Project", "Range", "RebalancePartitions", "Repartition", "RepartitionByExpression"),
        *("ResolvedHint", "Sample", "Sort", "SubqueryAlias", "Tail", "Union", "View", "Window"),
        *("WithCTE", "HiveTableRelation"),
    }
)
#: Functions that make rows: Python's own have no mark in a plan.
_GENERATORS: Final = frozenset({"Explode", "PosExplode", "Inline", "Stack", "JsonTuple"})
#: What reads the rows of a relation.
_RELATIONS: Final = frozenset({"HadoopFsRelation", "JDBCRelation"})
_PYTHONS_TABLE: Final = "PythonTable"
#: To look at a part of a plan takes some messages to Java.
_MOST_PARTS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Where Spark ends batches that go to Python."""

    rows: int
    bytes: int
    #: Whether somebody has said so of rows, of bytes.
    rows_set: bool
    bytes_set: bool


def bounds(spark: SparkSession) -> Bounds | None:
    """Return where batches end in a session; None where they cannot end otherwise for one thread."""
    # Java is elsewhere, or works for one thread of Python's on whichever of its own is free.
    if not hasattr(spark, "_jsparkSession") or not isinstance(
        spark.sparkContext._gateway,  # noqa: SLF001
        ClientServer,
    ):
        return None
    settings = spark._jsparkSession.sessionState().conf()  # noqa: SLF001  # Spark has no other door
    return Bounds(
        rows=settings.arrowMaxRecordsPerBatch(),
        bytes=settings.arrowMaxBytesPerBatch(),
        rows_set=settings.contains(_ROWS),
        bytes_set=settings.contains(BYTES),
    )


@contextmanager
def not_weighed(spark: SparkSession, rows: int) -> Iterator[None]:
    """Have batches of this thread's jobs end at a number of rows alone."""
    # A setting would be that of all threads; what a session has not set, a thread's jobs may.
    context, wanted = spark.sparkContext, {_ROWS: rows, BYTES: _UNBOUNDED}
    before = {name: context.getLocalProperty(name) for name in wanted}
    for name, value in wanted.items():
        context.setLocalProperty(name, str(value))
    try:
        yield
    finally:
        for name, was in before.items():
            context.setLocalProperty(name, was)  # type: ignore[arg-type]


def is_all_javas(rows: DataFrame) -> bool:
    """Tell whether nothing of how rows come about is, or may be, done in Python."""
    plan = rows._jdf.queryExecution().analyzed()  # noqa: SLF001
    in_python = java_of(rows.sparkSession).org.apache.spark.sql.catalyst.trees.TreePattern
    if plan.containsPattern(in_python.PYTHON_UDF()):
        return False
    parts = list(islice(_parts(plan), _MOST_PARTS + 1))
    return len(parts) <= _MOST_PARTS and all(map(_is_javas, parts))


def _parts(plan: Any) -> Iterator[Any]:
    """Yield all parts of a plan, and of the queries within its expressions."""
    left = [plan, *seq(plan.subqueriesAll())]
    while left:
        part = left.pop()
        yield part
        left += seq(part.children())


def _is_javas(part: Any) -> bool:
    match kind(part):
        case "Generate":
            return kind(part.generator()) in _GENERATORS
        case "LogicalRelation":
            return kind(part.relation()) in _RELATIONS
        case "DataSourceV2Relation":
            return kind(part.table()) != _PYTHONS_TABLE
        case what:
            return what in _JAVAS
