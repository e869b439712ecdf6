"""Views that the lake keeps: made, read, told of and changed by statements."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icetree.errors import AlreadyExists, InvalidInput, NotFound, Unsupported
from tests.spark.sql_lake import SqlLake


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> SqlLake:
    """A table of three rows."""
    made = SqlLake(spark, tmp_path)
    made("CREATE TABLE t (id INT, s STRING)")
    made("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    return made


def test_a_view_is_read_by_whoever_opens_the_lake_whatever_is_in_use(
    sql: SqlLake, spark: SparkSession, tmp_path: Path
) -> None:
    sql("CREATE VIEW db.v (number COMMENT 'which', word) COMMENT 'large' "
        "TBLPROPERTIES ('owner' = 'ann') AS SELECT id, upper(s) FROM t WHERE id > 1")  # fmt: skip
    sql("CREATE NAMESPACE other")
    sql("USE other")
    # Neither the namespace in use nor a temporary view is what the view means by `t`.
    spark.createDataFrame([(9, "x")], "id int, s string").createOrReplaceTempView("t")
    try:
        assert sql("SELECT * FROM db.v") == [(2, "B"), (3, "C")]
        assert sql("SELECT v.word FROM db.v WHERE db.v.number = 3") == [("C",)]
        assert sql("SELECT a.number FROM db.v a JOIN db.t ON a.number = t.id WHERE t.s = 'b'") == [
            (2,)
        ]
        another = SqlLake(spark, tmp_path)
        assert another("SELECT count(*) FROM v") == [(2,)]
        assert [tuple(row) for row in another.lake.read("db.v", "number = 2").collect()] == [
            (2, "B")
        ]
    finally:
        spark.catalog.dropTempView("t")
    view = sql.lake.view("db.v")
    assert view.text == "SELECT id, upper(s) FROM t WHERE id > 1"
    assert view.namespace == "db"
    assert view.properties == {"owner": "ann", "comment": "large"}
    assert [(each.name, each.doc) for each in view.schema.fields] == [
        ("number", "which"),
        ("word", None),
    ]


def test_a_view_skips_the_files_that_its_conditions_and_the_querys_rule_out(sql: SqlLake) -> None:
    for id in (10, 20, 30):
        sql(f"INSERT INTO t VALUES ({id}, 'x')")
    sql("CREATE VIEW v AS SELECT id AS n FROM t WHERE id >= 20")
    assert sql.files("SELECT * FROM v WHERE n < 25") == 1


def test_a_view_of_views_follows_its_tables_and_travels_in_time(sql: SqlLake) -> None:
    [[first]] = sql("SELECT snapshot_id FROM t.snapshots")
    sql("CREATE VIEW past AS SELECT * FROM t VERSION AS OF " + str(first))
    sql("CREATE VIEW now AS WITH t2 AS (SELECT id FROM t) SELECT count(*) AS rows FROM t2")
    sql("CREATE VIEW both AS SELECT (SELECT count(*) FROM past) AS before, rows FROM now")
    sql("INSERT INTO t VALUES (4, 'd')")
    assert sql("SELECT * FROM both") == [(3, 4)]
    sql("INSERT INTO t SELECT CAST(rows AS INT) * 10, 'n' FROM now")
    sql("DELETE FROM t WHERE id IN (SELECT id FROM past)")
    assert sql("SELECT id FROM t") == [(4,), (40,)]
    assert sql("SELECT * FROM both") == [(3, 2)]
    sql("CREATE TEMP VIEW over AS SELECT before + rows AS n FROM both")
    sql("USE db")
    assert sql("SELECT n FROM over") == [(5,)]
    sql("DROP VIEW over")
    with pytest.raises(InvalidInput, match="is a view: AS OF is for tables"):
        sql(f"SELECT * FROM past VERSION AS OF {first}")


def test_a_view_keeps_its_columns_until_its_tables_have_them_no_more(sql: SqlLake) -> None:
    sql("CREATE VIEW everything AS SELECT * FROM t")
    sql("CREATE VIEW twice (a, b) AS SELECT x.id, y.id FROM t x JOIN t y ON x.id = y.id")
    sql("ALTER TABLE t ADD COLUMN extra INT FIRST")
    assert sql("SELECT * FROM everything WHERE id = 1") == [(1, "a")]
    assert sql("SELECT * FROM twice WHERE b = 1") == [(1, 1)]
    sql("ALTER TABLE t ALTER COLUMN id TYPE BIGINT")
    with pytest.raises(InvalidInput, match=r"view everything does not fit its tables any more: its "
                       r"column 'id' is int, but its query finds bigint now; CREATE OR REPLACE"):  # fmt: skip
        sql("SELECT * FROM everything")
    sql("CREATE OR REPLACE VIEW everything AS SELECT * FROM t")
    assert sql("SELECT * FROM everything WHERE id = 1") == [(None, 1, "a")]
    sql("ALTER TABLE t DROP COLUMN s")
    with pytest.raises(InvalidInput, match=r"view everything .* finds no column 's' now"):
        sql("SELECT * FROM everything")
    sql("DROP TABLE t")
    with pytest.raises(NotFound, match=r"view db\.everything names t, .* in namespace db"):
        sql("SELECT * FROM everything")


def test_a_view_that_would_read_itself_is_refused(sql: SqlLake) -> None:
    sql("CREATE VIEW a AS SELECT * FROM t")
    sql("CREATE VIEW b AS SELECT * FROM a")
    with pytest.raises(InvalidInput, match=r"view db\.a reads itself \(db\.a → db\.b → db\.a\)"):
        sql("CREATE OR REPLACE VIEW a AS SELECT * FROM b")
    assert sql.lake.view("db.a").text == "SELECT * FROM t"
    # Others need not be as careful.
    sql.lake.view("db.a").replace("SELECT * FROM b", "id int", namespace="db")
    with pytest.raises(InvalidInput, match="reads itself"):
        sql("SELECT * FROM b")


def test_views_that_read_each_other_over_and_over_are_refused_in_time(sql: SqlLake) -> None:
    sql.lake.create_view("db.v0", "SELECT 1 AS id", "id int", namespace="db")
    for level in range(1, 12):
        below = f"v{level - 1}"
        sql.lake.create_view(
            f"db.v{level}", f"SELECT a.id FROM {below} a JOIN {below} b", "id int", namespace="db"
        )
    with pytest.raises(InvalidInput, match=r"view db\.v11 reads too many views"):
        sql("SELECT * FROM v11")


def test_a_view_by_another_hand_does_nothing_but_read(sql: SqlLake) -> None:
    view = sql.lake.create_view("db.v", "SELECT 1", "id int", namespace="db")
    for text in (
        "DROP TABLE t",
        "INSERT INTO t VALUES (1, 'x')",
        "WITH x AS (SELECT 1) FROM x INSERT INTO t SELECT 1, 'a'",
        "SELECT",
    ):
        view.replace(text, "id int", namespace="db")
        with pytest.raises(InvalidInput, match=r"the query of view db\.v cannot be read"):
            sql("SELECT * FROM v")
    assert sql("SELECT count(*) FROM t") == [(3,)]


def test_a_view_in_other_dialects_alone_is_refused_with_their_names(sql: SqlLake) -> None:
    sql.lake.create_view("db.v", {"trino": "SELECT 1", "hive": "SELECT 1"}, "id int")
    with pytest.raises(InvalidInput, match="only in that of trino, hive"):
        sql("SELECT * FROM v")
    with pytest.raises(InvalidInput, match="lose its query for hive, trino"):
        sql("CREATE OR REPLACE VIEW v AS SELECT 1 AS id")


def test_views_made_elsewhere_may_say_the_catalogs_name_and_go_by_place(sql: SqlLake) -> None:
    view = sql.lake.create_view("db.v", "SELECT s, id FROM prod.db.t", "a string, b long")
    from msgspec.structs import replace

    def by_another(metadata: object) -> object:
        versions = (replace(metadata.versions[0], default_catalog="prod"),)  # type: ignore[attr-defined]
        return replace(metadata, versions=versions)  # type: ignore[type-var]

    view.change(by_another)  # type: ignore[arg-type]
    assert sql("SELECT b, a FROM v WHERE b = 1") == [(1, "a")]


def test_a_view_is_told_of_as_tables_are(sql: SqlLake) -> None:
    sql("CREATE VIEW v (n COMMENT 'it''s', w) COMMENT 'c' AS SELECT id, s FROM t")
    # Other tests of the session may have left temporary ones.
    assert [each for each in sql("SHOW VIEWS") if not each[2]] == [("db", "v", False)]
    assert sql("SHOW VIEWS IN db LIKE 'x*'") == []
    assert sql("SHOW TABLES") == [("db", "t", False)]
    assert sql("DESCRIBE v") == [("n", "int", "it's"), ("w", "string", None)]
    told = dict(row[:2] for row in sql("DESCRIBE EXTENDED v"))
    assert (told["Type"], told["View Text (spark)"]) == ("VIEW", "SELECT id, s FROM t")
    assert sql("DESCRIBE v w") == [("col_name", "w"), ("comment", None), ("data_type", "string")]
    assert sql("SHOW COLUMNS IN v") == [("n",), ("w",)]
    assert sql("SHOW TBLPROPERTIES v") == [("comment", "c")]
    [[made]] = sql("SHOW CREATE TABLE v")
    sql("DROP VIEW v")
    sql(made)
    assert sql("SHOW CREATE TABLE v") == [(made,)]
    assert sql("SELECT n FROM v") == [(1,), (2,), (3,)]


def test_a_view_is_altered_renamed_and_dropped(sql: SqlLake) -> None:
    sql("CREATE VIEW v AS SELECT id FROM t")
    with pytest.raises(AlreadyExists, match=r"view db\.v exists"):
        sql("CREATE VIEW v AS SELECT s FROM t")
    sql("CREATE VIEW IF NOT EXISTS v AS SELECT s FROM t")
    sql("ALTER VIEW v SET TBLPROPERTIES ('a' = '1', 'b' = '2')")
    sql("ALTER VIEW v UNSET TBLPROPERTIES ('a')")
    with pytest.raises(InvalidInput, match="no property 'a'"):
        sql("ALTER VIEW v UNSET TBLPROPERTIES ('a')")
    sql("ALTER VIEW v AS SELECT s FROM t WHERE id = 1")
    sql("ALTER VIEW v RENAME TO w")
    assert sql("SELECT * FROM w") == [("a",)]
    assert sql.lake.view("db.w").properties == {"b": "2"}
    assert len(sql.lake.view("db.w").metadata.versions) == 2
    sql("DROP VIEW w")
    sql("DROP VIEW IF EXISTS db.w")
    assert sql.lake.views("db") == []
    sql("CREATE NAMESPACE gone")
    sql("CREATE VIEW gone.v AS SELECT 1 AS one")
    sql("DROP NAMESPACE gone CASCADE")
    assert sql.lake.views() == []


def test_what_is_for_tables_is_refused_for_views_and_the_other_way_round(sql: SqlLake) -> None:
    sql("CREATE VIEW v AS SELECT id FROM t")
    for statement, told in (
        ("INSERT INTO v VALUES (1)", "is a view: write to the tables"),
        ("DELETE FROM v", "is a view: write to the tables"),
        ("UPDATE v SET id = 1", "is a view: write to the tables"),
        ("MERGE INTO v USING t ON v.id = t.id WHEN MATCHED THEN DELETE", "is a view: write"),
        ("DROP TABLE v", "is a view, not a table"),
        ("DROP TABLE IF EXISTS v", "is a view, not a table"),
        ("ALTER TABLE v ADD COLUMN x INT", "is a view, not a table"),
        ("CACHE TABLE v", "CACHE TABLE x AS"),
        ("DROP VIEW t", "is no view: say TABLE"),
        ("ALTER VIEW t SET TBLPROPERTIES ('a' = '1')", "is no view: say TABLE"),
        ("CREATE VIEW x AS SELECT id, id FROM t", "two columns 'id'"),
        ("CREATE VIEW x (a, b) AS SELECT id FROM t", "names 2 columns, but its query finds 1"),
        ("CREATE VIEW x AS SELECT * FROM nowhere", "no such table or view"),
    ):
        with pytest.raises((InvalidInput, NotFound), match=told):
            sql(statement)
    for statement in ("CREATE TABLE v (a INT)", "CREATE VIEW t AS SELECT 1 AS one",
                      "CREATE OR REPLACE VIEW t AS SELECT 1 AS one"):  # fmt: skip
        with pytest.raises(AlreadyExists):
            sql(statement)
    with pytest.raises(Unsupported, match="WITH SCHEMA"):
        sql("CREATE VIEW x WITH SCHEMA EVOLUTION AS SELECT id FROM t")
    sql.lake.spark.range(2).createOrReplaceTempView("temporary")
    with pytest.raises(NotFound, match="a temporary view cannot be a part"):
        sql("CREATE VIEW x AS SELECT * FROM temporary")
    sql.lake.spark.catalog.dropTempView("temporary")
    assert (sql.lake.views("db"), sql.lake.tables("db")) == (["db.v"], ["db.t"])
