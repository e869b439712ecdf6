"""INSERT, DELETE, UPDATE and MERGE as statements."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icetree.errors import IcetreeError, InvalidInput, Unsupported
from tests.effort import usually
from tests.spark.sql_lake import SqlLake

MODES = ("merge-on-read", "copy-on-write")


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> SqlLake:
    return lake_of(spark, tmp_path)


@pytest.fixture(scope="module")
def still(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SqlLake:
    """For statements that change nothing."""
    return lake_of(spark, tmp_path_factory.mktemp("lake"))


def lake_of(spark: SparkSession, folder: Path) -> SqlLake:
    """Make a table with the rows 0 to 5, in partitions 0 and 1."""
    made = SqlLake(spark, folder)
    made(
        "CREATE TABLE t (id BIGINT, s STRING DEFAULT 'none', p INT, st STRUCT<a: INT, b: STRING>) "
        "PARTITIONED BY (p)"
    )
    made(
        "INSERT INTO t SELECT id, 's' || id, id % 2, named_struct('a', CAST(id AS INT), 'b', 'b') "
        "FROM range(6)"
    )
    return made


def test_rows_are_inserted_by_position_by_name_and_by_list(sql: SqlLake) -> None:
    sql(
        "INSERT INTO t VALUES (10, DEFAULT, 0, NULL), (11, 'x, (y)', 1, named_struct('a', 1, 'b', 'q'))"
    )
    sql("INSERT INTO TABLE db.t (p, id) SELECT 1, 12")
    sql("INSERT INTO t BY NAME SELECT 'n' AS s, 13 AS ID")
    sql("WITH w AS (SELECT 14 AS n) INSERT INTO t (id) SELECT n FROM w")
    assert sql("SELECT id, s, p, st.b FROM t WHERE id >= 10 ORDER BY id") == [
        (10, "none", 0, None),
        (11, "x, (y)", 1, "q"),
        (12, "none", 1, None),
        (13, "n", None, None),
        (14, "none", None, None),
    ]


@pytest.mark.parametrize("mode", usually(MODES, "merge-on-read"))
def test_a_statement_that_changes_rows_tells_how_many(sql: SqlLake, mode: str) -> None:
    """In columns that are the same for all: affected, updated, deleted, inserted."""
    modes = ", ".join(f"'write.{verb}.mode' = '{mode}'" for verb in ("delete", "update", "merge"))
    sql(f"ALTER TABLE t SET TBLPROPERTIES ({modes})")
    assert sql("INSERT INTO t (id, p) VALUES (6, 0), (7, 1)") == [(2, 0, 0, 2)]
    assert sql("UPDATE t SET s = 'u' WHERE id IN (1, 2, 99)") == [(2, 2, 0, 0)]
    assert sql("DELETE FROM t WHERE id IN (1, 3)") == [(2, 0, 2, 0)]
    assert sql("DELETE FROM t WHERE id = 99") == [(0, 0, 0, 0)]
    merge = """
        MERGE INTO t USING (SELECT explode(array(4, 5, 6, 7, 8)) AS id, 1 AS n) AS s ON t.id = s.id
        WHEN MATCHED AND s.id = 4 THEN DELETE
        WHEN MATCHED AND s.id < 7 THEN UPDATE SET s = 'm'
        WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 0)
        WHEN NOT MATCHED BY SOURCE AND id = 0 THEN DELETE
    """
    assert sql(merge) == [(5, 2, 2, 1)]
    assert sql("SELECT id FROM t ORDER BY id") == [(2,), (5,), (6,), (7,), (8,)]
    assert sql("INSERT OVERWRITE t PARTITION (p = 1) SELECT 20, 'o', NULL") == [(3, 0, 2, 1)]
    assert sql("INSERT INTO t REPLACE WHERE id = 6 SELECT 6, 'new', 0, NULL") == [(2, 0, 1, 1)]
    again = "INSERT INTO t WITH ('key' = 'once') VALUES (30, 'k', 0, NULL)"
    assert [sql(again), sql(again)] == [[(1, 0, 0, 1)], [(0, 0, 0, 0)]]
    sql.lake.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        assert sql("INSERT OVERWRITE t VALUES (40, 'd', 0, NULL)") == [(5, 0, 4, 1)]
    finally:
        sql.lake.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert sql("DELETE FROM t") == [(2, 0, 2, 0)]
    names = sql.lake.sql("DELETE FROM t").columns
    assert names == [f"num_{each}_rows" for each in ("affected", "updated", "deleted", "inserted")]
    assert sql("TRUNCATE TABLE t") == []


def test_an_insert_may_read_the_table_it_changes(sql: SqlLake) -> None:
    sql("INSERT INTO t SELECT id + 100, s, p, st FROM t WHERE p = 1")
    assert sql("SELECT id FROM t WHERE id > 99 ORDER BY id") == [(101,), (103,), (105,)]


def test_an_overwrite_replaces_the_partition_it_names(sql: SqlLake) -> None:
    sql("INSERT OVERWRITE t PARTITION (p = 1) SELECT 20, 'o', NULL")
    assert sql("SELECT id FROM t WHERE p = 1") == [(20,)]
    assert sql("SELECT count(*) FROM t") == [(4,)]
    sql("INSERT OVERWRITE TABLE t PARTITION (p = 0) SELECT 21, 'o', NULL")
    assert sql("SELECT id, p FROM t ORDER BY id") == [(20, 1), (21, 0)]
    sql("INSERT INTO t PARTITION (p = 0) (id, s) SELECT 22, 'p'")
    sql("INSERT INTO t REPLACE WHERE p = 0 AND id = 21 SELECT 21, 'new', 0, NULL")
    assert sql("SELECT id, s FROM t WHERE p = 0 ORDER BY id") == [(21, "new"), (22, "p")]


def test_rows_are_deleted_by_a_condition(sql: SqlLake) -> None:
    sql("DELETE FROM t AS old WHERE old.id = 1 OR old.st.a = 2")
    sql("DELETE FROM db.t WHERE t.id = 3 AND db.t.s IN ('s3', 'x')")
    assert sql("SELECT id FROM t ORDER BY id") == [(0,), (4,), (5,)]
    sql("DELETE FROM t")
    assert sql("SELECT id FROM t") == []


def test_rows_are_updated_by_expressions(sql: SqlLake) -> None:
    sql(
        "UPDATE t AS o SET o.s = CASE WHEN o.id = 0 THEN 'zero, set' ELSE upper(s) END, "
        "st.a = o.st.a + 10, st.b = 'new' WHERE o.id < 2"
    )
    assert sql("SELECT id, s, st.a, st.b FROM t WHERE id < 3 ORDER BY id") == [
        (0, "zero, set", 10, "new"),
        (1, "S1", 11, "new"),
        (2, "s2", 2, "b"),
    ]
    sql("UPDATE t SET s = DEFAULT")
    assert sql("SELECT DISTINCT s FROM t") == [("none",)]


def test_conditions_and_values_may_read_other_tables(sql: SqlLake) -> None:
    sql("CREATE TABLE gone AS SELECT id AS n FROM range(4, 9)")
    sql("DELETE FROM t AS o WHERE o.id IN (SELECT n FROM gone WHERE n > 4) OR o.id = 0")
    assert sql("SELECT id FROM t ORDER BY id") == [(1,), (2,), (3,), (4,)]
    sql(
        "UPDATE t SET p = (SELECT max(n) FROM db.gone) WHERE EXISTS (SELECT 1 FROM gone WHERE n = id)"
    )
    assert sql("SELECT id, p FROM t WHERE p > 1") == [(4, 8)]


def test_a_merge_knows_every_clause(sql: SqlLake) -> None:
    sql("CREATE TABLE new AS SELECT id, 'n' || id AS s FROM range(1, 9)")
    sql(
        "MERGE INTO t USING (SELECT * FROM new WHERE id <> 4) AS n ON t.id = n.id "
        "WHEN MATCHED AND n.id = 1 THEN DELETE "
        "WHEN MATCHED AND CASE WHEN t.p = 0 THEN true ELSE false END THEN "
        "UPDATE SET t.s = n.s || '!', st.b = n.s "
        "WHEN MATCHED THEN UPDATE SET s = DEFAULT "
        "WHEN NOT MATCHED AND n.id = 6 THEN INSERT (id, s, p) VALUES (n.id, concat(n.s, ','), 6) "
        "WHEN NOT MATCHED BY TARGET AND n.id = 7 THEN INSERT (id) VALUES (n.id) "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 0 THEN UPDATE SET s = 'lonely' "
        "WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    assert sql("SELECT id, s, p, st.b FROM t ORDER BY id") == [
        (0, "lonely", 0, "b"),
        (2, "n2!", 0, "n2"),
        (3, "none", 1, "b"),
        (5, "none", 1, "b"),
        (6, "n6,", 6, None),
        (7, "none", None, None),
    ]


def test_a_merge_by_star_takes_columns_of_the_same_name(sql: SqlLake) -> None:
    sql("CREATE TABLE new AS SELECT id, 'n' AS s, 7 AS p FROM range(5, 7)")
    sql("ALTER TABLE t DROP COLUMN st")
    sql(
        "MERGE INTO db.t USING db.new ON db.t.id = db.new.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert sql("SELECT * FROM t WHERE id > 4 ORDER BY id") == [(5, "n", 7), (6, "n", 7)]


def test_statements_write_to_branches(sql: SqlLake) -> None:
    sql("ALTER TABLE t CREATE BRANCH side")
    sql("INSERT INTO t.branch_side (id) VALUES (50)")
    sql("UPDATE db.t.branch_side SET s = 'side' WHERE id = 50")
    sql("DELETE FROM t.branch_side WHERE id < 5")
    assert sql("SELECT id, s FROM t.branch_side ORDER BY id") == [(5, "s5"), (50, "side")]
    assert sql("SELECT count(*) FROM t") == [(6,)]
    sql("TRUNCATE TABLE t")
    assert sql("SELECT count(*) FROM t") == [(0,)]
    assert sql("SELECT count(*) FROM t VERSION AS OF 'side'") == [(2,)]


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        ("INSERT INTO t SELECT 1", InvalidInput, "takes 4 columns .*but the rows have 1"),
        ("INSERT INTO t (id, nope) VALUES (1, 2)", InvalidInput, "no column 'nope'"),
        ("INSERT INTO t (id) VALUES ('x')", InvalidInput, "column id is string"),
        ("INSERT INTO t.snapshots VALUES (1)", InvalidInput, "can only be read"),
        ("DELETE FROM t WHERE nope = 1", InvalidInput, "`nope`"),
        ("DELETE FROM t WHERE id IN (SELECT nope FROM t)", InvalidInput, "`nope`"),
        ("UPDATE t SET nope = 1", InvalidInput, "no column 'nope'"),
        ("UPDATE t SET s = 'a', s = 'b'", InvalidInput, "set twice"),
        (
            "MERGE INTO t USING t AS u ON t.id = u.id WHEN MATCHED THEN UPDATE SET nope = 1",
            InvalidInput,
            "no column 'nope'",
        ),
        (
            "INSERT OVERWRITE t PARTITION (nope = 1) SELECT 1, 's', NULL",
            InvalidInput,
            "table t has no column 'nope'",
        ),
        (
            "MERGE WITH SCHEMA EVOLUTION INTO t USING t AS u ON t.id = u.id WHEN MATCHED THEN DELETE",
            Unsupported,
            "SCHEMA EVOLUTION",
        ),
    ],
)
def test_a_refusal_takes_a_line_and_changes_nothing(
    still: SqlLake, text: str, kind: type[IcetreeError], told: str
) -> None:
    before = still.lake.table("db.t").metadata
    with pytest.raises(kind, match=told) as refused:
        still(text)
    assert "\n" not in str(refused.value)
    assert still.lake.table("db.t").metadata == before


REFUSED = (
    "WHEN MATCHED AND p = 1 THEN DELETE",
    "WHEN MATCHED AND k > 5 THEN UPDATE SET s = 'x' WHEN MATCHED THEN DELETE",
    "WHEN MATCHED THEN UPDATE SET s = 'x'",
)


@pytest.mark.parametrize("clauses", usually(REFUSED, *REFUSED[:2]))
@pytest.mark.parametrize("mode", usually(MODES, "merge-on-read"))
def test_a_row_that_matches_often_is_refused_where_it_may_matter(
    sql: SqlLake, mode: str, clauses: str
) -> None:
    sql(f"ALTER TABLE t SET TBLPROPERTIES ('write.merge.mode' = '{mode}')")
    with pytest.raises(InvalidInput, match="more than one row of the source"):
        sql(f"MERGE INTO t USING (SELECT explode(array(1, 1, 1, 2, 9)) AS k) ON id = k {clauses}")


@pytest.mark.parametrize("mode", usually(MODES, "copy-on-write"))
def test_a_row_that_is_only_to_be_deleted_may_match_often(sql: SqlLake, mode: str) -> None:
    sql(f"ALTER TABLE t SET TBLPROPERTIES ('write.merge.mode' = '{mode}')")
    twice = "MERGE INTO t USING (SELECT explode(array(1, 1, 1, 2, 9)) AS k) ON id = k"
    sql(f"{twice} WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, s) VALUES (k, 'new')")
    assert sql("SELECT id, s FROM t ORDER BY id") == [
        (0, "s0"),
        (3, "s3"),
        (4, "s4"),
        (5, "s5"),
        (9, "new"),
    ]
    sql(
        "MERGE INTO t USING (SELECT explode(array(3, 3)) AS k) ON id = k WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE AND id > 4 THEN UPDATE SET s = 'old'"
    )
    assert sql("SELECT id, s FROM t ORDER BY id") == [
        (0, "s0"),
        (4, "s4"),
        (5, "old"),
        (9, "old"),
    ]


def test_rows_that_replace_others_may_be_elsewhere(sql: SqlLake) -> None:
    sql("INSERT INTO t REPLACE WHERE p = 1 AND id < 4 SELECT 20, 'o', 7, NULL")
    assert sql("SELECT id, p FROM t ORDER BY id") == [(0, 0), (2, 0), (4, 0), (5, 1), (20, 7)]


def test_a_partition_that_is_named_is_replaced_in_every_mode(sql: SqlLake) -> None:
    spark = sql.lake.spark
    sql("INSERT INTO t VALUES (9, 'of none', NULL, NULL)")
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        # All of a partition that is named goes, even where nothing comes.
        sql("INSERT OVERWRITE t PARTITION (p = 1) SELECT 9, 's', NULL WHERE false")
        assert sql("SELECT id, p FROM t") == [(0, 0), (2, 0), (4, 0), (9, None)]
        # What is no number is no null either.
        with pytest.raises(InvalidInput, match="'one'"):
            sql("INSERT OVERWRITE t PARTITION (p = 'one') SELECT 9, 's', NULL")
        assert sql("SELECT id, p FROM t WHERE p IS NULL") == [(9, None)]
        sql("INSERT OVERWRITE t PARTITION (p = NULL) SELECT 8, 's', NULL")
        assert sql("SELECT id, p FROM t WHERE p IS NULL") == [(8, None)]
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
        spark.conf.set("spark.sql.ansi.enabled", "true")


def test_a_condition_is_found_wherever_spark_finds_it(sql: SqlLake) -> None:
    sql("DELETE FROM t -- all of them\r WHERE id = 0")
    sql("DELETE FROM t /* WHERE id = 1 /* not */ OR */ WHERE id = 2 -- \\\n OR true")
    assert sql("SELECT id FROM t") == [(1,), (3,), (4,), (5,)]
    sql("CREATE TABLE `case` AS SELECT id FROM t")
    for statement in ("DELETE FROM case WHERE id = 1", "DELETE FROM t AS case WHERE id = 1"):
        with pytest.raises(InvalidInput, match="backticks"):
            sql(statement)
    sql("DELETE FROM `case` WHERE id = 1")
    assert sql("SELECT id FROM `case`") == [(3,), (4,), (5,)]
    assert sql("SELECT count(*) FROM t") == [(4,)]
