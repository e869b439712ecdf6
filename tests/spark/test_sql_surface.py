"""Statements that users of Iceberg on Spark, and of other engines, bring along."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icetree.errors import AlreadyExists, IcetreeError, InvalidInput, NotFound, Unsupported
from icetree.spark.sql.elsewhere import refuse_others
from icetree.spark.sql.extensions import run_extension
from icetree.spark.sql.statement import run_sql
from tests.spark.sql_lake import SqlLake


@pytest.fixture(scope="module")
def sql(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SqlLake:
    """A table of twenty rows in four partitions."""
    made = SqlLake(spark, tmp_path_factory.mktemp("lake"))
    made("CREATE TABLE t (id BIGINT NOT NULL COMMENT 'key', p INT DEFAULT 3) PARTITIONED BY (p)")
    made("ALTER TABLE t WRITE ORDERED BY id DESC NULLS LAST")
    made("INSERT INTO t SELECT id, id % 4 FROM range(20)")
    return made


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT count(*) FROM t TABLESAMPLE (5 ROWS)", [(5,)]),
        ("SELECT count(t.id) FROM db.t TABLESAMPLE (5 ROWS) WHERE db.t.id >= 0", [(5,)]),
        ("SELECT count(s.id) FROM t VERSION AS OF 'main' TABLESAMPLE (5 ROWS) AS s", [(5,)]),
        ("SELECT t.id FROM t TABLESAMPLE (100 PERCENT) REPEATABLE (3) WHERE t.id = 1", [(1,)]),
        ("SELECT count(*) FROM t TABLESAMPLE (BUCKET 1 OUT OF 1)", [(20,)]),
        ("SELECT count(*) FROM (SELECT *, _pos FROM t TABLESAMPLE (1 ROWS))", [(1,)]),
        ("SELECT count(*) FROM IDENTIFIER('db.t')", [(20,)]),
        ("SELECT IDENTIFIER('id') FROM IDENTIFIER('d' || 'b.t') AS x WHERE x.id = 1", [(1,)]),
        ("SELECT IDENTIFIER('abs')(-1)", [(1,)]),
        ("SHOW PARTITIONS t", [("p=0",), ("p=1",), ("p=2",), ("p=3",)]),
        ("SHOW PARTITIONS db.t PARTITION (p = 1)", [("p=1",)]),
    ],
)
def test_statements_find_their_rows(
    sql: SqlLake, text: str, rows: list[tuple[object, ...]]
) -> None:
    assert sql(text) == rows


def test_a_sample_leaves_metadata_columns_out_of_a_star(sql: SqlLake) -> None:
    frame = run_sql(sql.lake, "SELECT *, _pos FROM t TABLESAMPLE (1 ROWS)")
    assert frame.columns == ["id", "p", "_pos"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("'write.delete.mod' = 'merge-on-read'", r"did you mean 'write.delete.mode'\?"),
        ("'write.delete.mode' = 'copy'", "merge-on-read, copy-on-write"),
    ],
)
def test_a_bad_property_is_told_with_what_helps(sql: SqlLake, given: str, told: str) -> None:
    before = sql.lake.table("db.t").properties
    for text in (
        f"CREATE TABLE bad (id INT) TBLPROPERTIES ({given})",
        f"CREATE TABLE bad TBLPROPERTIES ({given}) AS SELECT 1 AS id",
        f"ALTER TABLE t SET TBLPROPERTIES ({given})",
    ):
        with pytest.raises(InvalidInput, match=told):
            sql(text)
    assert sql.lake.table("db.t").properties == before
    assert not sql.lake.table_exists("db.bad")


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("DESCRIBE t idd", "'id'"),
        ("ALTER TABLE t ALTER COLUMN idd SET DEFAULT 3", "'id'"),
        ("MERGE INTO t USING t AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET idd = 1", "'id'"),
        ("DESCRIBE v total", "'totals'"),
        ("CREATE TABLE dbb.x (id INT)", "db"),
        ("CREATE TABLE dbb.x AS SELECT 1 AS id", "db"),
        ("ALTER TABLE t RENAME TO dbb.x", "db"),
        ("DROP VIEW db.vv", "db.v"),
        ("SELECT * FROM vv", "db.v"),
        ("DROP NAMESPACE dbb", "db"),
        ("USE dbb", "db"),
        ("SHOW TABLES IN dbb", "db"),
    ],
)
def test_a_name_that_is_mistyped_is_told_with_the_nearest(
    sql: SqlLake, text: str, near: str
) -> None:
    sql("CREATE OR REPLACE VIEW v AS SELECT count(*) AS totals FROM t")
    with pytest.raises((InvalidInput, NotFound), match=rf"did you mean {near}\?$"):
        sql(text)


def test_names_may_be_told_in_statements_that_change_something(sql: SqlLake) -> None:
    sql("CREATE TABLE IDENTIFIER('db.told') (id INT)")
    sql("INSERT INTO IDENTIFIER('told') VALUES (1)")
    assert sql("SELECT * FROM told") == [(1,)]
    sql("DROP TABLE IDENTIFIER('db.told')")
    with pytest.raises(InvalidInput, match="must be text"):
        sql("SELECT * FROM IDENTIFIER(1)")


def test_a_table_like_another_has_its_layout_and_no_rows(sql: SqlLake) -> None:
    sql("CREATE TABLE alike LIKE t TBLPROPERTIES ('k' = 'v')")
    mine, other = sql.lake.table("db.alike"), sql.lake.table("db.t")
    assert mine.schema.as_struct() == other.schema.as_struct()
    assert mine.metadata.sort_keys == other.metadata.sort_keys
    assert mine.properties == {"k": "v"}
    assert sql("SELECT * FROM alike") == []
    sql("INSERT INTO alike (id) VALUES (7)")
    assert sql("SHOW PARTITIONS alike") == [("p=3",)]
    sql("CREATE TABLE IF NOT EXISTS alike LIKE t")
    with pytest.raises(AlreadyExists):
        sql("CREATE TABLE alike LIKE t")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("DESCRIBE HISTORY t", "t.snapshots"),
        ("desc history db.t", "t.snapshots"),
        ("OPTIMIZE t ZORDER BY (id)", "rewrite_data_files"),
        ("VACUUM t RETAIN 168 HOURS", "expire_snapshots"),
        ("RESTORE TABLE t TO VERSION AS OF 3", "rollback"),
        ("COPY INTO t FROM '/files'", "INSERT INTO"),
        ("SHOW BRANCHES IN t", "t.refs"),
        ("MSCK REPAIR TABLE t", "knows its files"),
    ],
)
def test_statements_of_other_engines_are_told_what_to_do_instead(
    sql: SqlLake, text: str, told: str
) -> None:
    with pytest.raises(Unsupported, match=told):
        sql(text)


@pytest.mark.parametrize("text", ["OPTIMIZE nowhere.x", "VACUUM '/files'", "SHOW TAGS", "UNDROP"])
def test_a_statement_that_spark_does_not_know_either_is_told_of(sql: SqlLake, text: str) -> None:
    with pytest.raises(Unsupported, match=f"^{text.split(maxsplit=1)[0]}"):
        sql(text)


def test_a_statement_that_spark_knows_of_a_table_of_its_own_goes_to_spark(
    sql: SqlLake, tmp_path: Path
) -> None:
    place = (tmp_path / "files").as_uri()
    sql.lake.spark.range(6).selectExpr("id", "id % 2 AS p").write.partitionBy("p").parquet(place)
    sql.lake.spark.sql(
        "CREATE TABLE default.partitioned (id BIGINT, p BIGINT) USING parquet PARTITIONED BY (p) "
        f"LOCATION '{place}'"
    )
    try:
        sql("MSCK REPAIR TABLE default.partitioned")
        assert sql("SELECT count(*) FROM default.partitioned") == [(6,)]
    finally:
        sql.lake.spark.sql("DROP TABLE default.partitioned")


def test_spark_describes_a_column_of_a_table_of_its_own_whatever_it_is_called(sql: SqlLake) -> None:
    sql.lake.spark.sql("CREATE TABLE default.detail (t INT) USING parquet")
    try:
        assert ("data_type", "int") in sql("DESCRIBE detail t")
    finally:
        sql.lake.spark.sql("DROP TABLE default.detail")


def test_only_the_first_words_of_a_statement_are_looked_at(
    sql: SqlLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def whole(_: str) -> None:
        raise AssertionError("a statement may be megabytes of values")

    monkeypatch.setattr("icetree.spark.tokens.tokens", whole)
    text = "/* new */ INSERT INTO t VALUES (1, 1)"
    refuse_others(sql.lake, text)
    assert not run_extension(sql.lake, text)


def test_a_table_called_history_can_be_described(sql: SqlLake) -> None:
    sql("CREATE TABLE history (t INT)")
    assert ("data_type", "int") in sql("DESCRIBE history t")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ALTER TABLE t CREATE TAG x AS OF VERSION -1", IcetreeError),
        ("ALTER TABLE t CREATE BRANCH x AS OF VERSION 17", NotFound),
        *(
            (f"CREATE TABLE old (a INT) TBLPROPERTIES ('format-version' = '{each}')", InvalidInput)
            for each in (1, 2, 3, 5, "x")
        ),
        ("CREATE TABLE old TBLPROPERTIES ('format-version' = '2') AS SELECT 1 AS a", InvalidInput),
        ("SHOW PARTITIONS history", InvalidInput),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    sql: SqlLake, text: str, kind: type[Exception]
) -> None:
    before = sql.lake.table("db.t").metadata
    with pytest.raises(kind) as refused:
        sql(text)
    assert "\n" not in str(refused.value)
    assert sql.lake.table("db.t").metadata == before
    assert not sql.lake.table_exists("db.old")


def test_a_table_may_ask_for_the_version_that_it_has(sql: SqlLake) -> None:
    sql("CREATE TABLE newest (a INT) TBLPROPERTIES ('format-version' = '4')")
    assert sql.lake.table("db.newest").metadata.format_version == 4
