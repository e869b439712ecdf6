"""Rows that are, or may be, computed in Python on their way."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]


def _same(values: pa.Array) -> pa.Array:
    return values


_same.__annotations__ = {"values": pa.Array, "return": pa.Array}


class _Parts:
    """A function that makes rows of a text."""

    def eval(self, text: str) -> Iterator[tuple[str]]:
        yield (text[:1],)


def made_in_python(spark: SparkSession, rows: DataFrame) -> dict[str, DataFrame]:
    """Return rows that are, or may be, computed in Python on their way, by how."""
    in_python = arrow_udf(_same, "string")
    rows.createOrReplaceTempView("rows_of_java")
    # What a stream hands over hides how it came about.
    hidden = spark.createDataFrame(rows.rdd, rows.schema)
    hidden.createOrReplaceTempView("rows_of_who_knows")
    for name, arrow in (("parts", False), ("arrow_parts", True)):
        made = f.udtf(_Parts, returnType="part string", useArrow=arrow)  # type: ignore[call-overload]
        spark.udtf.register(name, made)
    within = "SELECT id FROM rows_of_java WHERE id IN (SELECT id FROM rows_of_java WHERE {})"
    return {
        "function": rows.withColumn("text", in_python("text")),
        "batches": rows.mapInArrow(lambda batches: batches, rows.schema),
        "groups": rows.groupBy("id").applyInArrow(lambda table: table, rows.schema),
        "stream": hidden,
        "nested": rows.join(
            rows.select(in_python("text").alias("text")).distinct(), "text", "left_semi"
        ),
        "table function": spark.sql("SELECT id, part FROM rows_of_java, LATERAL parts(text)"),
        "arrow table function": spark.sql(
            "SELECT id, part FROM rows_of_java, LATERAL arrow_parts(text)"
        ),
        "view": spark.sql(
            "WITH made AS (SELECT part FROM arrow_parts('ab')) SELECT part FROM made"
        ),
        "subquery": spark.sql(
            "SELECT id, text FROM rows_of_java WHERE id IN (SELECT id FROM rows_of_who_knows)"
        ),
        "subquery of a subquery": spark.sql(
            within.format("id = (SELECT max(id) FROM rows_of_who_knows)")
        ),
        "table function of a subquery": spark.sql(
            within.format("EXISTS (SELECT 1 FROM arrow_parts('ab'))")
        ),
        "long": spark.sql(" UNION ALL ".join(["SELECT 1 AS id"] * 150)),
    }
