"""A table is planned when Spark asks for its files: by what was pushed down, and not before."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame, SparkSession

from benchmarks import plan_tables
from benchmarks.data import shape_of
from icetree.filters.filter import parse_filter
from icetree.spark import SparkLake, local
from icetree.spark.read import ask
from icetree.spark.read import scan as scans
from icetree.table.table import Table
from tests.effort import usually
from tests.rows.lake import foreign_delete
from tests.spark.files_read import files_read
from tests.spark.planned import Told
from tests.spark.reading import reading
from tests.spark.settings import setting
from tests.spark.sql_lake import SqlLake

pytestmark = pytest.mark.usefixtures("lazily")

COUNT = 100_000
NAME = "db.many"
FEW = "id < 10000"


@pytest.fixture(autouse=True)
def no_views(spark: SparkSession) -> Iterator[None]:
    """Leave no view in the session, whose name would stand for a table of other tests."""
    yield
    for name in ("t", "other", "many"):
        spark.catalog.dropTempView(name)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hold a table of many files in twenty leaves; none of the files is there."""
    place = tmp_path_factory.mktemp("many")
    with plan_tables.open_lake(place) as lake:
        lake.create_namespace("db")
        schema = shape_of(plan_tables.COLUMNS).schema
        days, leaves = [f"day(column_{plan_tables.TIME})"], {"write.leaf.max-entries": "5000"}
        by = [*days, f"bucket({plan_tables.BUCKETS}, column_{plan_tables.KEY})"]
        table = lake.create_table(NAME, schema, partition_by=by, properties=leaves)
        table.append_files(plan_tables.files(np.arange(COUNT), COUNT, table.metadata.shape()))
    return place


def planned(rows: DataFrame) -> int:
    """Have Spark ask for the files of a query, as running it would."""
    return files_read(rows)


