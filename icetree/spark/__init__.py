"""The engine: Spark moves the data. The only room that imports pyspark."""

from icetree.spark.lake import Lake

__all__ = ["Lake"]
