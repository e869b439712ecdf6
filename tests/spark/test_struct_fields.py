"""Spark reads single fields of structs, and finds these by their ids, whatever files call them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.spark.reading import reading
from tests.spark.sql_lake import SqlLake

PRUNING = "spark.sql.optimizer.nestedSchemaPruning.enabled"
BEFORE = (
    (
        "CREATE TABLE db.t (id BIGINT, s STRUCT<a: BIGINT, b: STRING, c: STRUCT<x: INT, y: INT>>, "
        "l ARRAY<STRUCT<p: INT, q: STRING>>, m MAP<STRING, STRUCT<v: BIGINT, w: DOUBLE>>)"
    ),
    (
        "INSERT INTO db.t SELECT id, named_struct('a', id, 'b', concat('b', id), 'c', named_struct('x', CAST(id AS INT), "
        "'y', CAST(-id AS INT))), array(named_struct('p', CAST(id AS INT), 'q', concat('q', id))), "
        "map('k', named_struct('v', id, 'w', id / 2)) FROM range(20)"
    ),
    (
        "INSERT INTO db.t VALUES (100, NULL, NULL, NULL), (101, named_struct('a', NULL, 'b', NULL, 'c', NULL), array(NULL), "
        "map('k', NULL))"
    ),
)
#: `a` and `b` have each other's names, `c.x` another one, and `d` and `c.z` are in no old file.
EVOLVED = (
    "ALTER TABLE db.t RENAME COLUMN s.a TO was_a",
    "ALTER TABLE db.t RENAME COLUMN s.b TO a",
    "ALTER TABLE db.t RENAME COLUMN s.was_a TO b",
    "ALTER TABLE db.t RENAME COLUMN s.c.x TO left",
    "ALTER TABLE db.t ADD COLUMN s.d BIGINT",
    "ALTER TABLE db.t ADD COLUMN s.c.z INT",
    "ALTER TABLE db.t DROP COLUMN l.element.p",
    "ALTER TABLE db.t ADD COLUMN l.element.p STRING",
    "ALTER TABLE db.t RENAME COLUMN m.value.v TO w2",
)
AFTER = (
    (
        "INSERT INTO db.t VALUES (200, named_struct('b', 7L, 'a', 'new', 'c', named_struct('left', 1, 'y', 2, 'z', 3), 'd', 9L), "
        "array(named_struct('q', 'n', 'p', 'text')), map('k', named_struct('w2', 5L, 'w', 1.5D)))"
    ),
)
#: What is asked, and fields of structs that no file is read for.
QUERIES = {
    "SELECT id, s.a FROM db.t": "left:",
    "SELECT id, s.b, s.c.left FROM db.t": "y:",
    "SELECT id, s.d FROM db.t": "left:",
    "SELECT id, s.c.z FROM db.t": "left:",
    "SELECT id FROM db.t WHERE s.c.left > 5": "y:",
    "SELECT id FROM db.t WHERE s.b = 7": "y:",
    "SELECT id FROM db.t WHERE s.a = 'b3' OR s.d = 9": "y:",
    "SELECT id, s.d FROM db.t WHERE s IS NOT NULL": "y:",
    "SELECT id, s.d FROM db.t WHERE s IS NULL": None,
    "SELECT id, s.c.z FROM db.t WHERE s.c IS NULL": None,
    "SELECT id, s FROM db.t": None,
    "SELECT id, l.q FROM db.t": "p:",
    "SELECT id, l.p FROM db.t": "q:",
    "SELECT id, l[0].p FROM db.t": "q:",
    "SELECT id, m['k'].w2 FROM db.t": "w:",
    "SELECT id, m['k'].w FROM db.t": None,
    "SELECT t.id, u.s.a FROM db.t JOIN db.t u ON t.s.b = u.id": "y:",
    "SELECT max(s.c.left), count(s.a), count(s.d) FROM db.t": "y:",
    "SELECT id, s.a, _pos, _row_id, _file IS NULL FROM db.t": "y:",
    "SELECT id, s.b FROM db.t VERSION AS OF 'first'": None,
}


@pytest.fixture(scope="module")
def evolved(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SqlLake:
    """A table whose structs have changed, with deleted rows in old files and new ones."""
    made = SqlLake(spark, tmp_path_factory.mktemp("structs"))
    made.lake.create_namespace("db", exist_ok=True)
    tag = "ALTER TABLE db.t CREATE TAG first"
    delete = "DELETE FROM db.t WHERE s.c.left IN (3, 4)"
    for statement in (*BEFORE, tag, *EVOLVED, *AFTER, delete):
        made.lake.sql(statement)
    return made


@contextmanager
def pruning(spark: SparkSession, *, on: bool) -> Iterator[None]:
    before = spark.conf.get(PRUNING)
    spark.conf.set(PRUNING, str(on).lower())
    try:
        yield
    finally:
        spark.conf.set(PRUNING, before or "")


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(map(str, frame.collect()))


def read_schema(frame: DataFrame) -> str:
    plan = str(frame._jdf.queryExecution().executedPlan().toString())
    return plan.partition("ReadSchema: ")[2].partition("\n")[0]


@pytest.mark.parametrize(
    ("lazily", "query"),
    [
        *((True, query) for query in QUERIES),
        # Planned at once, files are listed for a relation of Spark's own.
        *((False, query) for query in [*QUERIES][:4]),
    ],
)
def test_a_field_alone_is_what_it_is_in_the_whole_struct(
    evolved: SqlLake, lazily: bool, query: str
) -> None:
    spark, left_out = evolved.lake.spark, QUERIES[query]
    with reading(spark, lazily=lazily), pruning(spark, on=True):
        alone = evolved.lake.sql(query)
        if left_out is not None:
            assert left_out not in read_schema(alone), read_schema(alone)
        found = rows_of(alone)
    with pruning(spark, on=False):
        assert found == rows_of(evolved.lake.sql(query))


def test_fields_are_those_that_a_scan_in_one_process_finds(evolved: SqlLake) -> None:
    """Whole structs of Spark's could be wrong in the same way."""
    rows = evolved.lake.table("db.t").scan().to_arrow().to_pylist()
    alone = evolved.lake.sql("SELECT id, s.a, s.b, s.d, s.c.left, s.c.z, s.c.y FROM db.t").collect()
    wanted = {}
    for row in rows:
        s = row["s"] or {}
        c = s.get("c") or {}
        wanted[row["id"]] = (
            s.get("a"),
            s.get("b"),
            s.get("d"),
            c.get("left"),
            c.get("z"),
            c.get("y"),
        )
    assert {row[0]: tuple(row)[1:] for row in alone} == wanted


def test_another_session_of_the_same_spark_finds_fields_by_their_ids(evolved: SqlLake) -> None:
    """As those of a Thrift server do, which nobody has set up."""
    spark = evolved.lake.spark
    frame = evolved.lake.read("db.t")
    frame.createOrReplaceGlobalTempView("structs")
    other = spark.newSession()
    query = "SELECT id, s.a, s.c.left, l.q FROM global_temp.structs"
    assert rows_of(other.sql(query)) == rows_of(frame.selectExpr("id", "s.a", "s.c.left", "l.q"))
    spark.catalog.dropGlobalTempView("structs")