def size(rows: DataFrame) -> int:
    """Have Spark ask how much there is to read, as it does before it chooses a join."""
    return int(str(rows._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


@pytest.mark.parametrize(
    "form", ["where=", ".where", "lake.sql", "join", "view", "view of a frame", "subquery"]
)
def test_every_form_of_a_condition_opens_as_many_leaves_and_lists_as_many_files(
    spark: SparkSession, many: Path, told: Told, form: str
) -> None:
    lake, name = SparkLake(spark, plan_tables.open_lake(many)), NAME
    if form == "where=":
        rows = lake.read(name, FEW)
    elif form == ".where":
        rows = lake.read(name).where(FEW)
    elif form == "lake.sql":
        rows = lake.sql(f"SELECT id FROM {name} WHERE {FEW}")
    elif form == "join":
        # Of equal keys, what is known of one side is known of the other.
        keys = spark.range(20_000).where(FEW)
        rows = lake.read(name).join(keys, on="id")
    elif form == "view":
        lake.temp_view(name, alias="many")
        rows = spark.sql(f"SELECT count(*) FROM many WHERE {FEW}")
    elif form == "view of a frame":
        lake.read(name).createOrReplaceTempView("many")
        rows = spark.sql(f"SELECT id FROM (SELECT * FROM many) WHERE {FEW}")
    else:
        rows = lake.sql(f"WITH c AS (SELECT id FROM {name}) SELECT max(id) FROM c WHERE {FEW}")
    assert told() == []
    assert size(rows) > 0
    assert planned(rows) == 10
    # Once, although Spark asked for the size as well, and infers more than was said.
    [(_, leaves)] = told()
    assert leaves == 1
    assert lake.table(name).scan().plan().metrics.data_leaves_read > 1


def test_the_same_question_on_the_same_snapshot_is_planned_once(
    spark: SparkSession, many: Path, told: Told
) -> None:
    lake, name = SparkLake(spark, plan_tables.open_lake(many)), NAME
    for _ in range(3):
        assert planned(lake.read(name).where(FEW)) == 10
        assert planned(lake.read(name, FEW)) == 10
        assert planned(lake.read(name, parse_filter(FEW))) == 10
    assert len(told()) == 1


@pytest.mark.parametrize(
    "condition",
    [
        "id < 10000 AND column_10 IS NOT NULL",
        "id IN (1, 2, 10001) AND id > 1",
        "id IN (1, 2) OR id = 7",
        "id BETWEEN 3 AND 12000",
        "NOT (id > 10000 OR id = 7)",
        "id % 2 = 1 AND id < 10000",
    ],
)
def test_a_condition_that_says_the_size_is_not_planned_again_for_the_files(
    spark: SparkSession, many: Path, told: Told, condition: str
) -> None:
    lake = SparkLake(spark, plan_tables.open_lake(many))
    rows = lake.read(NAME, condition)
    assert size(rows) > 0
    assert planned(rows) > 0
    assert len(told()) == 1


def test_a_large_plan_that_told_a_size_waits_for_the_files_to_be_asked_for(
    spark: SparkSession, many: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of answers that are larger than what is kept of them.
    monkeypatch.setattr(ask, "_KEEP_BYTES", 16)
    rows = SparkLake(spark, plan_tables.open_lake(many)).read(NAME, FEW)
    assert size(rows) > 0
    assert planned(rows) == 10
    assert len(told()) == 1


def test_the_size_told_is_what_where_leaves(spark: SparkSession, many: Path) -> None:
    lake, name = SparkLake(spark, plan_tables.open_lake(many)), NAME

    assert size(lake.read(name)) > 1_000 * size(lake.read(name, FEW)) > 0


def test_what_where_leaves_decides_how_spark_joins(spark: SparkSession, many: Path) -> None:
    lake, name = SparkLake(spark, plan_tables.open_lake(many)), NAME
    few, all = lake.read(name, FEW), lake.read(name)
    others = spark.range(10**9)

    with setting(spark, "spark.sql.autoBroadcastJoinThreshold", str(size(few))):
        few_joined, all_joined = (
            str(others.join(rows, on="id")._jdf.queryExecution().sparkPlan()) for rows in (few, all)
        )

    assert "BroadcastHashJoin" in few_joined
    assert "SortMergeJoin" in all_joined


# --- metadata columns ----------------------------------------------------------------------------

COLUMNS = (
    *("id", "s", "_file", "_pos", "_spec_id", "_partition", "_row_id"),
    *("_last_updated_sequence_number", "_deleted"),
)


@pytest.fixture(scope="module")
def mixed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SqlLake:
    """Hold rows of two specs and three commits, some of them gone."""
    made = SqlLake(spark, tmp_path_factory.mktemp("mixed"))
    made("CREATE TABLE t (id BIGINT, s STRING) PARTITIONED BY (truncate(1, s))")
    made("INSERT INTO t SELECT id, 'a' || id FROM range(0, 6, 1, 1)")
    made("DELETE FROM t WHERE id IN (1, 4)")
    made("ALTER TABLE t ADD PARTITION FIELD bucket(4, id) AS shard")
    made("INSERT INTO t VALUES (6, 'b'), (7, NULL)")
    return made


CONDITIONS = (
    "_spec_id = 1",
    "_spec_id <> 1 AND id > 2",
    "_spec_id = 0 OR id = 7",
    "NOT (_spec_id = 0)",
    "_file LIKE '%s_trunc%' AND _pos = 0",
    "_file IN (SELECT max(_file) FROM other)",
    "_partition.shard IS NULL",
    "_partition.s_trunc_1 = 'a' AND s > 'a2'",
    "_partition.s_trunc_1 IS NULL",
    "_row_id >= 3 AND _row_id < 7",
    "_last_updated_sequence_number > 1",
    "_deleted",
    "NOT _deleted AND _spec_id = 0",
    "_deleted AND _pos > 1 OR _spec_id = 1",
    "_pos + _spec_id = 1",
)


@pytest.mark.parametrize("lazily", usually([True, False], True))
def test_conditions_on_metadata_columns_are_right(mixed: SqlLake, lazily: bool) -> None:
    spark = mixed.lake.spark
    with reading(spark, lazily=lazily):
        every = mixed.lake.read("db.t", columns=COLUMNS)
        known = spark.createDataFrame([tuple(row) for row in every.collect()], every.schema)
        assert known.count() == 8
        known.createOrReplaceTempView("other")
        for condition in CONDITIONS:
            wanted = sorted(row.id for row in known.where(condition).collect())
            assert 0 < len(wanted) < 8
            found = sorted(row.id for row in every.where(condition).collect())
            assert found == wanted, condition


def test_a_condition_on_facts_of_a_file_leaves_other_files_out(mixed: SqlLake) -> None:
    rows = mixed.lake.read("db.t", columns=COLUMNS)
    assert files_read(rows) == 3
    assert files_read(rows.where("_spec_id = 0")) == 1
    assert files_read(rows.where("_partition.shard IS NOT NULL AND _spec_id < 9")) == 2


# --- what it must not change ---------------------------------------------------------------------


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[SparkLake]:
    made = local(tmp_path, spark=spark)
    made.create_namespace("db")
    yield made
    made.close()


def test_columns_that_changed_names_and_types_are_pruned_by_what_they_are(
    lake: SparkLake,
) -> None:
    table = lake.create_table("db.t", [("a", "int"), ("b", "int"), ("x", "float")])
    table.append(
        pa.table(
            {
                "a": pa.array([1], pa.int32()),
                "b": pa.array([2], pa.int32()),
                "x": pa.array([float("nan")], pa.float32()),
            }
        )
    )
    lake.sql("ALTER TABLE db.t RENAME COLUMN a TO c")
    lake.sql("ALTER TABLE db.t RENAME COLUMN b TO a")
    lake.sql("ALTER TABLE db.t RENAME COLUMN c TO b")
    lake.sql("ALTER TABLE db.t ALTER COLUMN a TYPE BIGINT")
    lake.sql("INSERT INTO db.t (a, b, x) VALUES (30, 40, 5)")
    lake.sql("ALTER TABLE db.t ADD COLUMN d INT DEFAULT 7")
    rows = lake.read("db.t")
    for condition, files in {
        "a = 2": [1],
        "b = 1": [1],
        "A > 2": [40],
        "b = 2": [],
        "x > 100": [1],
        "d = 7": [1, 40],
        "a + 0 = 30": [40],
        "a = 30 OR b = 1": [1, 40],
    }.items():
        assert sorted(row.b for row in rows.where(condition).collect()) == files
    assert files_read(rows.where("a = 2")) == files_read(rows.where("x > 100")) == 1


def test_tables_that_spark_cannot_read_by_itself_are_planned_at_once_and_it_is_logged(
    lake: SparkLake, caplog: pytest.LogCaptureFixture
) -> None:
    table = lake.create_table("db.t", [("id", "long"), ("key", "uuid")])
    table.append(pa.table({"id": [1, 2, 3], "key": pa.array([uuid4().bytes] * 3, pa.binary(16))}))
    with caplog.at_level(logging.INFO, logger=scans.__name__):
        assert sorted(row.id for row in lake.read("db.t").where("id > 2").collect()) == [3]
    assert "Spark cannot read its columns by itself" in caplog.text


def _delete_equal(table: Table, keys: pa.Table) -> None:
    with table.transaction() as tx:
        tx.apply(foreign_delete(table, keys))
        tx.commit()


def test_equality_deletes_apply_to_older_rows_of_the_files_that_a_query_asks_for(
    lake: SparkLake, told: Told
) -> None:
    small = {"write.root.max-data-entries": "1", "write.leaf.max-entries": "1"}
    table = lake.create_table("db.t", [("id", "long"), ("v", "string")], properties=small)
    table.append(pa.table({"id": [1, 2, None], "v": ["a", "b", "c"]}))
    _delete_equal(table, pa.table({"id": pa.array([2, None], pa.int64())}))
    table.append(pa.table({"id": [2, 12, None], "v": ["d", "e", "f"]}))
    _delete_equal(table, pa.table({"id": [12]}))
    _delete_equal(table, pa.table({"v": ["a", "z"], "id": [0, 1]}))
    table.append(pa.table({"id": [12, 22], "v": ["g", "h"]}))
    lake.delete("db.t", "v = 'h'")
    table.refresh()
    rows = lake.read("db.t")
    assert told() == []
    left = [(1, "a"), (12, "g"), (2, "d"), (None, "f")]
    assert sorted(map(tuple, rows.collect()), key=repr) == left
    assert sorted(row.v for row in rows.select("v").collect()) == ["a", "d", "f", "g"]
    few = rows.where("id > 5").select("v")
    assert [row.v for row in few.collect()] == ["g"]
    asked = told()
    assert asked[-1][0] == 2 < asked[0][0] == 3
    # The same condition, first for what is to be deleted by and then for what is read.
    assert [row.v for row in lake.read("db.t", "id > 5").select("v").collect()] == ["g"]
    assert [row.v for row in rows.where("v > 'a' AND id > 5").select("v").collect()] == ["g"]


def test_a_leaf_that_is_torn_is_told_when_it_is_read(lake: SparkLake, tmp_path: Path) -> None:
    small = {"write.root.max-data-entries": "1", "write.leaf.max-entries": "4"}
    columns = [("id", "long"), ("p", "long")]
    table = lake.create_table("db.t", columns, partition_by=["p"], properties=small)
    for _ in range(2):
        table.append(pa.table({"id": [1, 2, 3, 4], "p": [1, 2, 3, 4]}))
    rows = local(tmp_path, spark=lake.spark).read("db.t")
    [leaf, *_] = Path(table.location.removeprefix("file://")).rglob("*-m*.parquet")
    leaf.write_bytes(b"PAR1" + leaf.read_bytes()[4:-9] + b"nonsense!")
    with pytest.raises(IllegalArgumentException, match=r"icetree\.errors\.CorruptTable"):
        rows.collect()


def test_many_leaves_are_planned_on_executors_while_a_query_waits_for_its_files(
    lake: SparkLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"write.root.max-data-entries": "1", "write.leaf.max-entries": "4"}
    columns = [("id", "long"), ("p", "long")]
    table = lake.create_table("db.t", columns, partition_by=["p"], properties=small)
    for start in (0, 4):
        table.append(pa.table({"id": range(start, start + 4), "p": [0, 1, 2, 3]}))
    lake.delete("db.t", "id = 5")
    monkeypatch.setattr(ask, "LEAVES", 0)
    rows = lake.read("db.t")
    assert sorted(row.id for row in rows.where("p = 1 OR id = 6").collect()) == [1, 6]
    joined = rows.join(lake.read("db.t").where("p < 2"), on="id")
    assert sorted(row.id for row in joined.select("id").collect()) == [0, 1, 4]


def test_a_view_stays_at_its_snapshot_until_it_is_made_again(lake: SparkLake) -> None:
    table = lake.create_table("db.t", [("id", "long")])
    lake.create_table("db.other", [("id", "long")])
    table.append(pa.table({"id": [1, 2]}))
    lake.temp_views("db")
    # Java keeps what answers it, though nobody does here.
    gc.collect()
    table.append(pa.table({"id": [3]}))
    both = "SELECT (SELECT sum(id) FROM t), (SELECT count(*) FROM other)"
    assert lake.spark.sql(both).collect() == [(3, 0)]
    lake.temp_view("db.t")
    assert lake.spark.sql(both).collect() == [(6, 0)]


def test_temporary_views_have_whatever_names_tables_and_views_have(lake: SparkLake) -> None:
    odd = ("a-b", "a b", "2024", "select")
    for name in odd:
        lake.create_table(f"db.{name}", [("id", "long")]).append(pa.table({"id": [7]}))
    lake.sql("CREATE VIEW db.twice AS SELECT id * 2 AS id FROM db.`a-b`")
    lake.temp_views("db")
    lake.temp_view("db.twice")
    for name in (*odd, "twice"):
        found = lake.spark.sql(f"SELECT id FROM `{name}`").collect()
        assert found == [(14 if name == "twice" else 7,)]
