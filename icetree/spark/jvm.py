"""The Java of a session."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def java_of(spark: SparkSession) -> Any:
    """Return what a session's Java has, by the names of its packages."""
    java = spark._jvm  # noqa: SLF001  # Spark has no other door
    assert java is not None
    return java
