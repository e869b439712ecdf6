"""Rows put together for writing: those of a partition in few tasks, in the table's order.

Whoever writes sorts within a file; here is which rows meet in one.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from pyiceberg.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StringType as SqlString

from icetree.errors import InvalidInput
from icetree.rows.schema import arrow_type
from icetree.rows.transform import transformed
from icetree.spark.functions.calls import with_functions
from icetree.spark.in_python import in_python
from icetree.spark.names import column, names_of, path_sql
from icetree.spark.restored import restored
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.properties.names import DISTRIBUTION, DISTRIBUTIONS
from icetree.spec.properties.values import choice
from icetree.spec.schema.expressions import Expression, transform_of
from icetree.spec.schema.shape import Shape

_PERIODS: Final[dict[type[Any], str]] = {
    YearTransform: "YEAR",
    MonthTransform: "MONTH",
    DayTransform: "DAY",
    HourTransform: "HOUR",
}
#: Types whose buckets and truncated values Spark works out by itself.
_IN_JAVA: Final = (
    *(IntegerType, LongType, DecimalType, DateType, TimestampType, TimestamptzType),
    *(StringType, BinaryType),
)


def arranged(rows: DataFrame, metadata: TableMetadata) -> DataFrame:
    """Return the rows as `write.distribution-mode` says: `none`, `hash` or `range`.

    By default rows meet by partition, or by range where the table has an order but no partitions.
    """
    shape = metadata.shape()
    spec = [e for e in shape.spec(metadata.default_spec_id) if e.transform != "void"]
    keys = metadata.sort_keys
    usual = "hash" if spec else "range" if keys else "none"
    mode = choice(metadata.properties, DISTRIBUTION, DISTRIBUTIONS, default=usual)
    columns = [_of(e, shape, rows.sparkSession) for e in spec]
    if mode == "range" and (columns or keys):
        for key in keys:
            by = Expression(
                expr_id=0, source_ids=key.source_ids, transform=key.transform, name="sort key"
            )
            value = _of(by, shape, rows.sparkSession)
            columns.append(value.desc() if key.descending else value.asc())
        return rows.repartitionByRange(*columns)
    if mode == "hash" and columns:
        return _rebalanced(rows, columns)
    return rows


def _rebalanced(rows: DataFrame, columns: list[Column]) -> DataFrame:
    """Return the rows with equal keys together, except where that would make one task too large."""
    names = [f"__icetree_by_{number}" for number in range(len(columns))]
    wide = rows.select("*", *(c.alias(name) for c, name in zip(columns, names, strict=True)))
    return wide.hint("rebalance", *names).drop(*names)


def _of(expression: Expression, shape: Shape, spark: SparkSession) -> Column:
    """Return a column that is the same for rows of the same value of an expression."""
    if expression.is_unknown or not shape.columns.keys() >= set(expression.source_ids):
        raise InvalidInput(
            f"{expression.name} is {expression.transform}, which cannot be worked out of the "
            "table's columns: change the spec"
        )
    if expression.source_id is not None:
        return _value(transform_of(expression), expression.source_id, shape, spark)
    # Rows that agree in all columns agree in their bucket; others of it may meet elsewhere.
    named = [shape.schema.find_column_name(id) or "" for id in expression.source_ids]
    values = [column(*names_of(path, shape.schema)) for path in named]
    assert expression.buckets is not None
    return f.pmod(f.hash(*values), f.lit(expression.buckets))


def _value(
    transform: Transform[Any, Any], source_id: int, shape: Shape, spark: SparkSession
) -> Column:
    """Return a column that is the same for rows of the same partition."""
    field = shape.columns[source_id]
    path = shape.schema.find_column_name(source_id) or field.name
    values = column(*names_of(path, shape.schema))
    if isinstance(transform, IdentityTransform):
        return values
    period = _PERIODS.get(type(transform))
    if period is not None:
        # In another time zone than UTC some rows meet elsewhere, which costs a file at most.
        return f.date_trunc(period, _moments(values, field))
    if isinstance(field.field_type, _IN_JAVA) and hasattr(spark, "_jvm"):
        word, _, number = str(transform).rstrip("]").partition("[")
        called = f"system.{word}({number}, {path_sql(*names_of(path, shape.schema))})"
        return f.expr(with_functions(called, spark))
    return _in_python(transform, field, values)


def _moments(values: Column, field: NestedField) -> Column:
    """Return values that Spark knows periods of: nanoseconds are numbers to it."""
    if isinstance(field.field_type, TimestampNanoType | TimestamptzNanoType):
        return f.timestamp_micros(f.floor(values / f.lit(1000)))
    return values


def _in_python(transform: Transform[Any, Any], field: NestedField, column: Column) -> Column:
    def value(values: pa.Array) -> pa.Array:
        fitted = restored(values, field.field_type).cast(arrow_type(field.field_type))
        made = transformed(fitted, transform, field.field_type)
        return _hex(made) if pa.types.is_binary(made.type) else made.cast(pa.string())

    return in_python(value, SqlString(), column)


def _hex(values: pa.Array) -> pa.Array:
    return pa.array([None if each is None else each.hex() for each in values.to_pylist()])
