"""A metadata column that a query reads is in none of its lists that do not name it."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from icetree.errors import InvalidInput
from tests.effort import usually
from tests.spark.sql_lake import SqlLake


@pytest.fixture(scope="module")
def sql(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SqlLake:
    """Make tables with the rows 0 to 3 each: 1 is gone from `t`, 2 from `u`."""
    made = SqlLake(spark, tmp_path_factory.mktemp("lake"))
    for name, gone in (("t", 1), ("u", 2)):
        made(f"CREATE TABLE {name} (id BIGINT, s STRING)")
        made(f"INSERT INTO {name} SELECT id, 's' || id FROM range(0, 4, 1, 1)")
        made(f"DELETE FROM {name} WHERE id = {gone}")
    return made


#: Queries with a star, and the same with all columns said.
STARS = [
    (
        "SELECT * FROM t LATERAL VIEW explode(array(_pos)) AS p WHERE _pos = 0",
        "SELECT id, s, id FROM t WHERE id = 0",
    ),
    ("SELECT * FROM t, LATERAL (SELECT t._pos + 1 AS p)", "SELECT id, s, id + 1 FROM t"),
    (
        "SELECT *, count(*) FROM t WHERE _pos > 0 GROUP BY ALL",
        "SELECT id, s, 1L FROM t WHERE id > 0",
    ),
    ("SELECT struct(*) FROM t WHERE _pos = 0", "SELECT struct(id, s) FROM t WHERE id = 0"),
    (
        "SELECT to_json(struct(x.* EXCEPT (s), _pos)) FROM t AS x",
        "SELECT to_json(named_struct('id', id, '_pos', id)) FROM t",
    ),
    (
        "SELECT count(*), count(DISTINCT *), count(DISTINCT t.*) FROM t WHERE _row_id > -1",
        "SELECT count(*), count(DISTINCT id, s), count(DISTINCT id, s) FROM t",
    ),
    ("SELECT id FROM t WHERE hash(*) = hash(id, s) AND _pos = 0", "SELECT id FROM t WHERE id = 0"),
    ("SELECT * FROM t LEFT SEMI JOIN u ON t._pos = u._pos", "SELECT id, s FROM t WHERE id <> 2"),
    ("SELECT * FROM t ANTI JOIN u ON t.id = u._pos", "SELECT id, s FROM t WHERE id = 2"),
    (
        "SELECT id FROM t WHERE EXISTS (SELECT * FROM u WHERE u._pos = t._pos)",
        "SELECT id FROM t WHERE id <> 2",
    ),
]


@pytest.mark.parametrize(("query", "plain"), usually(STARS, *STARS[::2]))
def test_a_star_is_of_a_tables_own_columns_wherever_it_stands(
    sql: SqlLake, query: str, plain: str
) -> None:
    assert sql(query) == sql(plain)


def test_a_natural_join_compares_no_metadata(sql: SqlLake) -> None:
    assert sql("SELECT id, u._pos FROM t NATURAL JOIN u") == [(0, 0), (3, 3)]
    for columns in ("t._file, u._file", "_file"):
        with pytest.raises(InvalidInput, match=r"_file is read of more than one .* USING"):
            sql(f"SELECT {columns} FROM t NATURAL JOIN u")


def test_a_query_is_described_by_its_columns(sql: SqlLake) -> None:
    told = [("id", "bigint", None), ("p", "bigint", None)]
    assert sql("DESCRIBE QUERY SELECT t.id, t._pos AS p FROM t JOIN db.u USING (id)") == told
    assert sql("DESC WITH c AS (SELECT id, 1L AS p FROM db.t) SELECT * FROM c") == [
        ("id", "bigint", None),
        ("p", "bigint", None),
    ]


#: Queries with pipes, and the same without.
PIPES = [
    ("FROM t |> WHERE _pos = 0", "SELECT * FROM t WHERE id = 0"),
    ("FROM t |> WHERE _pos > 0 |> SELECT *", "SELECT * FROM t WHERE id > 0"),
    ("SELECT * FROM (TABLE t |> WHERE _pos = 0)", "SELECT * FROM t WHERE id = 0"),
    (
        "FROM t |> EXTEND 1 AS one |> WHERE _pos = 0 |> EXTEND _row_id AS r |> SET s = 'x'",
        "SELECT id, 'x' AS s, 1, id FROM t WHERE id = 0",
    ),
    ("FROM t |> WHERE _deleted", "SELECT 1L, 's1'"),
    ("FROM t |> JOIN u ON t.id = u._pos", "SELECT * FROM t JOIN u ON t.id = u.id"),
    ("FROM t |> WHERE id IN (FROM u |> WHERE _pos = 0 |> SELECT id)", "SELECT * FROM t LIMIT 1"),
    ("FROM t |> SELECT id, _pos |> WHERE _pos > 0", "SELECT id, id FROM t WHERE id > 0"),
    ("FROM t |> SELECT *, _pos AS p |> WHERE p = 0", "SELECT *, 0L FROM t WHERE id = 0"),
    ("FROM t |> AGGREGATE count(*) GROUP BY _pos", "SELECT id, 1L FROM t"),
    ("FROM t |> WHERE _pos = 0 |> UNION ALL TABLE u", "SELECT * FROM u UNION ALL SELECT 0L, 's0'"),
]


@pytest.mark.parametrize(("query", "plain"), usually(PIPES, *PIPES[:4], PIPES[7]))
def test_a_pipe_lets_out_what_its_steps_say(sql: SqlLake, query: str, plain: str) -> None:
    assert sql(query) == sql(plain)


def test_what_a_pipe_cannot_drop_is_refused(sql: SqlLake) -> None:
    for query in (
        "FROM t |> JOIN u ON t._pos = u._pos",
        "FROM t |> PIVOT (count(*) FOR s IN ('s0')) |> WHERE _pos = 0",
        "FROM t |> WHERE _pos = 0 UNION ALL TABLE u",
    ):
        with pytest.raises(InvalidInput, match=r"_pos .* select .* first"):
            sql(query)
