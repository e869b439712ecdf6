"""How tables are read on Spark in a test: by a relation that asks, or planned at once; and their rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from icetree.spark import SparkLake
from icetree.spark.read.internals import SETTING

#: What all tests that do not say otherwise read by: `make fallback` sets it to false.
USUAL = {SETTING: os.environ.get("ICETREE_READ_LAZY", "true")}


@contextmanager
def reading(spark: SparkSession, *, lazily: bool) -> Iterator[None]:
    """Read in one of both ways, then as before."""
    before = spark.conf.get(SETTING, USUAL[SETTING])
    spark.conf.set(SETTING, str(lazily).lower())
    try:
        yield
    finally:
        spark.conf.set(SETTING, before or "")


def rows_in(lake: SparkLake, name: str, **how: Any) -> list[dict[str, Any]]:
    """Return the rows of a table as Spark reads them, in an order of their own."""
    found = lake.read(name, **how).toArrow().to_pylist()
    return sorted(found, key=repr)
