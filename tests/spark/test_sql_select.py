"""Queries over tables of the lake, beside Spark's own views."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession

from icetree.errors import InvalidInput, NotFound, Unsupported
from icetree.spark.sql.statement import run_sql
from tests.spark.reading import reading
from tests.spark.sql_lake import SqlLake


@pytest.fixture(scope="module")
def sql(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SqlLake:
    """A table of twenty rows, five in each of the partitions 0 to 3, the last written later."""
    folder: Path = tmp_path_factory.mktemp("lake")
    made = SqlLake(spark, folder)
    made("CREATE TABLE t (id BIGINT, s STRING, x DOUBLE, p INT) PARTITIONED BY (p)")
    made("INSERT INTO t SELECT id, 's' || id, id, id % 4 FROM range(20) WHERE id % 4 < 3")
    made("ALTER TABLE t CREATE TAG early")
    made("INSERT INTO t SELECT id, 's' || id, double('NaN'), 3 FROM range(20) WHERE id % 4 = 3")
    made("CREATE TABLE few AS SELECT id, 'few' AS word FROM range(3)")
    return made


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT count(*) FROM t", [(20,)]),
        ("SELECT t.id FROM db.t WHERE db.t.id = 4", [(4,)]),
        ("SELECT db.t.id FROM t WHERE id = 4", [(4,)]),
        ("SELECT x.id FROM t AS x JOIN few USING (id) WHERE x.p = 1", [(1,)]),
        ("SELECT a.id FROM t a, t b WHERE a.id = b.id + 18", [(18,), (19,)]),
        ("WITH t AS (SELECT id FROM t WHERE id < 2) SELECT * FROM t", [(0,), (1,)]),
        ("WITH a AS (SELECT 7 AS id), b AS (SELECT * FROM a) SELECT * FROM b", [(7,)]),
        (
            "SELECT id FROM t WHERE id IN (SELECT id FROM few WHERE word = 'few')",
            [(0,), (1,), (2,)],
        ),
        ("SELECT (SELECT max(id) FROM t WHERE p = 2)", [(18,)]),
        ("SELECT id FROM t WHERE id = 1 UNION ALL SELECT id FROM few WHERE id = 2", [(1,), (2,)]),
        ("SELECT id FROM t TABLESAMPLE (100 PERCENT) WHERE t.id = 1", [(1,)]),
        ("SELECT /* é \U0001f600 */ '\U0001f600', t.id FROM t WHERE id = 1", [("\U0001f600", 1)]),
        ("SELECT `t`.`id` FROM `db`.`t` WHERE `id` = 3 -- from db.few", [(3,)]),
        ("FROM t SELECT id WHERE id = 1", [(1,)]),
        ("SELECT id FROM t WHERE x > 1000 AND id < 5", [(3,)]),
        ("SELECT count(*) FROM t VERSION AS OF 'early'", [(15,)]),
        ("SELECT count(*) FROM db.t.tag_early AS e", [(15,)]),
        ("SELECT count(*) FROM t.branch_main", [(20,)]),
        ("SELECT count(*) FROM t TIMESTAMP AS OF now()", [(20,)]),
        ("SELECT count(*) FROM t FOR SYSTEM_TIME AS OF '2100-01-01' y WHERE y.p = 1", [(5,)]),
        ("SELECT operation FROM t.snapshots", [("append",), ("append",)]),
        ("SELECT sum(record_count) FROM db.t.files", [(20,)]),
        ("SELECT sum(record_count) FROM db.t.files VERSION AS OF 'early'", [(15,)]),
        ("SELECT sum(record_count) FROM db.t.files TIMESTAMP AS OF now()", [(20,)]),
        ("SELECT * FROM (SELECT 1) JOIN (SELECT 2)", [(1, 2)]),
        ("TABLE few", [(0, "few"), (1, "few"), (2, "few")]),
    ],
)
def test_queries_find_their_rows(sql: SqlLake, text: str, rows: list[tuple[object, ...]]) -> None:
    assert sql(text) == rows


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("SELECT id FROM t", 4),
        ("SELECT id FROM t WHERE p = 3", 1),
        ("SELECT id FROM t WHERE x > 1000", 1),
        ("SELECT id FROM t WHERE p = 1 AND 1 = 0", 0),
        ("SELECT a.id FROM t a JOIN t b ON a.id = b.id WHERE a.p = 1 AND b.p = 1", 1),
        ("SELECT id FROM t WHERE p = 1 UNION SELECT id FROM t WHERE p = 2", 2),
        ("WITH c AS (SELECT * FROM t) SELECT * FROM c WHERE p = 1", 1),
        ("WITH c AS (SELECT * FROM t WHERE p < 2) SELECT c.id FROM c JOIN c d USING (id)", 2),
        ("SELECT p, count(*) FROM t GROUP BY p HAVING p = 1", 1),
        ("SELECT id FROM t WHERE s LIKE 's1%' AND p > 1", 2),
        ("SELECT id FROM t WHERE date'2024-01-01' < current_date() AND p = 1", 1),
        ("SELECT id FROM t WHERE p = 1 OR length(s) = 2", 4),
    ],
)
def test_files_that_cannot_match_are_not_read(sql: SqlLake, text: str, files: int) -> None:
    assert sql.files(text) == files


@pytest.mark.parametrize(("lazily", "files"), [(True, 0), (False, 1)])
def test_what_the_clock_decides_prunes_by_the_time_at_which_rows_are_tested(
    sql: SqlLake, lazily: bool, files: int
) -> None:
    sql("CREATE TABLE IF NOT EXISTS times (at TIMESTAMP)")
    sql("INSERT OVERWRITE times VALUES (now() - INTERVAL 5 DAYS)")
    with reading(sql.lake.spark, lazily=lazily):
        assert sql.files("SELECT * FROM times WHERE at > now() - INTERVAL 1 DAY") == 0
        # Planned before the query runs, it may come to be old enough until then.
        assert sql.files("SELECT * FROM times WHERE at < now() - INTERVAL 9 DAYS") == files


def test_metadata_columns_are_there_when_named_but_not_for_a_star(sql: SqlLake) -> None:
    frame = run_sql(sql.lake, "SELECT *, _pos FROM t WHERE _row_id >= 0 AND id = 0")
    assert frame.columns == ["id", "s", "x", "p", "_pos"]
    assert sql("SELECT DISTINCT _file LIKE '%.parquet' FROM t") == [(True,)]
    assert run_sql(sql.lake, "SELECT * FROM t").columns == ["id", "s", "x", "p"]


def test_views_of_spark_stand_beside_tables_and_hide_those_of_their_name(sql: SqlLake) -> None:
    sql.lake.spark.createDataFrame([(1,), (5,)], "id long").createOrReplaceTempView("some_ids")
    sql.lake.spark.createDataFrame([(77,)], "id long").createOrReplaceTempView("few")
    try:
        assert sql("SELECT t.id FROM t JOIN some_ids USING (id)") == [(1,), (5,)]
        assert sql("SELECT id FROM few") == [(77,)]
        assert sql("SELECT count(*) FROM db.few") == [(3,)]
    finally:
        sql.lake.spark.catalog.dropTempView("few")


def test_a_temporary_view_over_a_table_outlives_the_statement(sql: SqlLake) -> None:
    sql("CREATE OR REPLACE TEMP VIEW threes (number, word) AS SELECT id, s FROM t WHERE p = 3")
    assert sql("SELECT count(number) FROM threes") == [(5,)]
    sql("CACHE TABLE twos AS SELECT * FROM t WHERE p = 2")
    assert sql("SELECT count(*) FROM twos") == [(5,)]
    sql("UNCACHE TABLE twos")


def test_no_view_is_left_behind(sql: SqlLake) -> None:
    sql("SELECT count(*) FROM t WHERE p = 1")
    with pytest.raises(InvalidInput):
        sql("SELECT nope FROM t WHERE p = 1")
    names = [table.name for table in sql.lake.spark.catalog.listTables()]
    assert not [name for name in names if name.startswith("__icetree")]


def test_explain_tells_of_the_files_that_are_read(sql: SqlLake) -> None:
    [[plan]] = sql("EXPLAIN SELECT id FROM t WHERE p = 3")
    assert "FileScan parquet" in plan
    [[plan]] = sql("EXPLAIN EXTENDED SELECT id FROM t WHERE p = 3 AND 1 = 0")
    assert "Parsed Logical Plan" in plan


def test_what_is_not_about_the_lake_goes_to_spark(sql: SqlLake) -> None:
    assert sql("SET icetree.test = 1") == [("icetree.test", "1")]
    assert sql("SELECT ${icetree.test}, t.id FROM t WHERE id = ${icetree.test}") == [(1, 1)]
    assert sql("SHOW FUNCTIONS LIKE 'abs'") == [("abs",)]
    assert sql("VALUES (1), (2);") == [(1,), (2,)]


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        ("SELECT * FRM t", InvalidInput, r"Syntax error at or near 't'.*line 1, position 13"),
        ("SELECT nope FROM t", InvalidInput, "`nope` cannot be resolved.*`id`"),
        ("SELECT id FROM t a, t b", InvalidInput, "`id` is ambiguous"),
        ("SELECT * FROM db.nope", NotFound, "`db`.`nope` cannot be found"),
        ("SELECT * FROM t.refs VERSION AS OF 'early'", InvalidInput, "the same at any time"),
        ("SELECT * FROM db.t.nope", NotFound, "db.t has no 'nope'.*snapshots"),
        ("SELECT * FROM t VERSION AS OF 17", NotFound, "no snapshot 17"),
        ("SELECT * FROM t.tag_early VERSION AS OF 17", InvalidInput, "names a version already"),
        ("SELECT * FROM t TIMESTAMP AS OF 'x'", InvalidInput, "x"),
        ("", InvalidInput, "empty statement"),
        ("CALL system.expire('t')", NotFound, "no procedure system.expire"),
        ("ANALYZE TABLE t COMPUTE STATISTICS", Unsupported, "ANALYZE TABLE"),
    ],
)
def test_refusals_take_a_line(sql: SqlLake, text: str, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told) as refused:
        sql(text)
    assert "\n" not in str(refused.value)
    assert "__icetree" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM tt",
        "SELECT * FROM db.tt JOIN t USING (id)",
        "SELECT * FROM t WHERE id IN (SELECT id FROM tt)",
        "DESCRIBE tt",
        "INSERT INTO tt VALUES (1)",
        "INSERT INTO t SELECT * FROM tt",
        "DELETE FROM tt WHERE id = 1",
        "DELETE FROM t WHERE id IN (SELECT id FROM tt)",
        "UPDATE db.tt SET id = 1",
        "MERGE INTO tt USING t ON tt.id = t.id WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING tt ON tt.id = t.id WHEN MATCHED THEN DELETE",
        "TRUNCATE TABLE tt",
    ],
)
def test_a_table_that_is_not_there_is_told_with_the_nearest(sql: SqlLake, text: str) -> None:
    with pytest.raises(NotFound, match=r"tt\b.*; did you mean db\.t\?$") as refused:
        sql(text)
    assert "Verify" not in str(refused.value)


def test_what_somebody_keeps_of_a_table_stays_kept(sql: SqlLake) -> None:
    kept = sql.lake.read("db.t").cache()
    try:
        assert kept.count()
        assert sql("SELECT max(id) FROM t WHERE id > 0")
        assert kept.storageLevel.useMemory
    finally:
        kept.unpersist()


def test_what_spark_has_against_a_row_is_raised_as_spark_says_it(sql: SqlLake) -> None:
    rows = run_sql(sql.lake, "SELECT 1 / (id - id) FROM t WHERE id >= 0")
    with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
        rows.collect()
