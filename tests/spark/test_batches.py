"""How many rows Spark hands to Python at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from icetree.spark.batches import BYTES, MOST_ROWS, ROWS
from icetree.spark.in_python import done_in_python

#: Text of which 64 MiB, where Spark ends a batch by itself, are fewer rows than `MOST_ROWS`.
_WIDE = "repeat('x', 8000)"


def _handed_over(rows: DataFrame) -> list[int]:
    """Return how many rows each batch had."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows]})

    found: list[int] = done_in_python(rows, work, "rows long")["rows"].to_pylist()
    return found


def test_batches_are_bounded_by_rows_and_not_weighed(spark: SparkSession) -> None:
    some = spark.range(0, MOST_ROWS + 10, 1, 1)
    assert _handed_over(some.selectExpr("id", f"{_WIDE} AS text")) == [MOST_ROWS, 10]


def test_rows_of_many_columns_come_in_smaller_batches(spark: SparkSession) -> None:
    some = spark.range(0, 1200, 1, 1)
    found = _handed_over(some.selectExpr(*(f"id AS c{at}" for at in range(2000))))
    assert found == [500, 500, 200]


@pytest.mark.parametrize("large", ["array({})", "named_struct('a', encode({}, 'UTF-8'))"])
def test_batches_of_values_that_may_be_large_are_weighed(spark: SparkSession, large: str) -> None:
    some = spark.range(0, MOST_ROWS + 10, 1, 1)
    found = _handed_over(some.selectExpr("id", f"{large.format(_WIDE)} AS value"))
    assert sum(found) == MOST_ROWS + 10
    assert max(found) < MOST_ROWS


def test_bounds_that_somebody_chose_stay(spark: SparkSession) -> None:
    spark.conf.set(ROWS, "7")
    try:
        assert _handed_over(spark.range(0, 20, 1, 1).toDF("id")) == [7, 7, 6]
        assert spark.conf.get(ROWS) == "7"
    finally:
        spark.conf.unset(ROWS)


def test_a_session_is_left_as_it_was(spark: SparkSession) -> None:
    before = [spark.conf.get(each) for each in (ROWS, BYTES)]
    _handed_over(spark.range(0, 20, 1, 1).toDF("id"))
    with pytest.raises(PySparkException):
        _handed_over(spark.range(0, 20, 1, 1).selectExpr("raise_error('no') AS id"))
    assert [spark.conf.get(each) for each in (ROWS, BYTES)] == before
