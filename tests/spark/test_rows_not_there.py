"""A condition that fails for some row fails for none that is deleted."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.settings import setting
from tests.spark.sql_lake import SqlLake
from tests.table.changing import delete_equal

#: What fails where `n` is 0.
FAILING = "6 / n"


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> SqlLake:
    """Make a table with the rows 0 to 4."""
    made = SqlLake(spark, tmp_path)
    made("CREATE TABLE t (id BIGINT NOT NULL, n BIGINT)")
    made("ALTER TABLE t SET IDENTIFIER FIELDS id")
    made("INSERT INTO t SELECT id, id FROM range(0, 5, 1, 1)")
    return made


def _change(sql: SqlLake) -> None:
    sql(f"UPDATE t SET n = 60 WHERE {FAILING} = 6")
    sql(f"DELETE FROM t WHERE {FAILING} = 3")
    sql(
        f"MERGE INTO t USING (SELECT 3L AS id) AS s ON t.id = s.id AND {FAILING} = 2 "
        "WHEN MATCHED THEN UPDATE SET n = 30"
    )
    assert sql("SELECT * FROM t") == [(1, 60), (3, 30), (4, 4)]


@pytest.mark.usefixtures("lazily")
def test_where_marks_are_joined(sql: SqlLake, spark: SparkSession) -> None:
    sql("DELETE FROM t WHERE n = 0")
    with setting(spark, "spark.sql.codegen.maxFields", "13"):
        assert sql(f"SELECT id FROM t WHERE {FAILING} > 2") == [(1,), (2,)]
        rows = sql.lake.read("db.t").where(f"{FAILING} > 2")
        assert rows.where("id > 1").select("id").collect() == [(2,)]
        _change(sql)


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_where_keys_of_rows_to_change_are_deleted(sql: SqlLake, mode: str) -> None:
    for verb in ("update", "delete", "merge"):
        sql(f"ALTER TABLE t SET TBLPROPERTIES ('write.{verb}.mode' = '{mode}')")
    delete_equal(sql.lake.table("db.t"), [0])
    _change(sql)
