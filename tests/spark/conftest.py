"""How the Spark session that tests share is set for some of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.spark.planned import Told
from tests.spark.reading import reading
from tests.spark.settings import COMPILED
from tests.spark.sql_lake import SqlLake


@pytest.fixture(scope="module")
def compiled(spark: SparkSession) -> Iterator[SparkSession]:
    """The same session, which now compiles what it runs: for many rows."""
    before = {name: spark.conf.get(name) for name in COMPILED}
    for name, value in COMPILED.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value or "")


@pytest.fixture
def lazily(spark: SparkSession) -> Iterator[None]:
    """Tables are planned when a query runs, whatever is usual: for tests of just that."""
    with reading(spark, lazily=True):
        yield


@pytest.fixture
def three_snapshots(spark: SparkSession, tmp_path: Path) -> SqlLake:
    """A table `t` with three snapshots of one row each."""
    made = SqlLake(spark, tmp_path)
    made.lake.create_table("db.t", pa.schema([("id", pa.int64()), ("name", pa.string())]))
    for number in (1, 2, 3):
        made.lake.append("db.t", pa.table({"id": [number], "name": [f"n{number}"]}))
    return made


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Told:
    return Told(caplog)
