"""`SET st.a = 1`: a field of a struct is set, whatever the struct was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from icetree.errors import InvalidInput
from tests.spark.sql_lake import SqlLake


@pytest.fixture(params=["merge-on-read", pytest.param("copy-on-write", marks=pytest.mark.long)])
def sql(request: Any, spark: SparkSession, tmp_path: Path) -> SqlLake:
    """Make a table with a whole struct (1), one without an inner struct (2) and none at all (3)."""
    made = SqlLake(spark, tmp_path)
    made(
        "CREATE TABLE t (id INT, st STRUCT<a: INT, b: STRING, c: STRUCT<x: INT, y: INT>>) "
        f"TBLPROPERTIES ('write.update.mode' = '{request.param}', "
        f"'write.merge.mode' = '{request.param}')"
    )
    made(
        "INSERT INTO t VALUES (1, named_struct('a', 1, 'b', 'b', 'c', named_struct('x', 1, 'y', 2))), "
        "(2, named_struct('a', 2, 'b', 'b', 'c', NULL)), (3, NULL)"
    )
    return made


def test_a_field_that_is_set_makes_the_structs_around_it(sql: SqlLake) -> None:
    sql("UPDATE t SET st.a = -1 WHERE id <> 2")
    sql("UPDATE t SET st.c.x = -2, st.b = 'new' WHERE id > 1")
    assert sql("SELECT id, st.* FROM t ORDER BY id") == [
        (1, -1, "b", (1, 2)),
        (2, 2, "new", (-2, None)),
        (3, -1, "new", (-2, None)),
    ]


def test_a_merge_makes_the_structs_around_a_field_it_sets(sql: SqlLake) -> None:
    sql(
        "MERGE INTO t USING (SELECT 3 AS id, 7 AS n) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET t.st.c.y = s.n "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN UPDATE SET st.c.y = t.st.a"
    )
    assert sql("SELECT id, st.* FROM t ORDER BY id") == [
        (1, 1, "b", (1, 2)),
        (2, 2, "b", (None, 2)),
        (3, None, None, (None, 7)),
    ]


def test_values_of_one_statement_are_of_the_row_before_it(sql: SqlLake) -> None:
    sql("UPDATE t SET st.a = st.c.x, st.c.x = st.a")
    assert sql("SELECT id, st.a, st.c FROM t ORDER BY id") == [
        (1, 1, (1, 2)),
        (2, None, (2, None)),
        (3, None, (None, None)),
    ]


@pytest.mark.parametrize(
    "clause",
    ["st = NULL, st.a = 1", "st.a = 1, st = NULL", "st.a = 1, st.A = 2", "st.c.x = 1, st.c = NULL"],
)
def test_what_is_set_twice_is_refused(sql: SqlLake, clause: str) -> None:
    with pytest.raises(InvalidInput, match="is set twice"):
        sql(f"UPDATE t SET {clause}")
    with pytest.raises(InvalidInput, match="is set twice"):
        sql(f"MERGE INTO t USING (SELECT 1 AS k) ON id = k WHEN MATCHED THEN UPDATE SET {clause}")


def test_a_required_field_beside_the_one_that_is_set_needs_a_value(sql: SqlLake) -> None:
    sql("CREATE TABLE strict (id INT, st STRUCT<a: INT, b: INT NOT NULL>)")
    sql("INSERT INTO strict VALUES (1, named_struct('a', 1, 'b', 1)), (2, NULL)")
    with pytest.raises(InvalidInput, match=r"st\.b is required, but the data has a null"):
        sql("UPDATE strict SET st.a = 5")
    assert sql("SELECT * FROM strict ORDER BY id") == [(1, (1, 1)), (2, None)]
    sql("UPDATE strict SET st.b = 5")
    sql("UPDATE strict SET st.a = 6 WHERE id = 1")
    assert sql("SELECT * FROM strict ORDER BY id") == [(1, (6, 5)), (2, (None, 5))]
