"""How the Spark session that tests share is set for some of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.spark.settings import COMPILED


@pytest.fixture(scope="module")
def compiled(spark: SparkSession) -> Iterator[SparkSession]:
    """The same session, which now compiles what it runs: for many rows."""
    before = {name: spark.conf.get(name) for name in COMPILED}
    for name, value in COMPILED.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value or "")
