"""Tables that Iceberg Java wrote, read by Spark as our own planner and reader have them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pyspark.sql import SparkSession

from icetree.spark import SparkLake
from icetree.spark.read.scan import is_lazy
from tests.peers.conftest import JavaTable
from tests.peers.values import JAVA_TABLES

CONDITIONS = (
    "true",
    "n = 5",
    "n IS NULL AND id > 10",
    "id < 60 AND country = 'FR'",
    "country IN ('DE', 'US') AND d < DATE'2024-01-04'",
    "place.zip > 100",
)
#: What our own filters call otherwise.
WORDS = {
    "true": None,
    CONDITIONS[4]: "country IN ('DE', 'US') AND d < '2024-01-04'",
}


@pytest.mark.law
@pytest.mark.parametrize("name", JAVA_TABLES)
def test_rows_are_those_that_deletes_of_every_kind_leave_and_nothing_is_planned_before(
    spark: SparkSession, java_tables: Mapping[str, JavaTable], name: str
) -> None:
    lake = java_tables[name].lake()
    table, on_spark = lake.table("db.t"), SparkLake(spark, lake)
    assert is_lazy(spark, table.scan())
    columns = ["id", "n", "_row_id"]
    rows = on_spark.read("db.t", columns=[*columns, "country", "d", "place"])
    for condition in CONDITIONS:
        found = [tuple(row) for row in rows.where(condition).select(columns).collect()]
        told = on_spark.sql(f"SELECT id FROM db.t WHERE {condition}")
        right = table.scan(WORDS.get(condition, condition), columns=columns).to_arrow()
        right_rows = zip(*right.to_pydict().values(), strict=True)
        assert sorted(found, key=repr) == sorted(right_rows, key=repr)
        assert sorted(row.id for row in told.collect()) == sorted(right["id"].to_pylist())
