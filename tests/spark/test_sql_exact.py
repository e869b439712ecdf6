"""Statements change what they say, by Spark's own meaning, and nothing beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from icetree.errors import InvalidInput
from tests.spark.settings import setting
from tests.spark.sql_lake import SqlLake

COPYING = ", ".join(
    f"'write.{verb}.mode'='copy-on-write'" for verb in ("delete", "update", "merge")
)
MODES = pytest.mark.parametrize(
    "how",
    [
        pytest.param("", id="marked", marks=pytest.mark.long),
        pytest.param(f"TBLPROPERTIES ({COPYING})", id="copied"),
    ],
)

MERGE = "MERGE INTO o USING (SELECT 1 AS v) s ON o.v = s.v WHEN MATCHED THEN UPDATE SET"


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> SqlLake:
    return SqlLake(spark, tmp_path)


@pytest.fixture(scope="module")
def still(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SqlLake:
    """Hold tables for statements that are refused, which change none of them."""
    made = SqlLake(spark, tmp_path_factory.mktemp("still"))
    made("CREATE TABLE o (v INT, d DECIMAL(4, 2))")
    made("INSERT INTO o VALUES (1, 1)")
    made("CREATE TABLE m (id INT, v STRING)")
    made("INSERT INTO m VALUES (1, 'a')")
    made("CREATE TABLE e (id INT)")
    made("INSERT INTO e VALUES (1), (2)")
    return made


# --- fields of structs -------------------------------------------------------------------------


@MODES
def test_a_field_of_a_struct_is_read_whatever_it_is_beside(sql: SqlLake, how: str) -> None:
    sql(f"CREATE TABLE n (id INT, st STRUCT<a: INT, c: DOUBLE>) {how}")
    sql("INSERT INTO n SELECT /*+ coalesce(1) */ * FROM VALUES "
        "(1, named_struct('a', 1, 'c', 2D)), (2, NULL)")  # fmt: skip
    assert sql("SELECT st.a FROM n") == [(1,), (None,)]
    assert sql("SELECT id FROM n WHERE st.c >= 2") == [(1,)]
    assert sql.lake.read("db.n").select("st.c").collect() == [Row(c=2.0), Row(c=None)]
    sql("DELETE FROM n WHERE st.a IS NULL")
    assert sql("SELECT id FROM n") == [(1,)]


def test_a_field_is_found_after_it_and_what_holds_it_were_renamed(sql: SqlLake) -> None:
    sql("CREATE TABLE r (st STRUCT<a: INT, b: INT>, ar ARRAY<STRUCT<x: INT, y: INT>>)")
    sql("INSERT INTO r VALUES (named_struct('a', 1, 'b', 2), array(named_struct('x', 3, 'y', 4)))")
    sql("ALTER TABLE r RENAME COLUMN ar.element.x TO xx")
    sql("ALTER TABLE r RENAME COLUMN st TO st2")
    assert sql("SELECT ar.xx, st2.b FROM r") == [([3], 2)]
    assert sql.lake.changes("db.r").select("st2.b").collect() == [Row(b=2)]


# --- values that are set -----------------------------------------------------------------------


@MODES
def test_rows_that_are_not_hit_stay_as_they_are_whatever_is_set(sql: SqlLake, how: str) -> None:
    sql(f"CREATE TABLE u (id INT, s STRING, big BIGINT) {how}")
    sql("INSERT INTO u SELECT /*+ coalesce(1) */ * FROM VALUES "
        "(1, 'a', 10L), (2, '007', 9007199254740993L), (3, ' 8 ', 3L)")  # fmt: skip
    kept = [(2, "007", 9007199254740993), (3, " 8 ", 3)]
    # Of another type: beside an old value both would take one in common.
    sql("UPDATE u SET s = 5, big = big * 1.5e0 WHERE id = 1")
    assert sql("SELECT * FROM u") == [(1, "5", 15), *kept]
    sql("UPDATE u SET s = DATE'2020-02-02' WHERE id = 1")
    assert sql("SELECT * FROM u") == [(1, "2020-02-02", 15), *kept]
    sql("MERGE INTO u USING (SELECT 1 AS id, 6 AS s, 7.9 AS big) v ON u.id = v.id "
        "WHEN MATCHED THEN UPDATE SET *")  # fmt: skip
    assert sql("SELECT * FROM u") == [(1, "6", 7), *kept]
    sql("MERGE INTO u USING (SELECT id, 5 AS s FROM range(4)) v ON u.id = v.id "
        "WHEN MATCHED AND u.id = 1 THEN UPDATE SET s = v.s WHEN MATCHED THEN UPDATE SET big = 1")  # fmt: skip
    assert sql("SELECT * FROM u") == [(1, "5", 7), (2, "007", 1), (3, " 8 ", 1)]


@pytest.mark.parametrize("ansi", ["false", pytest.param("true", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("INSERT INTO o VALUES (3000000000, 1)", "overflow"),
        ("INSERT INTO o VALUES (1, 12345.6)", "cannot be represented"),
        ("UPDATE o SET v = 3000000000", "overflow"),
        ("UPDATE o SET v = 'abc'", "column v is string in the data, but int"),
        (f"{MERGE} v = 'abc'", "column v is string in the data, but int"),
        (f"{MERGE} d = 12345.6", "cannot be represented"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_in_any_mode(
    still: SqlLake, text: str, complaint: str, ansi: str
) -> None:
    with (
        setting(still.lake.spark, "spark.sql.ansi.enabled", ansi),
        pytest.raises(InvalidInput, match=complaint),
    ):
        still(text)
    assert still.lake.table("db.o").scan(columns=["v"]).to_arrow()["v"].to_pylist() == [1]
    assert len(list(still.lake.table("db.o").history())) == 1


# --- MERGE -------------------------------------------------------------------------------------


def test_a_merge_by_star_takes_names_in_any_case_and_misses_none(sql: SqlLake) -> None:
    sql("CREATE TABLE m (id INT, v STRING)")
    sql("INSERT INTO m VALUES (1, 'a')")
    every = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    sql(
        f"MERGE INTO m USING (SELECT * FROM VALUES (1, 'x'), (2, 'y') AS _(ID, V)) s ON m.id = s.id {every}"
    )
    assert sql("SELECT * FROM m") == [(1, "x"), (2, "y")]
    rows = sql.lake.spark.createDataFrame([(1, "z"), (3, "w")], "Id int, V string")
    sql.lake.upsert("db.m", rows, on=["id"])
    assert sql("SELECT * FROM m") == [(1, "z"), (2, "y"), (3, "w")]
    with pytest.raises(InvalidInput, match="the source has no column 'v'"):
        sql(f"MERGE INTO m USING (SELECT 1 AS id) s ON m.id = s.id {every}")


def test_a_clause_speaks_of_the_side_that_has_a_row(sql: SqlLake) -> None:
    sql("CREATE TABLE m (id INT, v STRING)")
    sql("INSERT INTO m VALUES (1, 'a'), (9, 'i')")
    sql("MERGE INTO m USING (SELECT * FROM VALUES (1, 'x'), (2, 'y') AS _(id, v)) s ON m.id = s.id "
        "WHEN NOT MATCHED AND id > 1 THEN INSERT (id, v) VALUES (id, concat(v, 'Ü\U0001f600', `v`)) "
        "WHEN NOT MATCHED BY SOURCE AND v = 'i' THEN UPDATE SET v = concat(v, '!')")  # fmt: skip
    assert sql("SELECT * FROM m") == [(1, "a"), (2, "yÜ\U0001f600y"), (9, "i!")]


@pytest.mark.parametrize(
    ("clause", "complaint"),
    [
        ("WHEN NOT MATCHED THEN INSERT (id) VALUES (m.id)", "m.id is not known.*columns of s"),
        ("WHEN NOT MATCHED THEN INSERT (id) VALUES (id)", "id is not known.*columns of s"),
        ("WHEN NOT MATCHED AND v IS NULL THEN INSERT (id) VALUES (k)", "v is not known"),
        ("WHEN NOT MATCHED BY SOURCE THEN UPDATE SET id = s.k", "s.k is not known.*columns of m"),
    ],
)
def test_a_clause_that_speaks_of_the_side_without_a_row_is_refused(
    still: SqlLake, clause: str, complaint: str
) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        still(f"MERGE INTO m USING (SELECT 7 AS k) s ON m.id = s.k {clause}")
    assert still.lake.table("db.m").scan().to_arrow().to_pylist() == [{"id": 1, "v": "a"}]


# --- what a condition calls the table ----------------------------------------------------------


@MODES
def test_a_condition_may_compare_rows_with_those_of_other_tables(sql: SqlLake, how: str) -> None:
    sql(f"CREATE TABLE c (id INT, v INT) {how}")
    sql("INSERT INTO c VALUES (1, 1), (2, 2), (3, 3), (4, 4)")
    sql("CREATE TABLE o AS SELECT * FROM VALUES (2, 20), (9, 90) AS x(id, v)")
    sql("UPDATE c SET v = 50 WHERE EXISTS (SELECT 1 FROM o WHERE o.id = c.id)")
    assert sql("SELECT v FROM c") == [(1,), (3,), (4,), (50,)]
    sql("UPDATE c SET v = (SELECT max(o.v) FROM o WHERE o.id = c.id) WHERE c.id = 2")
    assert sql("SELECT v FROM c") == [(1,), (20,), (3,), (4,)]
    sql("DELETE FROM c AS a WHERE NOT EXISTS (SELECT 1 FROM o b WHERE b.id = a.id) AND a.v = 1")
    assert sql("SELECT v FROM c") == [(20,), (3,), (4,)]
    sql("DELETE FROM db.c WHERE db.c.id IN (SELECT db.c.id + 1 FROM db.c WHERE c.id = 3)")
    assert sql("SELECT v FROM c") == [(20,), (3,)]


def test_a_variable_may_be_called_like_the_table(sql: SqlLake) -> None:
    sql("CREATE TABLE v (id INT, x INT, arr ARRAY<STRUCT<x: INT>>)")
    sql(
        "INSERT INTO v VALUES (1, 1, array(named_struct('x', 7))), (2, 7, array(named_struct('x', 1)))"
    )
    sql("DELETE FROM v WHERE exists(arr, v -> v.x = 1)")
    assert sql("SELECT id FROM v") == [(1,)]


def test_columns_may_be_called_anything(sql: SqlLake) -> None:
    sql("CREATE TABLE odd (id INT, `a.b` INT, `c d` STRING, `x``y` INT) PARTITIONED BY (`a.b`)")
    sql("INSERT INTO odd VALUES (1, 2, 'z', 3), (2, 2, 'y', 4)")
    sql("UPDATE odd SET `x``y` = 5, `a.b` = 9 WHERE `x``y` = 3")
    assert sql("SELECT * FROM odd") == [(1, 9, "z", 5), (2, 2, "y", 4)]
    sql("MERGE INTO odd USING (SELECT 2 AS id) s ON odd.id = s.id "
        "WHEN MATCHED THEN UPDATE SET `x``y` = `x``y` + 1")  # fmt: skip
    sql("DELETE FROM odd WHERE `a.b` = 9")
    assert sql("SELECT * FROM odd") == [(2, 2, "y", 5)]


def test_columns_may_be_called_like_words_of_sql(sql: SqlLake) -> None:
    sql("CREATE TABLE k (id INT, end INT, case INT)")
    sql("INSERT INTO k VALUES (1, 5, 6), (2, 7, 8)")
    sql("UPDATE k SET id = coalesce(end, 0), end = coalesce(case, 0) WHERE id = 1")
    sql("UPDATE k SET id = (SELECT max(end) FROM k x WHERE x.id = 2) WHERE id = 2")
    assert sql("SELECT * FROM k") == [(5, 6, 6), (7, 7, 8)]
    sql("UPDATE k SET id = CASE WHEN end = 6 THEN 1 ELSE 2 END, case = 0")
    assert sql("SELECT * FROM k") == [(1, 6, 0), (2, 7, 0)]
    sql("INSERT INTO k REPLACE WHERE id IS NOT DISTINCT FROM 1 SELECT 1, 1, 1")
    assert sql("SELECT * FROM k") == [(1, 1, 1), (2, 7, 0)]


def test_a_subquery_may_read_metadata_of_the_table_itself(sql: SqlLake) -> None:
    sql("CREATE TABLE s (id INT)")
    sql("INSERT INTO s SELECT /*+ coalesce(1) */ * FROM VALUES (1), (2)")
    sql.lake.namespace = None
    sql("DELETE FROM db.s WHERE db.s.id = (SELECT count(*) FROM db.s.files)")
    assert sql("SELECT id FROM db.s") == [(2,)]
    # By its full name it is the table outside, as Spark has it: by the alias it is the one within.
    with pytest.raises(InvalidInput, match="outer"):
        sql("DELETE FROM db.s WHERE id = (SELECT max(db.s.id) FROM db.s.branch_main AS s)")
    sql("DELETE FROM db.s WHERE id = (SELECT max(s.id) FROM db.s.branch_main AS s)")
    assert sql("SELECT id FROM db.s") == []


# --- structs as values -------------------------------------------------------------------------


def test_structs_are_inserted_by_position_and_set_in_order(sql: SqlLake) -> None:
    sql("CREATE TABLE p (id INT, st STRUCT<a: INT, b: INT>, ar ARRAY<STRUCT<x: INT, y: INT>>)")
    sql("INSERT INTO p SELECT 1, named_struct('b', 20, 'a', 10), array(struct(1, 2))")
    sql("INSERT INTO p VALUES (2, struct(10, 20), NULL)")
    assert sql("SELECT id, st.a, st.b, ar[0].y FROM p") == [(1, 20, 10, 2), (2, 10, 20, None)]
    sql("INSERT INTO p BY NAME SELECT 3 AS id, named_struct('b', 20, 'a', 10) AS st")
    assert sql("SELECT st.a, st.b FROM p WHERE id = 3") == [(10, 20)]
    source = "(SELECT 1 AS n, named_struct('b', 1, 'a', 2) AS st)"
    for text in (
        "UPDATE p SET st = named_struct('b', 21, 'a', 11)",
        "UPDATE p SET st = named_struct('a', 12)",
        f"MERGE INTO p USING {source} s ON p.id = s.n WHEN MATCHED THEN UPDATE SET st = s.st",
    ):
        with pytest.raises(InvalidInput, match=r"^table db.p: column st is .* in the table"):
            sql(text)


# --- OVERWRITE ---------------------------------------------------------------------------------


def test_an_overwrite_takes_times_as_the_session_does(sql: SqlLake) -> None:
    sql("CREATE TABLE z (v INT, ts TIMESTAMP) PARTITIONED BY (ts)")
    sql("CREATE TABLE y (v INT, ts TIMESTAMP)")
    with setting(sql.lake.spark, "spark.sql.session.timeZone", "America/New_York"):
        rows = "VALUES (1, TIMESTAMP'2020-01-01 00:00:00'), (2, TIMESTAMP'2019-12-31 20:00:00')"
        sql(f"INSERT INTO z {rows}")
        sql(f"INSERT INTO y SELECT /*+ coalesce(1) */ * FROM {rows}")
        sql("INSERT OVERWRITE z PARTITION (ts = '2020-01-01 00:00:00') SELECT 9")
        assert sql("SELECT v FROM z") == [(2,), (9,)]
        sql("INSERT INTO y REPLACE WHERE ts >= '2020-01-01 00:00:00' SELECT * FROM y WHERE false")
        assert sql("SELECT v FROM y") == [(2,)]


def test_rows_are_replaced_by_what_the_condition_means_to_spark(sql: SqlLake) -> None:
    sql("CREATE TABLE r (id INT, x DOUBLE)")
    sql("INSERT INTO r SELECT /*+ coalesce(1) */ * FROM VALUES "
        "(1, 1), (2, double('NaN')), (3, 3), (4, NULL)")  # fmt: skip
    sql("INSERT INTO r REPLACE WHERE x > 5 SELECT 5, 6")  # NaN is greater than any number
    assert sql("SELECT id FROM r") == [(1,), (3,), (4,), (5,)]
    sql("INSERT INTO r REPLACE WHERE db.r.id % 2 = 0 SELECT 8, 8")
    assert sql("SELECT id FROM r") == [(1,), (3,), (5,), (8,)]
    sql("INSERT INTO r REPLACE WHERE id % 2 = 0 SELECT 7, 7")
    assert sql("SELECT id FROM r") == [(1,), (3,), (5,), (7,)]


def test_an_overwrite_replaces_everything_unless_the_session_says_partitions(sql: SqlLake) -> None:
    sql("CREATE TABLE p (v INT, p INT) PARTITIONED BY (p)")
    sql("INSERT INTO p VALUES (1, 1), (2, 2)")
    with setting(sql.lake.spark, "spark.sql.sources.partitionOverwriteMode", "dynamic"):
        sql("INSERT OVERWRITE p SELECT 3, 2")
        assert sql("SELECT * FROM p") == [(1, 1), (3, 2)]
        sql("INSERT OVERWRITE p PARTITION (p = 1) SELECT 4")
        assert sql("SELECT * FROM p") == [(3, 2), (4, 1)]
    sql("INSERT OVERWRITE p PARTITION (p = 1) IF NOT EXISTS SELECT 5")
    assert sql("SELECT * FROM p") == [(3, 2), (4, 1)]
    sql("INSERT OVERWRITE p PARTITION (p = 7) IF NOT EXISTS SELECT 7")
    assert sql("SELECT * FROM p") == [(3, 2), (4, 1), (7, 7)]
    sql("INSERT OVERWRITE p PARTITION (p = 7) SELECT 8 WHERE false")
    assert sql("SELECT * FROM p") == [(3, 2), (4, 1)]
    # Files that match whole are not looked into.
    assert sql.lake.table("db.p").inspect.delete_files().num_rows == 0
    sql("INSERT OVERWRITE p SELECT 9, 1")
    assert sql("SELECT * FROM p") == [(9, 1)]
    sql("INSERT OVERWRITE p SELECT * FROM p WHERE false")
    assert sql("SELECT * FROM p") == []


def test_partitions_of_floats_and_decimals_are_overwritten_by_value(sql: SqlLake) -> None:
    sql("CREATE TABLE d (v INT, x DOUBLE, y DECIMAL(5, 2)) PARTITIONED BY (x, y)")
    sql("INSERT INTO d VALUES (1, 1.5, 1), (2, double('NaN'), 1.5), (3, NULL, 2)")
    sql("INSERT OVERWRITE d PARTITION (x = 'NaN', y = 1.5) SELECT 4")
    assert sql("SELECT v FROM d") == [(1,), (3,), (4,)]
    sql("INSERT OVERWRITE d PARTITION (x = NULL, y = 2) SELECT 5")
    assert sql("SELECT v FROM d") == [(1,), (4,), (5,)]


# --- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE e SET id = (SELECT id FROM e x)",
        "DELETE FROM e WHERE id = (SELECT id FROM e x)",
        "INSERT INTO e SELECT (SELECT id FROM e x)",
    ],
)
def test_a_subquery_with_too_many_rows_is_refused_in_a_line(still: SqlLake, text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^More than one row returned by a subquery[^\n]*$"):
        still(text)
    assert sorted(still.lake.table("db.e").scan().to_arrow()["id"].to_pylist()) == [1, 2]
