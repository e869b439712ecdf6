"""What Spark does and does not do by field id: facts that a reader of ours must respect.

Spark finds a column to *read* by its field id, but matches a *pushed-down filter* by name. Where
a file has another column under that name (columns were swapped, or a dropped one's name was
taken again), rows are lost without a word. Names that no file has are always safe, at the price
of pushdown; the file's own names, renamed by a projection, are safe and keep it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.types import LongType, StringType, StructField, StructType

from icetree.spark.read.internals import found_by_id


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> str:
    """Hold one file with one row: column `a` (id 1) is 7, column `b` (id 2) is 8."""
    path = str(tmp_path / "rows")
    spark.createDataFrame([(7, 8)], schema(a=1, b=2)).coalesce(1).write.parquet(path)
    return path


def schema(**ids: int) -> StructType:
    return StructType(
        [StructField(name, LongType(), True, {"parquet.field.id": ids[name]}) for name in ids]
    )


def read(spark: SparkSession, folder: str, **ids: int) -> DataFrame:
    return spark.read.schema(schema(**ids)).parquet(folder)


def test_reading_goes_by_id_even_where_names_were_swapped(spark: SparkSession, folder: str) -> None:
    assert read(spark, folder, b=1, a=2).collect() == [Row(b=7, a=8)]


def test_pushed_filters_go_by_name_and_lose_rows_where_a_name_was_reused(
    spark: SparkSession, folder: str
) -> None:
    # Should this ever fail, Spark has learnt to push filters by id: the care can go.
    assert read(spark, folder, b=1, a=2).where("a = 8").collect() == []
    assert read(spark, folder, a=3).where("a IS NULL").collect() == []


@pytest.mark.parametrize(
    ("names", "ids"),
    [(("_1", "_2"), (1, 2)), (("a", "b"), (1, 2))],
    ids=["names no file has", "the file's own names"],
)
def test_filters_are_right_when_a_projection_renames(
    spark: SparkSession, folder: str, names: tuple[str, str], ids: tuple[int, int]
) -> None:
    scan = read(spark, folder, **dict(zip(names, ids, strict=True)))
    swapped = scan.select(col(names[0]).alias("b"), col(names[1]).alias("a"))
    assert swapped.where("a = 8").collect() == [Row(b=7, a=8)]
    assert swapped.where("a = 7").collect() == []


def test_ids_are_forgotten_where_single_fields_of_a_struct_are_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    def nested(name: str) -> StructType:
        inner = schema(a=2, b=3)
        return StructType([StructField(name, inner, True, {"parquet.field.id": 1})])

    path = str(tmp_path / "nested")
    spark.createDataFrame([((7, 8),)], nested("old")).write.parquet(path)
    whole = spark.read.schema(nested("new")).parquet(path)
    # Should this ever fail, Spark has learnt to prune by id: the format of ours can go.
    assert whole.select("new.a").collect() == [Row(a=None)]
    assert found_by_id(whole).select("new.a").collect() == [Row(a=7)]
    assert found_by_id(whole).select("new").collect() == [Row(new=Row(a=7, b=8))]


def test_types_of_fields_are_looked_up_by_name_first(spark: SparkSession, tmp_path: Path) -> None:
    def nested(first: str, second: str) -> StructType:
        inner = [
            StructField(first, LongType(), True, {"parquet.field.id": 2}),
            StructField(second, StringType(), True, {"parquet.field.id": 3}),
        ]
        return StructType([StructField("s", StructType(inner), True, {"parquet.field.id": 1})])

    path = str(tmp_path / "swapped")
    spark.createDataFrame([((7, "x"),)], nested("a", "b")).write.parquet(path)
    swapped = spark.read.schema(nested("b", "a")).parquet(path)
    # Should this ever fail, Spark goes by ids: names within structs may go to the reader as they are.
    with pytest.raises(Exception, match="DATA_TYPE_MISMATCH"):
        swapped.collect()
    assert found_by_id(swapped).collect() == [Row(s=Row(b=7, a="x"))]
