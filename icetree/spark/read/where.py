"""Rows for which a condition of Spark's is true: files pruned by it, rows checked by Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyiceberg.expressions import AlwaysTrue
from pyspark.sql import Column, DataFrame, SparkSession

from icetree.spark.complaints import plainly
from icetree.spark.names import as_column, column
from icetree.spark.read.condition import condition_filter
from icetree.spark.read.question import question
from icetree.spark.read.scan import dataframe
from icetree.spark.types import is_known
from icetree.spec.schema.metadata_columns import METADATA_COLUMNS
from icetree.table.point import Point
from icetree.table.scan.scan import Scan
from icetree.table.table import Table


def rows_where(
    spark: SparkSession,
    table: Table,
    where: str | Column,
    *,
    columns: Iterable[str] | None,
    at: Point | None,
) -> DataFrame:
    """Return the rows of a table for which a condition is true, some of their columns or all.

    The condition may speak of columns that are not asked for, and of metadata columns but for `_deleted`.
    """
    whole = table.scan(at=at)
    named = _metadata_columns(where, whole)
    wanted = whole if columns is None else table.scan(columns=columns, at=at)
    alias = table.name.name
    # As Spark will ask for the files itself, so that they are planned once.
    beside = table.scan(columns=named, at=at).columns.fields if named else ()
    told = condition_filter(spark, whole.schema, where, alias=alias, beside=beside)
    filter = question(AlwaysTrue(), [told])
    # A column that Spark has no type for is not there, unless it is asked for.
    known = [field.name for field in whole.schema.fields if is_known(field)]
    asked = [field.name for field in wanted.columns.fields]
    scan = table.scan(filter, columns=dict.fromkeys([*known, *asked, *named]), at=at)
    rows = dataframe(spark, scan, files_only=True).alias(alias)
    with plainly():
        return rows.where(as_column(where)).select(*map(column, asked))


def _metadata_columns(where: str | Column, scan: Scan) -> list[str]:
    """Return the metadata columns that a condition may speak of, which are not columns of the table."""
    words = {word.lower() for word in re.findall(r"\w+", str(where))}
    own = {field.name.lower() for field in scan.schema.fields}
    # Rows that deletes mark come along where that one is read: who wants them asks for it.
    return [name for name in METADATA_COLUMNS if name in words - own - {"_deleted"}]
