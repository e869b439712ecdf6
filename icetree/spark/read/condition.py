"""Conditions of Spark's as filters of ours, by which files are pruned."""

from __future__ import annotations

from collections.abc import Iterable

from pyiceberg.expressions import BooleanExpression
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField
from pyspark.sql import Column, SparkSession

from icetree.spark.complaints import plainly
from icetree.spark.names import as_column
from icetree.spark.pushdown.expression import filter_of
from icetree.spark.pushdown.plan import Pruned, marker, optimized, pruned_by
from icetree.spark.read.nothing import nothing
from icetree.spark.types import spark_schema

__all__ = ["condition_filter", "filter_of"]


def condition_filter(
    spark: SparkSession,
    schema: Schema,
    condition: str | Column,
    *,
    alias: str | None = None,
    beside: Iterable[NestedField] = (),
) -> BooleanExpression:
    """Return a filter that keeps at least the rows of a table that satisfy a condition.

    `alias` is what the condition may call the table, `beside` what rows have beside its columns. A condition that
    Spark does not understand is `InvalidInput`.
    """
    empty = nothing(spark, spark_schema([*schema.fields, *beside]))
    here = {marker(optimized(empty)): Pruned(view="", schema=schema)}
    with plainly():
        plan = optimized(
            (empty if alias is None else empty.alias(alias)).where(as_column(condition))
        )
    return pruned_by(plan, here)[""]
