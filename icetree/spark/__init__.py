"""The engine: Spark moves the data. The only room that imports pyspark."""

from icetree.spark.lake import SparkLake
from icetree.spark.open import connect, local

__all__ = ["SparkLake", "connect", "local"]
