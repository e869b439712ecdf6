"""A table of many columns is planned when a query runs, although rows of it are deleted."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icetree.spark import SparkLake, local
from icetree.spark.read import scan as scans
from tests.effort import usually
from tests.spark.files_read import files_read
from tests.spark.planned import Told
from tests.spark.settings import setting

pytestmark = pytest.mark.usefixtures("lazily")


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[SparkLake]:
    made = local(tmp_path, spark=spark)
    made.create_namespace("db")
    yield made
    spark.catalog.dropTempView("t")
    made.close()


LIMIT = "spark.sql.codegen.maxFields"


@pytest.fixture
def limit(spark: SparkSession) -> Iterator[None]:
    """Put back for how many columns Spark generates code."""
    before = spark.conf.get(LIMIT)
    yield
    spark.conf.set(LIMIT, before or "100")


def _wide(lake: SparkLake, count: int) -> None:
    """Make a table of two files, a row of each of which is deleted."""
    names = [f"c{number}" for number in range(count)]
    table = lake.create_table("db.t", [(name, "long") for name in names])
    for start in (0, 10):
        table.append(pa.table({name: range(start + 1, start + 4) for name in names}))
    lake.delete("db.t", "c0 IN (2, 12)")


@pytest.mark.usefixtures("limit")
@pytest.mark.parametrize("count", usually([100, 150, 300], 150))
def test_many_columns_with_deleted_rows_wait_for_what_is_asked(
    lake: SparkLake, told: Told, count: int
) -> None:
    _wide(lake, count)
    rows = lake.read("db.t")
    assert told() == []
    assert sorted(map(tuple, rows.collect())) == [(each,) * count for each in (1, 3, 11, 13)]
    few = rows.where("c7 > 10")
    assert sorted(row.c1 for row in few.select("c1").collect()) == [11, 13]
    assert files_read(few) == 1
    other = lake.spark.createDataFrame([(13, "x")], "c3 long, x string")
    assert [row.c1 for row in rows.join(other.where("c3 = 13"), on="c3").collect()] == [13]
    lake.temp_view("db.t")
    assert files_read(lake.spark.sql("SELECT * FROM t WHERE c9 < 5")) == 1


@pytest.mark.usefixtures("limit")
def test_a_limit_of_columns_that_somebody_chose_stays(
    lake: SparkLake, caplog: pytest.LogCaptureFixture
) -> None:
    _wide(lake, 30)
    lake.spark.conf.set(LIMIT, "20")
    again = SparkLake(lake.spark, lake)
    with caplog.at_level(logging.INFO, logger=scans.__name__):
        assert sorted(row.c29 for row in again.read("db.t").collect()) == [1, 3, 11, 13]
    assert "more columns than Spark generates code for" in caplog.text
    assert lake.spark.conf.get(LIMIT) == "20"
    caplog.clear()
    # Those that are asked for count, not those that there are.
    with caplog.at_level(logging.INFO, logger=scans.__name__):
        assert again.read("db.t", columns=["c2", "c3"]).count() == 4
    assert caplog.text == ""


def test_rows_that_spark_reads_one_by_one_are_not_copied_with_all_marks_of_their_file(
    lake: SparkLake, caplog: pytest.LogCaptureFixture
) -> None:
    """As it reads what its vectorised reader is not to read."""
    lake.create_table("db.t", [("id", "long"), ("s", "struct<a: long>")])
    lake.append("db.t", lake.spark.range(6).selectExpr("id", "struct(id AS a) AS s"))
    lake.delete("db.t", "id IN (2, 4)")
    for name, columns, one_by_one in (
        ("spark.sql.parquet.enableVectorizedReader", ["id"], True),
        ("spark.sql.parquet.enableNestedColumnVectorizedReader", ["id", "s"], True),
        ("spark.sql.parquet.enableNestedColumnVectorizedReader", ["id"], False),
    ):
        caplog.clear()
        with setting(lake.spark, name, "false"), caplog.at_level(logging.INFO, scans.__name__):
            rows = lake.read("db.t", columns=columns)
            assert sorted(row.id for row in rows.collect()) == [0, 1, 3, 5]
        assert ("vectorised reader is not to read" in caplog.text) is one_by_one
