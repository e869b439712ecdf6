"""Temporary views over tables follow them; what is cached stays as it is until it is refreshed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icetree
from icetree.errors import (
    CommitUnknown,
    CorruptTable,
    InvalidInput,
    NotFound,
    TooLarge,
)
from icetree.spark.sql.views.temporary import TemporaryView
from icetree.table.lake import Lake
from tests.spark.busy_lake import BusyLake
from tests.spark.sql_lake import SqlLake


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> Iterator[SqlLake]:
    """A table of two rows, and no view or cache left behind."""
    made = SqlLake(spark, tmp_path)
    made("CREATE TABLE t (id INT, s STRING)")
    made("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    yield made
    made("CLEAR CACHE")
    for table in spark.catalog.listTables():
        spark.catalog.dropTempView(table.name)


def append_elsewhere(sql: SqlLake, *ids: int) -> None:
    """Commit rows as another process would: the lake is not told."""
    rows = pa.table({"id": pa.array(ids, pa.int32())})
    with elsewhere(sql) as lake:
        lake.table("db.t").append(rows)


def elsewhere(sql: SqlLake) -> Lake:
    """Return the lake as another process has it."""
    return icetree.connect(sql.lake.kept.address, properties=sql.lake.kept.properties)


# --- views -------------------------------------------------------------------------------------


def test_a_view_follows_the_snapshots_of_its_table(sql: SqlLake) -> None:
    sql("CREATE TEMPORARY VIEW v AS SELECT id FROM t WHERE id > 1")
    append_elsewhere(sql, 3)
    assert sql("SELECT * FROM v") == [(2,), (3,)]
    sql("DELETE FROM t WHERE id = 2")
    assert sql("SELECT a.id FROM v a JOIN t ON a.id = t.id") == [(3,)]


def test_a_view_follows_the_schema_of_its_table(sql: SqlLake) -> None:
    sql("CREATE TEMP VIEW everything AS SELECT * FROM t")
    sql("CREATE TEMP VIEW named (number, word) AS SELECT id, s FROM t")
    sql("ALTER TABLE t ADD COLUMN extra INT DEFAULT 7")
    assert sql("SELECT * FROM everything") == [(1, "a", 7), (2, "b", 7)]
    assert sql("SELECT * FROM named") == [(1, "a"), (2, "b")]
    sql("ALTER TABLE t ALTER COLUMN id TYPE BIGINT")
    sql("INSERT INTO t (id) VALUES (3000000000)")
    assert sql("SELECT number FROM named WHERE number > 2") == [(3000000000,)]
    sql("ALTER TABLE t RENAME COLUMN extra TO more")
    assert sql.lake.sql("SELECT * FROM everything").columns == ["id", "s", "more"]
    assert ("more", "int", None) in sql("DESCRIBE everything")
    sql("ALTER TABLE t DROP COLUMN s")
    assert sql.lake.sql("SELECT * FROM everything").columns == ["id", "more"]
    with pytest.raises(InvalidInput, match=r"view named does not fit its tables any more: .*`s`"):
        sql("SELECT * FROM named")
    sql("ALTER TABLE t ADD COLUMN s STRING")
    assert sql("SELECT * FROM named WHERE number = 1") == [(1, None)]


def test_a_view_whose_columns_have_names_refuses_more_of_them(sql: SqlLake) -> None:
    sql("CREATE TEMP VIEW v (number, word) AS SELECT * FROM t")
    sql("ALTER TABLE t ADD COLUMN extra INT")
    with pytest.raises(InvalidInput, match=r"view v .*names 2 columns, but its query finds 3"):
        sql("SELECT * FROM v")


@pytest.mark.parametrize("kind", [CorruptTable, TooLarge])
def test_what_is_damaged_below_a_view_is_told_as_it_is(
    sql: SqlLake, monkeypatch: pytest.MonkeyPatch, kind: type[CorruptTable]
) -> None:
    def broken(*_: object) -> None:
        raise kind("a.parquet", "it ends too early")

    sql("CREATE TEMP VIEW v AS SELECT * FROM t")
    monkeypatch.setattr(TemporaryView, "named", broken)
    with pytest.raises(kind, match=r"^a\.parquet: it ends too early$"):
        sql("SELECT * FROM v")


def test_a_view_finds_a_table_that_was_dropped_and_made_again(sql: SqlLake) -> None:
    sql("CREATE TEMP VIEW v AS SELECT * FROM t")
    sql("DROP TABLE t")
    with pytest.raises(NotFound, match=r"view v .*`db`.`t` cannot be found"):
        sql("SELECT * FROM v")
    sql("CREATE TABLE t AS SELECT 9 AS n")
    assert sql("SELECT * FROM v") == [(9,)]


def test_a_cache_does_not_outlive_its_table(sql: SqlLake) -> None:
    sql("CACHE TABLE t")
    assert sql("SELECT id FROM t") == [(1,), (2,)]
    with elsewhere(sql) as lake:
        lake.drop_table("db.t")
        lake.create_table("db.t", [("id", "int")]).append(
            pa.table({"id": pa.array([9], pa.int32())})
        )
    assert sql("SELECT id FROM t") == [(9,)]
    append_elsewhere(sql, 10)
    assert sql("SELECT id FROM t") == [(9,)], "the new one is kept as the old one was"


def test_what_has_no_rows_asks_no_worker_of_python(sql: SqlLake) -> None:
    lake = sql.lake
    now = lake.table("db.t").metadata.current_snapshot_id
    sql("CREATE TABLE none (id INT NOT NULL, st STRUCT<a: INT NOT NULL>, m MAP<STRING, DATE>)")
    frames = [
        lake.read("db.none"),
        lake.changes("db.t", since=now),
        lake.read("db.none.files"),
        lake.read("db.none.position_deletes"),
        lake.sql("SHOW TABLES IN db LIKE 'nothing'"),
    ]
    sql("CREATE OR REPLACE TABLE none (id INT NOT NULL)")
    for frame in frames:
        plan = frame._jdf.queryExecution().executedPlan().toString()
        assert "ExistingRDD" not in plan
        assert "Python" not in plan
        assert frame.collect() == []


def test_a_view_means_the_tables_of_its_making_whatever_is_called_so_later(sql: SqlLake) -> None:
    sql("CREATE TEMP VIEW v AS SELECT t.id FROM t")
    sql("CREATE NAMESPACE other")
    sql("USE other")
    sql("CREATE TABLE other.t AS SELECT 77 AS id")
    sql.lake.spark.createDataFrame([(88,)], "id int").createOrReplaceTempView("t")
    assert sql("WITH t AS (SELECT 99 AS id) SELECT v.id FROM v, t") == [(1,), (2,)]


def test_a_view_may_be_of_views_but_not_of_itself(sql: SqlLake) -> None:
    sql.lake.spark.createDataFrame([(2,), (3,)], "id int").createOrReplaceTempView("wanted")
    sql("CREATE TEMP VIEW inner_view AS SELECT id FROM t JOIN wanted USING (id)")
    sql("CREATE TEMP VIEW v AS WITH x AS (SELECT * FROM inner_view) SELECT id + 1 AS n FROM x")
    append_elsewhere(sql, 3)
    assert sql("WITH wanted AS (SELECT 1 AS id) SELECT n FROM v, wanted") == [(3,), (4,)]
    for text in (
        "CREATE OR REPLACE TEMP VIEW v AS SELECT t.id FROM t, v",
        "CREATE OR REPLACE TEMP VIEW inner_view AS SELECT n FROM v",
        "ALTER VIEW wanted AS SELECT id FROM inner_view",
    ):
        with pytest.raises(InvalidInput, match="would read itself"):
            sql(text)
    assert sql("SELECT n FROM v") == [(3,), (4,)]


def test_files_that_a_query_on_a_view_cannot_use_are_not_read(sql: SqlLake) -> None:
    append_elsewhere(sql, 10)
    sql("CREATE TEMP VIEW v AS SELECT id AS n FROM t WHERE id > 0")
    assert sql.files("SELECT n FROM v WHERE n > 5") == 1
    assert sql.files("SELECT n FROM v") > 1


def test_spark_itself_reads_a_view_as_of_its_making_or_the_last_refresh(sql: SqlLake) -> None:
    sql("CREATE TEMP VIEW v AS SELECT * FROM t")
    append_elsewhere(sql, 3)
    assert sql.lake.spark.table("v").count() == 2
    sql("REFRESH TABLE v")
    assert sql.lake.spark.table("v").count() == 3


def test_what_spark_does_to_a_view_counts(sql: SqlLake) -> None:
    sql("CREATE TEMP VIEW v AS SELECT * FROM t")
    sql("CREATE GLOBAL TEMPORARY VIEW everywhere AS SELECT id FROM t")
    append_elsewhere(sql, 3)
    assert sql("SELECT count(*) FROM global_temp.everywhere") == [(3,)]
    sql.lake.spark.sql("DROP VIEW global_temp.everywhere")
    sql("ALTER VIEW v RENAME TO w")
    assert sql("SELECT count(*) FROM w") == [(3,)]
    sql("ALTER VIEW w AS SELECT id FROM t WHERE id = 1")
    assert sql("SELECT * FROM w") == [(1,)]
    sql.lake.spark.range(5).createOrReplaceTempView("w")
    assert sql("SELECT count(*) FROM w") == [(5,)]
    sql("DROP VIEW w")
    with pytest.raises(NotFound, match="`w` cannot be found"):
        sql("SELECT * FROM w")


def test_a_table_and_views_of_it_are_of_one_version(spark: SparkSession, tmp_path: Path) -> None:
    lake = BusyLake(spark, tmp_path)
    lake.sql("CREATE TABLE busy (id BIGINT)")
    lake.sql("CREATE OR REPLACE TEMP VIEW v AS SELECT id AS n FROM busy")
    lake.sql("CREATE OR REPLACE TEMP VIEW w AS SELECT n FROM v")
    lake.catalog.looks = 100
    text = "SELECT (SELECT count(*) FROM w), (SELECT count(*) FROM v), count(*) FROM busy"
    [row] = lake.sql(text).collect()
    assert row[0] == row[1] == row[2]


# --- caches ------------------------------------------------------------------------------------


def test_a_cached_table_stays_as_it_is_until_it_is_refreshed(sql: SqlLake) -> None:
    sql("CACHE TABLE t")
    append_elsewhere(sql, 3)
    assert sql("SELECT count(*) FROM t") == [(2,)]
    assert sql("SELECT count(*), max(_pos) >= 0 FROM db.t") == [(2, True)]
    assert "InMemoryTableScan" in sql("EXPLAIN SELECT id FROM t WHERE id = 1")[0][0]
    # What is asked for by name is not the cached one.
    assert sql("SELECT count(*) FROM t VERSION AS OF 'main'") == [(3,)]
    assert sql.lake.read("db.t").count() == 3
    sql("REFRESH TABLE t")
    assert sql("SELECT count(*) FROM t") == [(3,)]
    append_elsewhere(sql, 4)
    assert sql("SELECT count(*) FROM t") == [(3,)]
    sql("UNCACHE TABLE t")
    assert sql("SELECT count(*) FROM t") == [(4,)]


def test_a_cached_table_keeps_its_schema_too(sql: SqlLake) -> None:
    sql("CACHE LAZY TABLE t OPTIONS ('storageLevel' 'DISK_ONLY')")
    with elsewhere(sql) as lake, lake.table("db.t").edit_schema() as schema:
        schema.rename("s", "word")
    append_elsewhere(sql, 3)
    assert sql("SELECT s FROM t") == [("a",), ("b",)]
    sql("REFRESH TABLE db.t")
    assert sql("SELECT word FROM t") == [("a",), ("b",), (None,)]


def test_statements_that_change_rows_read_tables_and_refresh_what_is_cached(sql: SqlLake) -> None:
    sql("CREATE TABLE copy (id INT)")
    sql("CACHE TABLE t")
    sql("CACHE TABLE few AS SELECT id FROM t WHERE id < 3")
    append_elsewhere(sql, 0)
    sql("INSERT INTO copy SELECT id FROM t")
    assert sql("SELECT * FROM copy") == [(0,), (1,), (2,)]
    assert sql("SELECT id FROM few") == [(1,), (2,)]
    sql("DELETE FROM t WHERE id = 1")
    assert sql("SELECT id FROM t") == [(0,), (2,)]
    assert sql("SELECT id FROM few") == [(0,), (2,)]
    sql("ALTER TABLE t RENAME COLUMN s TO word")
    assert sql.lake.sql("SELECT * FROM t").columns == ["id", "word"]
    sql("DROP TABLE t")
    with pytest.raises(NotFound):
        sql("SELECT * FROM t")
    sql("CREATE TABLE t AS SELECT 5 AS id")
    assert sql("SELECT id FROM t") == [(5,)]


def test_what_a_handle_of_the_lake_commits_outdates_what_is_cached(sql: SqlLake) -> None:
    sql("CACHE TABLE t")
    sql("CACHE TABLE few AS SELECT id FROM t WHERE id < 4")
    table = sql.lake.table("db.t")
    before = table.metadata.current_snapshot_id
    assert before is not None
    table.append(pa.table({"id": pa.array([3], pa.int32())}))
    assert sql("SELECT id FROM t") == sql("SELECT id FROM few") == [(1,), (2,), (3,)]
    table.rollback(before)
    assert sql("SELECT id FROM t") == sql("SELECT id FROM few") == [(1,), (2,)]
    with table.edit_schema() as schema:
        schema.rename("s", "word")
    assert sql.lake.sql("SELECT * FROM t").columns == ["id", "word"]


def test_a_commit_of_unknown_outcome_outdates_what_is_cached(
    sql: SqlLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> None:
        raise CommitUnknown("no answer")

    sql("CACHE TABLE t")
    append_elsewhere(sql, 3)
    monkeypatch.setattr("icetree.table.transaction.commit", lost)
    with pytest.raises(CommitUnknown):
        sql.lake.table("db.t").truncate()
    assert sql("SELECT count(*) FROM t") == [(3,)]


def test_nothing_cached_is_left_of_a_table_that_went_with_its_namespace(sql: SqlLake) -> None:
    sql("CREATE NAMESPACE other")
    sql("CREATE TABLE other.t AS SELECT 7 AS id")
    sql("CACHE TABLE other.t")
    sql("CACHE TABLE few AS SELECT id FROM other.t")
    sql("DROP NAMESPACE other CASCADE")
    sql("CREATE NAMESPACE other")
    sql("CREATE TABLE other.t (id INT)")
    assert sql("SELECT * FROM other.t") == sql("SELECT * FROM few") == []


def test_a_cached_view_stays_and_follows_again_once_it_is_not_cached(sql: SqlLake) -> None:
    sql("CREATE TEMP VIEW v AS SELECT id FROM t")
    sql("CACHE TABLE v")
    append_elsewhere(sql, 3)
    assert sql("SELECT * FROM v") == [(1,), (2,)]
    assert sql("SELECT id FROM t") == [(1,), (2,), (3,)]
    sql("REFRESH TABLE t")
    assert sql("SELECT * FROM v") == [(1,), (2,), (3,)]
    append_elsewhere(sql, 4)
    sql("UNCACHE TABLE IF EXISTS v")
    assert sql("SELECT count(*) FROM v") == [(4,)]
    sql("CACHE TABLE v")
    sql("CLEAR CACHE")
    append_elsewhere(sql, 5)
    assert sql("SELECT count(*) FROM v") == [(5,)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("CACHE TABLE t.snapshots", "CACHE TABLE x AS SELECT"),
        ("CACHE TABLE t.branch_main", "CACHE TABLE x AS SELECT"),
        ("CACHE TABLE t OPTIONS ('storageLevel' 'NOWHERE')", "MEMORY_AND_DISK"),
    ],
)
def test_what_cannot_be_cached_is_refused(sql: SqlLake, text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        sql(text)
    append_elsewhere(sql, 3)
    assert sql("SELECT count(*) FROM t") == [(3,)]
