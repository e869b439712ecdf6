"""A column that a table is partitioned by as it is, is a partition column of Spark's, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, NestedField
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from icetree.errors import CorruptTable
from icetree.spark.read.constant import constant_values
from icetree.spec.entry.stats import column
from icetree.spec.schema.shape import Shape
from tests.effort import usually
from tests.spark.files_read import files_opened
from tests.spark.reading import reading
from tests.spark.sql_lake import SqlLake

pytestmark = pytest.mark.usefixtures("lazily")

DAYS = 20


@pytest.fixture(scope="module")
def star(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SqlLake:
    """Hold sales, a file for each day, and what is known of each day."""
    made = SqlLake(spark, tmp_path_factory.mktemp("star"))
    made("CREATE TABLE sales (id BIGINT, day INT, euros BIGINT) PARTITIONED BY (day)")
    made(f"INSERT INTO sales SELECT id, id % {DAYS}, id FROM range(0, 2000, 1, 1)")
    made("CREATE TABLE days (day INT, name STRING)")
    made(f"INSERT INTO days SELECT id, concat('day ', id) FROM range(0, {DAYS}, 1, 1)")
    return made


def test_a_join_with_few_days_reads_the_files_of_those_days_alone(star: SqlLake) -> None:
    text = (
        "SELECT name, sum(euros) AS euros FROM sales JOIN days USING (day) "
        "WHERE name IN ('day 3', 'day 7') GROUP BY name ORDER BY name"
    )
    rows = star.lake.sql(text)
    found = [tuple(row) for row in rows.collect()]
    assert found == [(f"day {day}", sum(range(day, 2000, DAYS))) for day in (3, 7)]
    # Two of sales, and one of days.
    assert files_opened(rows) == 3


def test_what_is_deleted_stays_so_in_a_join(star: SqlLake) -> None:
    star("CREATE TABLE fewer (id BIGINT, day INT) PARTITIONED BY (day)")
    star(f"INSERT INTO fewer SELECT id, id % {DAYS} FROM range(0, 200, 1, 1)")
    star("DELETE FROM fewer WHERE id < 100")
    rows = (
        star.lake.read("db.fewer").join(star.lake.read("db.days"), on="day").where("name = 'day 3'")
    )
    assert sorted(row.id for row in rows.collect()) == [103, 123, 143, 163, 183]
    assert files_opened(rows) == 2


KINDS = {
    "boolean": ["true", "false"],
    "int": ["1", "-7"],
    "bigint": ["1", "9223372036854775807"],
    "string": ["''", "'__HIVE_DEFAULT_PARTITION__'", "'a b/ü%'", f"'{'long' * 100}'"],
    "date": ["DATE'1969-12-31'", "DATE'2026-01-01'"],
    "timestamp": ["TIMESTAMP'1969-12-31 23:59:59.999999Z'", "TIMESTAMP'2026-01-01 00:00:00Z'"],
    "timestamp_ntz": ["TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'"],
    "decimal(9,2)": ["CAST(1.25 AS DECIMAL(9,2))", "CAST(-0.01 AS DECIMAL(9,2))"],
    "decimal(38,3)": ["CAST(12345678901234567890123456789012345.125 AS DECIMAL(38,3))"],
    "binary": ["X'00ff'", "X''"],
    "double": ["0.5D", "-0.0D", "DOUBLE('NaN')", "DOUBLE('-Infinity')"],
}


@pytest.mark.parametrize(
    "kind", usually(KINDS, "string", "timestamp", "decimal(38,3)", "binary", "double")
)
def test_values_and_conditions_of_every_kind_are_what_files_hold(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    made = SqlLake(spark, tmp_path)
    made(f"CREATE TABLE t (id BIGINT, p {kind}) PARTITIONED BY (p)")
    values = [*KINDS[kind], "NULL"]
    rows = ", ".join(f"({number}, {value})" for number, value in enumerate(values))
    made(f"INSERT INTO t VALUES {rows}")
    conditions = ["true", "p IS NULL", "p IS NOT NULL", f"p < {values[0]}"]
    conditions += [f"p <=> {value}" for value in values]
    parts = [
        f"SELECT {number} AS question, id, p FROM t WHERE {each}"
        for number, each in enumerate(conditions)
    ]
    parts.append("SELECT -1 AS question, id, p FROM t WHERE p IN (SELECT p FROM t WHERE id < 1)")
    lazily = made(" UNION ALL ".join(parts))
    # Of files, Spark tells once which rows meet which condition.
    met = ", ".join(f"coalesce({each}, false)" for each in conditions)
    with reading(spark, lazily=False):
        held = made(f"SELECT id, p, {met} FROM t")
    wanted = [
        (number, id, p)
        for id, p, *answers in held
        for number, is_met in enumerate([*answers, id < 1])
        if is_met
    ]
    last = len(conditions)
    found = [(last if number == -1 else number, *row) for number, *row in lazily]
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


def test_a_column_that_some_spec_does_not_have_is_read_from_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = SqlLake(spark, tmp_path)
    made("CREATE TABLE t (id BIGINT, p INT, q INT) PARTITIONED BY (p)")
    made("INSERT INTO t VALUES (1, 1, 1), (2, 2, 2)")
    made("ALTER TABLE t REPLACE PARTITION FIELD p WITH q")
    made("INSERT INTO t VALUES (3, 1, 1), (4, 2, 1)")
    assert made("SELECT id, p, q FROM t") == [(1, 1, 1), (2, 2, 2), (3, 1, 1), (4, 2, 1)]
    assert made("SELECT id FROM t WHERE p = 2 AND q = 1") == [(4,)]


def test_specs_that_no_file_has_any_more_do_not_count(spark: SparkSession, tmp_path: Path) -> None:
    made = SqlLake(spark, tmp_path)
    made("CREATE TABLE t (id BIGINT, day INT)")
    made(f"INSERT INTO t SELECT id, id % {DAYS} FROM range(0, 200, 1, 1)")
    made("ALTER TABLE t ADD PARTITION FIELD day")
    made(f"INSERT INTO t SELECT id, id % {DAYS} FROM range(200, 400, 1, 1)")
    made("CREATE TABLE days AS SELECT 3 AS day, 'three' AS name UNION ALL SELECT 99, 'none'")
    text = "SELECT sum(id) FROM t JOIN days USING (day) WHERE name = 'three'"

    def opened() -> int:
        rows = made.lake.sql(text)
        assert rows.collect() == [(sum(range(3, 400, DAYS)),)]
        return files_opened(rows)

    # All of the table, and one of days.
    assert opened() == 1 + DAYS + 1
    made("CALL system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))")
    assert len(made.lake.table("db.t").metadata.shape().specs) == 2
    [[third]] = made("SELECT count(DISTINCT _file) FROM t WHERE day = 3")
    assert opened() == third + 1 < DAYS


def test_a_column_keeps_its_values_when_it_is_renamed_and_widened(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = SqlLake(spark, tmp_path)
    made("CREATE TABLE t (id BIGINT, p INT) PARTITIONED BY (p)")
    made("INSERT INTO t VALUES (1, 1), (2, 2)")
    made("ALTER TABLE t RENAME COLUMN p TO `w x`")
    made("ALTER TABLE t ALTER COLUMN `w x` TYPE BIGINT")
    made("INSERT INTO t VALUES (3, 3000000000)")
    assert made("SELECT id, `w x` FROM t") == [(1, 1), (2, 2), (3, 3_000_000_000)]
    assert made("SELECT id FROM t WHERE `w x` > 1") == [(2,), (3,)]


def test_conditions_that_only_python_knows_hold_for_it(star: SqlLake) -> None:
    odd = f.udf(lambda day: day % 10 == 3, "boolean")
    rows: DataFrame = star.lake.read("db.sales").where(odd("day")).where("id < 40")
    assert sorted(row.id for row in rows.collect()) == [3, 13, 23, 33]


def test_a_value_that_another_query_finds_rules_out_files(star: SqlLake) -> None:
    rows = star.lake.sql("SELECT id FROM sales WHERE day = (SELECT max(day) FROM days)")
    found: list[Any] = [row.id for row in rows.collect()]
    assert sorted(found) == list(range(DAYS - 1, 2000, DAYS))
    assert files_opened(rows) == 2


def test_a_file_whose_stats_do_not_tell_its_partition_is_told_of() -> None:
    field = NestedField(1, "p", IntegerType(), required=False)
    shape = Shape(schema=Schema(field))
    stats = {"lower": [1, 1], "upper": [1, 2], "values": [3, 3], "nulls": [0, 0]}
    columns = {column(1, name): pa.array(each) for name, each in stats.items()}
    files = pa.table({"location": ["a.parquet", "b.parquet"], **columns})
    assert constant_values(files.slice(0, 1), field, shape).to_pylist() == [1]
    with pytest.raises(CorruptTable, match=r"b\.parquet: its stats do not tell its partition: p"):
        constant_values(files, field, shape)
