"""Write, audit, publish: what a session writes goes where it says, for tables that allow it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icetree.errors import InvalidInput
from tests.spark.sql_lake import SqlLake


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> Iterator[SqlLake]:
    """A table of one row that can be audited, and one that cannot."""
    made = SqlLake(spark, tmp_path)
    made("CREATE TABLE t (id INT) TBLPROPERTIES ('write.wap.enabled' = 'true')")
    made("CREATE TABLE plain (id INT)")
    made("INSERT INTO t VALUES (1)")
    yield made
    spark.conf.unset("spark.wap.branch")
    spark.conf.unset("spark.wap.id")


def on_main(sql: SqlLake) -> list[tuple[object, ...]]:
    return sql("SELECT id FROM t VERSION AS OF 'main'")


def test_a_session_writes_to_its_branch_and_reads_it_once_it_is_there(sql: SqlLake) -> None:
    sql.lake.spark.conf.set("spark.wap.branch", "audit")
    assert sql("SELECT id FROM t") == [(1,)]
    sql("INSERT INTO t VALUES (2), (3)")
    assert sql("SELECT id FROM t") == [(1,), (2,), (3,)]
    assert sql.lake.read("db.t").count() == 3
    sql("DELETE FROM t WHERE id = 1")
    sql("UPDATE t SET id = 4 WHERE id = 3")
    sql("MERGE INTO t USING (SELECT 2 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    sql("INSERT OVERWRITE t SELECT id + 10 FROM t")
    assert sql("SELECT id FROM t") == [(14,)]
    assert on_main(sql) == [(1,)]
    sql("INSERT INTO plain VALUES (5)")
    assert set(sql.lake.table("db.plain").refs) == {"main"}
    sql.lake.table("db.t").fast_forward("main", "audit")
    sql.lake.spark.conf.unset("spark.wap.branch")
    assert sql("SELECT id FROM t") == [(14,)]


def test_rows_in_arrow_and_verbs_of_a_handle_go_where_the_session_says(sql: SqlLake) -> None:
    sql.lake.spark.conf.set("spark.wap.branch", "audit")
    sql.lake.upsert("db.t", pa.table({"id": pa.array([1, 3], pa.int32())}), ["id"])
    sql.lake.append("db.t", pa.table({"id": pa.array([2], pa.int32())}))
    assert sql("SELECT id FROM t") == [(1,), (2,), (3,)]
    table = sql.lake.table("db.t")
    done = table.append(pa.table({"id": pa.array([4, 5, 6], pa.int32())}))
    assert done.rows.inserted == 3
    table.delete("id = 2")
    table.update({"id": "id + 10"}, "id = 3")
    table.merge(pa.table({"id": pa.array([4], pa.int32())}), ["id"]).when_matched_delete().run()
    table.overwrite("id = 5", pa.table({"id": pa.array([5], pa.int32())}))
    assert sql("SELECT id FROM t") == [(1,), (13,), (5,), (6,)]
    assert on_main(sql) == [(1,)]
    with pytest.raises(InvalidInput, match=r"for branch 'main'.*spark.wap.branch=audit"):
        table.append(pa.table({"id": pa.array([7], pa.int32())}), branch="main")
    with table.transaction() as own:
        own.append(pa.table({"id": pa.array([8], pa.int32())}))
    assert on_main(sql) == [(1,), (8,)]
    sql.lake.table("db.plain").append(pa.table({"id": pa.array([9], pa.int32())}))
    assert sql("SELECT id FROM plain") == [(9,)]


def test_what_a_handle_writes_is_staged_where_the_session_says(sql: SqlLake) -> None:
    sql.lake.spark.conf.set("spark.wap.id", "job-8")
    table = sql.lake.table("db.t")
    table.append(pa.table({"id": pa.array([2], pa.int32())}))
    assert on_main(sql) == [(1,)]
    sql.lake.spark.conf.unset("spark.wap.id")
    table.append(pa.table({"id": pa.array([3], pa.int32())}))
    assert on_main(sql) == [(1,), (3,)]
    table.publish("job-8")
    assert on_main(sql) == [(1,), (2,), (3,)]


def test_a_table_may_start_on_a_branch(sql: SqlLake) -> None:
    sql.lake.spark.conf.set("spark.wap.branch", "audit")
    sql("CREATE TABLE new TBLPROPERTIES ('write.wap.enabled' = 'true') AS SELECT 1 AS id")
    assert sql("SELECT id FROM new") == [(1,)]
    sql.lake.spark.conf.unset("spark.wap.branch")
    assert sql("SELECT id FROM new") == []
    assert sql("SELECT id FROM new.branch_audit") == [(1,)]


def test_a_session_stages_what_somebody_publishes_later(sql: SqlLake) -> None:
    sql.lake.spark.conf.set("spark.wap.id", "job-7")
    rows = sql.lake.spark.createDataFrame([(2,)], "id int")
    sql.lake.write("db.t", rows).append()
    assert sql("SELECT id FROM t") == [(1,)]
    assert sql("SELECT summary['wap.id'] FROM t.snapshots") == [("job-7",), (None,)]
    sql.lake.spark.conf.unset("spark.wap.id")
    sql("INSERT INTO t VALUES (3)")
    sql.lake.table("db.t").publish("job-7")
    assert sql("SELECT id FROM t") == [(1,), (2,), (3,)]


def test_of_two_that_were_staged_under_one_id_none_is_published_unasked(sql: SqlLake) -> None:
    sql.lake.spark.conf.set("spark.wap.id", "job-7")
    sql("INSERT INTO t VALUES (2)")
    sql("DELETE FROM t")
    with pytest.raises(InvalidInput, match="2 snapshots were staged under the id 'job-7'"):
        sql.lake.table("db.t").publish("job-7")
    assert on_main(sql) == [(1,)]


def test_a_session_that_says_two_things_is_refused(sql: SqlLake) -> None:
    sql.lake.spark.conf.set("spark.wap.branch", "audit")
    sql("INSERT INTO t VALUES (2)")
    for text, told in (
        ("INSERT INTO t.branch_main VALUES (4)", "for branch 'main'.*spark.wap.branch=audit"),
        ("CREATE OR REPLACE TABLE t AS SELECT 4 AS id", "unset spark.wap.branch"),
    ):
        with pytest.raises(InvalidInput, match=told):
            sql(text)
    sql.lake.spark.conf.set("spark.wap.id", "job-7")
    with pytest.raises(InvalidInput, match=r"spark.wap.branch=audit and spark.wap.id=job-7"):
        sql("INSERT INTO t VALUES (4)")
    sql("INSERT INTO plain VALUES (4)")
    assert on_main(sql) == [(1,)]
    assert sql("SELECT id FROM plain") == [(4,)]
