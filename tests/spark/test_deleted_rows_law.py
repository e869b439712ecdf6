"""Deleted rows come back where a query reads `_deleted` of their own table, and nowhere else.

A statement that says `_deleted` of something else finds what it finds under any other name.
"""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from icetree.errors import InvalidInput
from tests.effort import usually
from tests.spark.sql_lake import SqlLake


@pytest.fixture(scope="module")
def sql(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SqlLake:
    """Make tables with the rows 0 to 3 each: 1 is gone from `t`, 2 from `u`, and none from `w`.

    Others have structs with a field of that name, and there are views over `t`.
    """
    made = SqlLake(spark, tmp_path_factory.mktemp("lake"))
    for name, gone in (("t", 1), ("u", 2), ("w", None)):
        made(f"CREATE TABLE {name} (id BIGINT, s STRING)")
        made(f"INSERT INTO {name} SELECT id, 's' || id FROM range(0, 4, 1, 1)")
        if gone is not None:
            made(f"DELETE FROM {name} WHERE id = {gone}")
    for name in ("_deleted", "gone"):
        made(f"CREATE TABLE st_{name} (id BIGINT, m STRUCT<{name}: BOOLEAN>)")
        made(f"INSERT INTO st_{name} SELECT id, named_struct('{name}', id = 3) FROM t")
        made(f"INSERT INTO st_{name} VALUES (9, NULL)")
        made(f"DELETE FROM st_{name} WHERE id = 0")
        made(f"CREATE VIEW lasting_{name} AS SELECT id, s = 's2' AS is_gone FROM t")
    return made


#: Queries in which `{n}` is not the metadata column of a table that has lost rows.
SOMETHING_ELSE = [
    "SELECT id, s = 's2' AS {n} FROM t",
    "SELECT id, s = 's2' AS {n} FROM t ORDER BY {n}, id",
    "SELECT s = 's2' AS {n}, count(*) FROM t GROUP BY {n}",
    "SELECT id, s = 's2' AS {n}, NOT {n} AS is_alive FROM t",
    "SELECT id AS `{n}` FROM t",
    "SELECT id FROM (SELECT id, s = 's2' AS {n} FROM t) WHERE NOT {n}",
    "WITH c AS (SELECT id, s = 's2' AS {n} FROM t) SELECT id, {n} FROM c",
    (
        "WITH c AS (SELECT id, s = 's2' AS {n} FROM u) "
        "SELECT t.id, {n} FROM t JOIN c ON t.id = c.id WHERE NOT {n}"
    ),
    "WITH c ({n}, id) AS (SELECT false, id FROM t) SELECT id FROM c WHERE NOT {n}",
    "SELECT id, m.{n} FROM st_{n}",
    "SELECT id, m FROM st_{n} WHERE NOT m.{n}",
    "SELECT x.id, x.m.{n} FROM st_{n} AS x JOIN t ON t.id = x.id",
    "SELECT id, named_struct('{n}', s).{n} FROM t",
    "SELECT id, is_gone AS {n} FROM lasting_{n}",
    "SELECT id FROM t WHERE '{n}' <> s /* {n} */ -- {n}",
    "SELECT id, {n} FROM t LATERAL VIEW explode(array(true, false)) AS {n}",
    "SELECT t.id, x.{n} FROM t, LATERAL (SELECT t.id + 1 AS {n}) AS x",
    "SELECT id FROM t UNION ALL SELECT id FROM (SELECT id, false AS {n} FROM u WHERE id > 0) AS x",
    "SELECT id, transform(array(1), {n} -> {n} + 1) FROM t",
    "SELECT * FROM (VALUES (1, true), (2, false)) AS v (id, {n}) JOIN t USING (id)",
    "SELECT id, (SELECT max({n}) FROM (SELECT id AS {n} FROM u)) FROM t",
    "SELECT id, sum(id) OVER {n} FROM t WINDOW {n} AS (ORDER BY id)",
    "SELECT {n}.id FROM t AS {n}",
    "SELECT count(*) AS {n} FROM t",
]


@pytest.mark.parametrize("query", usually(SOMETHING_ELSE, *SOMETHING_ELSE[::2]))
def test_what_only_has_the_name_is_what_it_would_be_under_another(sql: SqlLake, query: str) -> None:
    found = sql(query.format(n="_deleted"))
    assert found == sql(query.format(n="gone"))
    assert found


#: Queries that read `_deleted` of one relation, beside others that say what they come to.
OF_ONE = [
    (
        "SELECT t.id FROM t JOIN u USING (id) WHERE NOT u._deleted",
        "SELECT t.id FROM t JOIN u USING (id)",
    ),
    (
        "SELECT t.id FROM t JOIN u USING (id) WHERE u._deleted",
        "SELECT 2L FROM range(1)",
    ),
    (
        "SELECT * FROM t JOIN u ON t.id = u.id WHERE u._deleted",
        "SELECT 2L, 's2', 2L, 's2' FROM range(1)",
    ),
    (
        "SELECT u.* FROM t JOIN u ON t.id = u.id WHERE u._deleted",
        "SELECT 2L, 's2' FROM range(1)",
    ),
    (
        "SELECT id FROM t WHERE id IN (SELECT id FROM u WHERE _deleted)",
        "SELECT 2L FROM range(1)",
    ),
    (
        "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND _deleted)",
        "SELECT id FROM t WHERE id <> 2",
    ),
    (
        "SELECT id FROM t WHERE _deleted AND EXISTS (SELECT 1 FROM u WHERE u.id = t.id)",
        "SELECT 1L FROM range(1)",
    ),
    # What is read in a subquery is read of its own table, although that without has one too.
    (
        (
            "SELECT t.id FROM t WHERE NOT t._deleted AND EXISTS "
            "(SELECT 1 FROM u WHERE u.id = t.id AND _deleted)"
        ),
        "SELECT 2L FROM range(1)",
    ),
    (
        (
            "SELECT t.id FROM t WHERE NOT t._deleted AND EXISTS "
            "(SELECT 1 FROM u WHERE u.id = t.id AND t._deleted)"
        ),
        "SELECT id FROM t WHERE false",
    ),
    (
        "SELECT a.id, b.id FROM t AS a JOIN t AS b ON a.id = b.id - 1 WHERE b._deleted",
        "SELECT 0L, 1L FROM range(1)",
    ),
    (
        "WITH c AS (SELECT id, _deleted FROM u) SELECT c.id, c._deleted FROM c JOIN t ON c.id = t.id",
        "SELECT id, id = 2 FROM t WHERE id <> 1",
    ),
    (
        "SELECT id, s = 's2' AS _deleted FROM t WHERE NOT t._deleted",
        "SELECT id, s = 's2' FROM t",
    ),
    (
        "SELECT id, false AS _deleted FROM t UNION ALL SELECT id, _deleted FROM u WHERE _deleted",
        "SELECT id, false FROM t UNION ALL SELECT 2L, true FROM range(1)",
    ),
    ("SELECT id, _DELETED FROM t WHERE id = 1", "SELECT 1L, true FROM range(1)"),
    (
        "SELECT _deleted, count(*) FROM t GROUP BY ALL",
        "SELECT id = 1, if(id = 1, 1L, 3L) FROM w WHERE id < 2",
    ),
    (
        "SELECT _deleted, count(*) AS n FROM t GROUP BY _deleted HAVING NOT _deleted ORDER BY n",
        "SELECT false, 3L FROM range(1)",
    ),
    ("SELECT id FROM t ORDER BY _deleted, id DESC", "SELECT id FROM w"),
    (
        "SELECT *, u._pos, t._pos FROM db.t JOIN u USING (id, s)",
        "SELECT id, s, id, id FROM u WHERE id <> 1",
    ),
    ("SELECT x.*, _deleted FROM t AS x WHERE id = 1", "SELECT 1L, 's1', true FROM range(1)"),
    ("SELECT t.id FROM t JOIN u USING (_file)", "SELECT id FROM t WHERE false"),
    ("SELECT id FROM db.t WHERE db.t._deleted", "SELECT 1L FROM range(1)"),
    ("FROM t |> WHERE _deleted |> SELECT id", "SELECT 1L FROM range(1)"),
    (
        "SELECT * FROM t TABLESAMPLE (100 PERCENT) AS x WHERE _deleted",
        "SELECT id, s FROM w WHERE id = 1",
    ),
    (
        "SELECT * FROM t VERSION AS OF 'main' AS x JOIN lasting_gone USING (id) WHERE NOT x._deleted",
        "SELECT id, s, s = 's2' FROM t",
    ),
    (
        "SELECT t.id, x.id FROM t, LATERAL (SELECT id FROM u WHERE u.id = t.id AND _deleted) AS x",
        "SELECT 2L, 2L FROM range(1)",
    ),
    (
        (
            "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND NOT EXISTS "
            "(SELECT 1 FROM w WHERE w.id = u.id AND NOT _deleted AND u._deleted))"
        ),
        "SELECT id FROM t WHERE id <> 2",
    ),
    (
        "SELECT id, grouping(_deleted) FROM t WHERE id = 1 GROUP BY GROUPING SETS ((id, _deleted), (id))",
        "SELECT 1L, explode(array(0Y, 1Y)) FROM range(1)",
    ),
    ("SELECT id FROM t WHERE s = (SELECT max(_file) FROM u)", "SELECT id FROM t WHERE false"),
    ("SELECT * EXCEPT (s), _pos FROM t WHERE _deleted", "SELECT 1L, 1L FROM range(1)"),
    (
        "SELECT x.* EXCEPT (s), u.s FROM t AS x JOIN u USING (id) WHERE x._deleted",
        "SELECT 1L, 's1' FROM range(1)",
    ),
    (
        "SELECT * FROM t PIVOT (count(s) FOR _pos IN (0, 1))",
        "SELECT id, if(id = 0, 1L, NULL), NULL FROM t",
    ),
]


@pytest.mark.parametrize(("query", "plain"), usually(OF_ONE, OF_ONE[7], *OF_ONE[::2]))
def test_deleted_rows_come_from_the_table_whose_column_is_read(
    sql: SqlLake, query: str, plain: str
) -> None:
    assert sorted(sql(query), key=repr) == sorted(sql(plain), key=repr)


def test_what_is_of_two_tables_is_ambiguous(sql: SqlLake) -> None:
    with pytest.raises(InvalidInput, match=r"`_deleted` is ambiguous.*`t`.*`u`"):
        sql("SELECT t.id FROM t JOIN u USING (id) WHERE _deleted")
    with pytest.raises(InvalidInput, match="number of columns"):
        sql("SELECT struct(*).id FROM t UNION SELECT id, true AS _deleted FROM u")
    with pytest.raises(InvalidInput, match="`_deletd` cannot be resolved"):
        sql("SELECT _deletd, id AS _deleted FROM t")


def _written(sql: SqlLake, name: str) -> dict[str, Any]:
    """Store what statements find that say a name of something else; return what is stored."""
    sql("CREATE OR REPLACE TABLE made (id BIGINT)")
    sql(f"INSERT INTO made SELECT id FROM (SELECT id, s = 's2' AS {name} FROM t) WHERE NOT {name}")
    sql(
        f"MERGE INTO made USING (SELECT id + 100 AS id, false AS {name} FROM t) AS x ON made.id = x.id "
        f"WHEN NOT MATCHED AND NOT x.{name} THEN INSERT (id) VALUES (x.id)"
    )
    sql(
        f"WITH c AS (SELECT id + 200 AS id, false AS {name} FROM t) "
        f"INSERT INTO made SELECT id FROM c WHERE NOT {name}"
    )
    sql(f"CREATE OR REPLACE TEMPORARY VIEW seen AS SELECT id, s = 's2' AS {name} FROM t")
    sql(f"CREATE OR REPLACE VIEW kept AS SELECT id FROM (SELECT id, true AS {name} FROM t)")
    sql(f"CREATE OR REPLACE TABLE copied AS SELECT id FROM (SELECT id, 1 AS {name} FROM t)")
    sql("CREATE OR REPLACE TABLE left_over AS SELECT id FROM range(0, 4, 1, 1)")
    sql(f"DELETE FROM left_over WHERE id NOT IN (SELECT id FROM (SELECT id, 1 AS {name} FROM t))")
    sql(f"UPDATE left_over SET id = 50 + (SELECT max({name}) FROM (SELECT id AS {name} FROM t))")
    sql.lake.spark.sql("DROP TABLE IF EXISTS sparks_own")
    place = f"{sql.lake.warehouse}/sparks/{name}"
    inner = f"SELECT id, 1 AS {name} FROM t"
    sql(f"CREATE TABLE sparks_own USING parquet LOCATION '{place}' AS SELECT id FROM ({inner})")
    tables = ("made", "seen", "kept", "copied", "left_over", "sparks_own")
    found = {each: sql(f"SELECT id FROM {each}") for each in tables}
    found["cached"] = sql(f"SELECT id, 1 AS {name} FROM t")
    return found


def test_what_is_stored_under_the_name_is_what_would_be_under_another(sql: SqlLake) -> None:
    sql("CACHE TABLE t")
    try:
        found = _written(sql, "_deleted")
        assert found == _written(sql, "gone")
    finally:
        sql("UNCACHE TABLE t")
        sql.lake.spark.sql("DROP TABLE IF EXISTS sparks_own")
    assert found["made"] == [(0,), (100,), (102,), (103,), (200,), (202,), (203,), (3,)]
    assert found["left_over"] == [(53,)] * 3
    assert found["kept"] == found["copied"] == found["sparks_own"] == [(0,), (2,), (3,)]


def test_subqueries_of_statements_that_change_rows_may_read_it(sql: SqlLake) -> None:
    sql("CREATE OR REPLACE TABLE some AS SELECT id FROM range(0, 4, 1, 1)")
    sql("DELETE FROM some WHERE id IN (SELECT id FROM t WHERE _deleted)")
    assert sql("SELECT id FROM some") == [(0,), (2,), (3,)]
    sql("UPDATE some SET id = (SELECT max(id) + 6 FROM u WHERE _deleted) WHERE id = 3")
    sql("INSERT INTO some SELECT id + 10 FROM t WHERE _deleted")
    sql(
        "MERGE INTO some USING (SELECT id FROM u WHERE _deleted) x ON some.id = x.id "
        "WHEN MATCHED THEN DELETE"
    )
    assert sql("SELECT id FROM some") == [(0,), (11,), (8,)]
    assert sql("SELECT id, _deleted FROM lasting_gone JOIN t USING (id) WHERE _deleted") == []
    [[told]] = sql("EXPLAIN SELECT id FROM t WHERE _deleted")
    assert "__icetree" in told
