"""What a statement calls by its full name is that, whatever else in it has the same last name."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icetree.errors import InvalidInput
from tests.effort import usually
from tests.spark.sql_lake import SqlLake


@pytest.fixture(scope="module")
def still(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SqlLake:
    return lake_of(spark, tmp_path_factory.mktemp("lake"))


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> SqlLake:
    return lake_of(spark, tmp_path)


def lake_of(spark: SparkSession, folder: Path) -> SqlLake:
    """Make tables `t` in three namespaces, one of which is in use, and `x` beside them."""
    made = SqlLake(spark, folder)
    rows = {"db.t": (1, 2, 3), "a.t": (2, 3, 4), "a.b.t": (3, 4, 5), "db.x": (3,)}
    for name, ids in rows.items():
        made.lake.create_namespace(name.rpartition(".")[0], exist_ok=True)
        made(f"CREATE TABLE {name} (id BIGINT, s STRING)")
        made(f"INSERT INTO {name} VALUES " + ", ".join(f"({id}, '{name}{id}')" for id in ids))
    made("CREATE VIEW a.v AS SELECT * FROM a.t")
    made("CREATE VIEW db.v AS SELECT * FROM db.t")
    return made


#: Queries, and the same where every table has an alias.
QUERIES = [
    (
        "SELECT id FROM db.t WHERE NOT EXISTS (SELECT 1 FROM a.t WHERE a.t.id = db.t.id)",
        "SELECT id FROM db.t AS x WHERE NOT EXISTS (SELECT 1 FROM a.t AS y WHERE y.id = x.id)",
    ),
    (
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM a.t WHERE a.t.id = db.t.id)",
        "SELECT id FROM db.t AS x WHERE EXISTS (SELECT 1 FROM a.t AS y WHERE y.id = x.id)",
    ),
    (
        "SELECT db.t.*, a.t.s FROM db.t JOIN a.t ON db.t.id = a.t.id AND a.t._pos >= 0",
        "SELECT x.*, y.s FROM db.t AS x JOIN a.t AS y ON x.id = y.id",
    ),
    (
        (
            "SELECT DB.t.id, (SELECT max(`a`.`b`.t.s) FROM a.b.t WHERE a.b.t.id = db.T.id) AS s, "
            "(SELECT max(a.t.s) FROM a.t WHERE a.t.id = db.t.id) FROM db.t"
        ),
        (
            "SELECT x.id, (SELECT max(y.s) FROM a.b.t AS y WHERE y.id = x.id) AS s, "
            "(SELECT max(z.s) FROM a.t AS z WHERE z.id = x.id) FROM db.t AS x"
        ),
    ),
    # What has the name is an alias, a CTE, a view.
    (
        "SELECT id FROM db.t WHERE EXISTS (SELECT 1 FROM db.x AS t WHERE id = db.t.id)",
        "SELECT id FROM db.t AS y WHERE EXISTS (SELECT 1 FROM db.x AS z WHERE z.id = y.id)",
    ),
    (
        (
            "WITH t AS (SELECT 3L AS id) SELECT id FROM db.t WHERE EXISTS "
            "(SELECT 1 FROM t WHERE id = db.t.id)"
        ),
        "SELECT id FROM db.t AS y WHERE id = 3",
    ),
    (
        "SELECT id FROM db.v WHERE EXISTS (SELECT 1 FROM a.v WHERE a.v.id = db.v.id)",
        "SELECT id FROM db.v AS x WHERE EXISTS (SELECT 1 FROM a.v AS y WHERE y.id = x.id)",
    ),
    # The inner one of a table that is named twice is meant within.
    (
        "SELECT id FROM db.t WHERE id IN (SELECT db.t.id + 1 FROM db.t WHERE db.t.id > 1)",
        "SELECT id FROM db.t AS x WHERE id IN (SELECT y.id + 1 FROM db.t AS y WHERE y.id > 1)",
    ),
    # A short name where nothing else is called so.
    (
        "SELECT t.id FROM t WHERE t.id IN (SELECT a.t.id - 1 FROM a.t WHERE a.t.s > 'a.t2')",
        "SELECT x.id FROM db.t AS x WHERE x.id IN (2, 3)",
    ),
    # A short name beside full ones, of which there is but one.
    (
        "SELECT t.id FROM db.t JOIN db.x ON db.t.id = db.x.id WHERE t.id > 0",
        "SELECT y.id FROM db.t AS y JOIN db.x AS z ON y.id = z.id",
    ),
    (
        "SELECT id FROM t VERSION AS OF 'main' WHERE EXISTS (SELECT 1 FROM a.t WHERE a.t.id = db.t.id)",
        "SELECT id FROM t AS x WHERE EXISTS (SELECT 1 FROM a.t AS y WHERE y.id = x.id)",
    ),
]


@pytest.mark.parametrize(("query", "plain"), usually(QUERIES, QUERIES[0], *QUERIES[::2]))
def test_a_column_is_of_the_table_that_it_names_in_full(
    still: SqlLake, query: str, plain: str
) -> None:
    found = still(query)
    assert found == still(plain)
    assert found
    still(f"CREATE OR REPLACE TEMPORARY VIEW seen AS {query}")
    assert still("SELECT * FROM seen") == found


@pytest.mark.parametrize(
    "query",
    [
        "SELECT t.id FROM db.t WHERE EXISTS (SELECT 1 FROM a.t WHERE a.t.id = db.t.id)",
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM a.t WHERE a.t.id = t.id)",
        "DELETE FROM t WHERE EXISTS (SELECT 1 FROM a.t WHERE a.t.id = t.id)",
        "MERGE INTO t USING a.t ON t.id = a.t.id WHEN MATCHED THEN DELETE",
    ],
)
def test_a_short_name_that_may_be_either_is_refused(still: SqlLake, query: str) -> None:
    with pytest.raises(InvalidInput, match=r"'t' may be .* alias"):
        still(query)


#: Statements on `db.t`, and what is there then.
CHANGES = [
    (
        "DELETE FROM db.t WHERE EXISTS (SELECT 1 FROM a.t WHERE a.t.id = db.t.id)",
        [(1, "db.t1")],
    ),
    (
        "DELETE FROM t WHERE db.t.id NOT IN (SELECT a.t.id FROM a.t WHERE a.t.s <> db.t.s)",
        [(2, "db.t2"), (3, "db.t3")],
    ),
    (
        "UPDATE db.t SET db.t.s = (SELECT max(a.t.s) FROM a.t WHERE a.t.id = db.t.id) WHERE db.t.id > 1",
        [(1, "db.t1"), (2, "a.t2"), (3, "a.t3")],
    ),
    (
        "DELETE FROM db.t WHERE id IN (SELECT db.t.id FROM db.t WHERE db.t.id > 2)",
        [(1, "db.t1"), (2, "db.t2")],
    ),
    (
        (
            "MERGE INTO db.t USING a.t ON db.t.id = a.t.id WHEN MATCHED AND a.t.id > 2 THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET db.t.s = a.t.s WHEN NOT MATCHED THEN INSERT (id) VALUES (a.t.id)"
        ),
        [(1, "db.t1"), (2, "a.t2"), (4, None)],
    ),
    # CTEs are known to every query of the statement that they stand before.
    (
        "WITH x AS (SELECT 1L AS id) DELETE FROM t WHERE id IN (SELECT id FROM x)",
        [(2, "db.t2"), (3, "db.t3")],
    ),
    (
        (
            "WITH x AS (SELECT id - 1 AS id FROM x), y AS (TABLE x) DELETE FROM t AS z "
            "WHERE EXISTS (WITH v AS (TABLE y) SELECT 1 FROM v WHERE v.id = z.id) OR id IN (TABLE x)"
        ),
        [(1, "db.t1"), (3, "db.t3")],
    ),
    (
        (
            "WITH x AS (SELECT 1L AS id) UPDATE t SET s = (SELECT 'n' || max(id) FROM x) "
            "WHERE id IN ((SELECT id FROM x) UNION (SELECT id + 1 FROM x))"
        ),
        [(1, "n1"), (2, "n1"), (3, "db.t3")],
    ),
    (
        "WITH x AS (SELECT 1L AS id) MERGE INTO t USING x ON t.id = x.id WHEN MATCHED THEN DELETE",
        [(2, "db.t2"), (3, "db.t3")],
    ),
    (
        "INSERT OVERWRITE t WITH x AS (SELECT 7L AS id) SELECT id, 's' FROM x",
        [(7, "s")],
    ),
    (
        "WITH x AS (SELECT 7L AS id) INSERT OVERWRITE t SELECT id, 's' FROM x",
        [(7, "s")],
    ),
]


@pytest.mark.parametrize(("statement", "rows"), usually(CHANGES, CHANGES[0], *CHANGES[::2]))
def test_a_statement_changes_the_rows_that_its_names_tell(
    sql: SqlLake, statement: str, rows: list[tuple[object, ...]]
) -> None:
    sql(statement)
    assert sql("SELECT * FROM db.t") == rows
    assert sql("SELECT id FROM a.t") == [(2,), (3,), (4,)]


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        ("(7, DEFAULT), (8, 'x') LIMIT 1", [(7, "none")]),
        ("(7, DEFAULT) UNION ALL SELECT 8L, 'e, (f)'", [(7, "none"), (8, "e, (f)")]),
        ("(7, DEFAULT), (9, 'DEFAULT') AS v (a, b)", [(7, "none"), (9, "DEFAULT")]),
        ("( 7 , default ),(8,concat('DEFAULT', 'a'))", [(7, "none"), (8, "DEFAULTa")]),
    ],
)
def test_what_follows_values_with_defaults_counts(
    sql: SqlLake, values: str, rows: list[tuple[object, ...]]
) -> None:
    sql("CREATE TABLE d (id BIGINT, s STRING DEFAULT 'none')")
    sql(f"INSERT INTO d VALUES {values}")
    assert sql("SELECT * FROM d") == rows


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM t",
        "UPDATE t SET s = 'u'",
        "INSERT OVERWRITE t VALUES (7, 'o')",
        "INSERT INTO t REPLACE WHERE id = 1 VALUES (7, 'o')",
        "MERGE INTO t USING x ON t.id = x.id WHEN MATCHED THEN DELETE",
        "TRUNCATE TABLE t",
        "ALTER TABLE t DROP COLUMN s",
        "ALTER TABLE t CREATE BRANCH b",
        "ALTER TABLE t RENAME TO y",
    ],
)
def test_no_table_is_changed_by_the_name_of_a_temporary_view(
    still: SqlLake, statement: str
) -> None:
    before = still.lake.table("db.t").metadata
    still.lake.spark.range(3).createOrReplaceTempView("t")
    try:
        with pytest.raises(InvalidInput, match=r"t is a temporary view, .*: say db\.t, or drop"):
            still(statement)
    finally:
        still.lake.spark.catalog.dropTempView("t")
    assert still.lake.table("db.t").metadata == before
