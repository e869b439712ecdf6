"""Times in statements: one without a zone is UTC, whatever zone the session is in, as at every door.

A typed `TIMESTAMP '…'` is Spark's own: it has the session's zone before anybody else sees it.
"""

from __future__ import annotations

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.classic.column import Column as ClassicColumn

from icetree.spark.jvm import java_of

_ZONE = "UTC"


def milliseconds(value: Column) -> Column:
    """Return a time in milliseconds since 1970; null where a text is no time."""
    java = java_of(SparkSession.active())
    columns = java.org.apache.spark.sql.classic.ExpressionUtils
    expressions = java.org.apache.spark.sql.catalyst.expressions
    # Of all that casts, this alone can be told of a zone other than the session's.
    cast = expressions.Cast(
        columns.expression(value._jc),  # noqa: SLF001  # Spark has no other door
        java.org.apache.spark.sql.types.DataTypes.TimestampType,
        java.scala.Option.apply(_ZONE),
        expressions.EvalMode.TRY(),
    )
    return f.unix_millis(ClassicColumn(columns.column(cast)))
