"""Writing tables through Spark: what rows replace, which files come, and what is left where it failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import icetree
from icetree.errors import InvalidInput
from icetree.spark import SparkLake, local
from icetree.table.lake import Lake
from tests.effort import usually
from tests.spark.reading import rows_in


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkLake]:
    made = local(tmp_path_factory.mktemp("lake"), spark=spark)
    made.create_namespace("db")
    yield made
    made.close()


def test_partitions_are_replaced_whole_and_filters_overwritten_in_part(lake: SparkLake) -> None:
    rows = lake.spark.range(10).selectExpr("id", "id % 2 AS p")
    lake.write("db.parts", rows).create(partition_by=["p"])
    lake.write(
        "db.parts", lake.spark.range(1).selectExpr("id + 100 AS id", "1L AS p")
    ).replace_partitions()
    assert {row["id"] for row in rows_in(lake, "db.parts")} == {0, 2, 4, 6, 8, 100}
    lake.write("db.parts", lake.spark.range(4, 5).selectExpr("id", "0L AS p")).overwrite("id < 7")
    assert {row["id"] for row in rows_in(lake, "db.parts")} == {4, 8, 100}
    with pytest.raises(InvalidInput, match="a new row does not match id < 7"):
        lake.write("db.parts", lake.spark.range(9, 10).selectExpr("id", "0L AS p")).overwrite(
            "id < 7", strict=True
        )
    assert {row["id"] for row in rows_in(lake, "db.parts")} == {4, 8, 100}


@pytest.mark.parametrize(
    ("text", "by_spark"),
    usually(product(["p = 0", "id < 7"], [False, True]), ("p = 0", True), ("id < 7", False)),
)
def test_rows_that_replace_others_need_not_be_like_them(
    lake: SparkLake, text: str, by_spark: bool
) -> None:
    where = f.expr(text) if by_spark else text
    rows = lake.spark.range(10).selectExpr("id", "id % 2 AS p")
    lake.write("db.elsewhere", rows).create_or_replace(partition_by=["p"])
    new = lake.spark.range(20, 21).selectExpr("id", "3L AS p")
    lake.write("db.elsewhere", new).overwrite(where)
    left = {1, 3, 5, 7, 9} if text == "p = 0" else {7, 8, 9}
    assert {row["id"] for row in rows_in(lake, "db.elsewhere")} == {*left, 20}
    with pytest.raises(InvalidInput, match="a new row does not match"):
        lake.write("db.elsewhere", new).overwrite(where, strict=True)
    assert {row["id"] for row in rows_in(lake, "db.elsewhere")} == {*left, 20}


def test_replacing_a_table_keeps_its_history(lake: SparkLake) -> None:
    was = lake.write("db.again", lake.spark.range(3)).create().metadata.current_snapshot_id
    new = lake.spark.range(2).selectExpr("'x' AS word", "id AS n")
    lake.write("db.again", new).create_or_replace(partition_by=["word"])
    assert lake.read("db.again").columns == ["word", "n"]
    assert lake.read("db.again").count() == 2
    assert lake.read("db.again", at=was).columns == ["id"]
    assert lake.read("db.again", at=was).count() == 3
    for _ in range(2):
        lake.write("db.again", new).key("once").replace()
    assert len(list(lake.table("db.again").history())) == 3
    with pytest.raises(InvalidInput, match="leave out branch"):
        lake.write("db.again", new).branch("other").replace()


def test_the_schema_is_merged_when_asked(lake: SparkLake) -> None:
    lake.write("db.merged", lake.spark.range(1).selectExpr("cast(id AS int) AS n")).create()
    wide = lake.spark.range(1).selectExpr("id + 5000000000 AS n", "'w' AS more")
    with pytest.raises(InvalidInput, match="no column 'more'"):
        lake.write("db.merged", wide).append()
    bad = lake.spark.range(1).selectExpr("CAST('x' AS int) AS n", "'w' AS more")
    with pytest.raises(InvalidInput, match="cannot be cast"):
        lake.write("db.merged", bad).merge_schema().append()
    before = lake.table("db.merged")
    assert before.schema.column_names == ["n"]
    lake.write("db.merged", wide).merge_schema().append()
    logs = [t.metadata.metadata_log for t in (before, lake.table("db.merged"))]
    assert len(logs[1]) == len(logs[0]) + 1, "schema and rows are one commit"
    assert rows_in(lake, "db.merged") == [
        {"n": 0, "more": None},
        {"n": 5_000_000_000, "more": "w"},
    ]


def test_files_hold_no_more_than_the_target(lake: SparkLake) -> None:
    rows = lake.spark.range(0, 20_000, 1, 1).selectExpr("id", "repeat('x', 50) AS s")
    table = lake.write("db.sized", rows).create(
        properties={"write.target-file-size-bytes": str(200_000)}
    )
    files = table.inspect.data_files()
    assert files.num_rows >= 5
    assert max(files["file_size_in_bytes"].to_pylist()) < 200_000
    assert lake.read("db.sized").count() == 20_000


def test_partitioned_rows_come_in_few_files_in_the_order_of_the_table(lake: SparkLake) -> None:
    rows = lake.spark.range(0, 4000, 1, 8).selectExpr("id", "id % 4 AS p", "-id AS o")
    table = lake.write("db.sorted", rows).create(partition_by=["bucket(4, p)"], order_by=["o"])
    assert table.inspect.data_files().num_rows <= 8
    for task in table.scan().plan().tasks["location"].to_pylist():
        found = lake.read("db.sorted", columns=["o", "_file", "_pos"])
        values = [r.o for r in found.where(f"_file LIKE '%{task}'").orderBy("_pos").collect()]
        assert values == sorted(values)


def nobody(_: Lake) -> None:
    """Leave a table to who made it."""


def append(lake: Lake) -> None:
    """Put a row into a table that is being made."""
    lake.table("db.late").append(pa.table({"id": [7]}))


def replace(lake: Lake) -> None:
    """Give the name of a table that is being made to another."""
    lake.drop_table("db.late")
    lake.create_table("db.late", [("id", "long")])


@pytest.mark.parametrize("meanwhile", [nobody, append, replace])
def test_a_table_that_comes_to_nothing_goes_again_unless_others_have_taken_it_up(
    lake: SparkLake, tmp_path: Path, meanwhile: Callable[[Lake], None]
) -> None:
    spark_lake = local(tmp_path, spark=lake.spark)
    spark_lake.create_namespace("db")
    place = f"sqlite:///{tmp_path}/catalog.db"

    def spoilt(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        with icetree.connect(place, warehouse=str(tmp_path / "warehouse")) as others:
            meanwhile(others)
        raise ValueError("spoilt")

    rows = lake.spark.range(0, 3, 1, 1).mapInArrow(spoilt, "id long")
    with pytest.raises(PythonException, match="spoilt"):
        spark_lake.write("db.late", rows).create()
    assert spark_lake.table_exists("db.late") == (meanwhile is not nobody)
    if meanwhile is append:
        assert rows_in(spark_lake, "db.late") == [{"id": 7}]
    spark_lake.drop_table("db.late", missing_ok=True)
    spark_lake.write("db.late", lake.spark.range(3)).create()
