"""Counts, least and greatest values that metadata tells exactly are read from there, and only those."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from icetree.spark.sql.statement import run_sql
from tests.rows.lake import foreign_delete
from tests.spark.sql_lake import SqlLake

TABLES = ("t", "marked", "keyed", "daily")


@pytest.fixture(scope="module")
def sql(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SqlLake:
    """Hold a table that nothing is deleted from, one with a DV, and one with an equality delete."""
    made = SqlLake(spark, tmp_path_factory.mktemp("told"))
    made(
        "CREATE TABLE t (id BIGINT, d DATE, at TIMESTAMP, m DECIMAL(9, 2), x DOUBLE, s STRING, "
        "n TIMESTAMP_NTZ, b BOOLEAN, w STRING)"
    )
    made(
        "INSERT INTO t SELECT id, DATE'2024-02-29', now(), id / 3, id, 'it''s \\\\ ü' || id, "
        "TIMESTAMP_NTZ'1969-12-31 23:59:59.000001' + make_dt_interval(id * 100), id > 2, "
        "repeat('long', 9) || id FROM range(1, 9, 1, 2)"
    )
    made("INSERT INTO t (id) VALUES (NULL)")
    made("CREATE TABLE daily (day INT, k STRING, id INT, x DOUBLE) PARTITIONED BY (day, k)")
    made(
        "INSERT INTO daily SELECT nullif(id % 4, 3), 'k' || id % 2, id, id FROM range(0, 40, 1, 1)"
    )
    made("DELETE FROM daily WHERE day = 1 AND id = 9")
    made("ALTER TABLE daily ALTER COLUMN id TYPE BIGINT")
    made("INSERT INTO daily VALUES (7, 'k7', 7000000000, DOUBLE('NaN')), (7, 'k7', 4, -0.0D)")
    made("CREATE TABLE marked AS SELECT id FROM range(0, 9, 1, 1)")
    made("DELETE FROM marked WHERE id IN (0, 8)")
    made("CREATE TABLE keyed AS SELECT id FROM range(0, 9, 1, 1)")
    table = made.lake.table("db.keyed")
    with table.transaction() as tx:
        tx.apply(foreign_delete(table, pa.table({"id": [0]})))
    for name in TABLES:
        made.lake.read(f"db.{name}").createOrReplaceTempView(f"rows_of_{name}")
    return made


def is_told(rows: DataFrame) -> bool:
    plan = rows._jdf.queryExecution()
    told = "metadata of db." in plan.analyzed().toString()
    assert not told or "FileScan" not in plan.executedPlan().toString()
    return told


@pytest.mark.parametrize("words", ["EXPLAIN", "EXPLAIN FORMATTED", "explain  extended"])
def test_a_query_that_is_explained_is_told_where_it_would_be(sql: SqlLake, words: str) -> None:
    [[plan]] = sql.lake.sql(f"{words} SELECT count(*) AS many, min(id) FROM t").collect()
    assert "many" in plan
    assert not re.search("FileScan|Scan parquet", plan)
    [[plan]] = sql.lake.sql(f"{words} SELECT count(*) AS many FROM t WHERE x > 3").collect()
    assert re.search("FileScan|Scan parquet", plan)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SELECT count(*) FROM {t}", True),
        ("SELECT count(1) AS n, max(id) AS most, min(id) FROM {t} AS a", True),
        ("SELECT min(d), max(D), min(at), max(at), min(m), max(m) FROM {t}", True),
        ("SELECT count(*) FROM {marked}", True),
        ("SELECT max(id) FROM {marked}", False),
        ("SELECT count(*) FROM {keyed}", False),
        ("SELECT min(id) FROM {keyed}", False),
        ("SELECT max(x) FROM {t}", False),
        ("SELECT min(s), max(s), min(n), max(n), min(b), max(b) FROM {t}", True),
        # Bounds of long texts are cut.
        ("SELECT max(w) FROM {t}", False),
        ("SELECT count(*) FROM {daily} WHERE day = 0", True),
        ("SELECT count(*), count(1) FROM {daily} AS a WHERE a.day = 1 AND k = 'k1'", True),
        ("SELECT count(*) FROM {daily} WHERE day IS NULL", True),
        ("SELECT count(*) FROM {daily} WHERE day IS NOT NULL AND day <= 2", True),
        ("SELECT count(*) FROM {daily} WHERE DAY IN (0, 7)", True),
        ("SELECT count(*) FROM {daily} WHERE day = '2' OR k = 'k1'", True),
        ("SELECT count(*) FROM {daily} WHERE day > 70", True),
        ("SELECT min(id), max(id), max(k) FROM {daily} WHERE day = 7", True),
        ("SELECT count(*), max(id) FROM {daily} WHERE day = 2 AND id < 50", True),
        ("SELECT count(*) FROM {daily} WHERE day = 2 AND id < 5", False),
        ("SELECT max(id) FROM {daily} WHERE day = 1", False),
        ("SELECT max(id) FROM {daily} WHERE day <= 2", False),
        ("SELECT count(*) FROM {daily} WHERE day <> 7", False),
        ("SELECT count(*) FROM {daily} WHERE day % 2 = 0", False),
        ("SELECT count(*) FROM {daily} WHERE day = 7 AND x = 0.0D", False),
        ("SELECT count(*) FROM {daily} WHERE day = 7 AND x > 1D", False),
        ("SELECT count(*) FROM {daily} WHERE x < 1e9D", False),
        ("SELECT count(*) FROM {daily} WHERE day = 0 AND spark_partition_id() >= 0", False),
        ("SELECT count(*) FROM {daily} WHERE day = CAST(date_part('YEAR', now()) AS INT)", False),
        ("SELECT count(*) FROM {daily} WHERE day = (SELECT max(day) FROM {t} JOIN {daily})", False),
        ("SELECT count(*) FROM {daily} WHERE false", False),
        ("SELECT count(*) FROM {daily} WHERE day = 0 GROUP BY day", False),
        ("SELECT count(id) FROM {t}", False),
        ("SELECT count(DISTINCT id) FROM {t}", False),
        ("SELECT count(*) FILTER (WHERE id > 3) FROM {t}", False),
        ("SELECT count(*) FROM {t} WHERE id > 3", False),
        ("SELECT count(*) FROM {t} HAVING count(*) > 100", False),
        ("SELECT count(*) FROM {t} LIMIT 0", False),
        ("SELECT id, count(*) OVER () FROM {t}", False),
        ("SELECT max(id) + 1 FROM {t}", False),
        ("SELECT count(*) FROM {t} CROSS JOIN {marked}", False),
        ("SELECT count(*) FROM (SELECT * FROM {t} LIMIT 2)", False),
    ],
)
def test_metadata_answers_what_rows_would(sql: SqlLake, text: str, told: bool) -> None:
    query = text.format(**{name: f"db.{name}" for name in TABLES})
    found = run_sql(sql.lake, query)
    assert is_told(found) == told
    wanted = sql.lake.spark.sql(text.format(**{name: f"rows_of_{name}" for name in TABLES}))
    assert sorted(found.collect(), key=repr) == sorted(wanted.collect(), key=repr)
    assert found.columns == wanted.columns
    assert [field.dataType for field in found.schema] == [field.dataType for field in wanted.schema]


def test_it_is_of_the_version_asked_for(sql: SqlLake) -> None:
    [first, *_] = sql("SELECT snapshot_id FROM t.snapshots ORDER BY committed_at")
    text = f"SELECT count(*) FROM t VERSION AS OF {first[0]}"
    assert sql(text) == [(8,)]
    assert is_told(run_sql(sql.lake, text))


def test_an_empty_table_has_no_least_value(spark: SparkSession, tmp_path: Path) -> None:
    sql = SqlLake(spark, tmp_path)
    sql("CREATE TABLE none (id INT)")
    assert sql("SELECT count(*), min(id), max(id) FROM none") == [(0, None, None)]
    sql("INSERT INTO none VALUES (5)")
    sql("ALTER TABLE none ADD COLUMN k INT")
    sql("INSERT INTO none VALUES (7, 1)")
    # Files from before the column tell nothing of it.
    assert sql("SELECT min(k), max(id) FROM none") == [(1, 7)]
