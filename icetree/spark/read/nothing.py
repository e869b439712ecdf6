"""A relation without a row, for whoever wants to see what Spark would ask of a real one."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icetree.spark.read.listing import NO_FILES, read_listed


def nothing(spark: SparkSession, schema: StructType) -> DataFrame:
    """Return no rows at all, of a relation that Spark does not know to be empty.

    Nothing is taken as never null: readers may find nulls where there should be none.
    """
    nullable = StructType.fromJson(schema.jsonValue())
    for field in nullable:
        field.nullable = True
    return read_listed(spark, NO_FILES, nullable)
