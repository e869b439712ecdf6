"""Rows go to Python in batches that nobody weighs, unless one of them is large."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]

from icetree.spark import local
from icetree.spark.in_python import done_in_python
from icetree.spark.write import unweighed
from icetree.spark.write.arrange import arranged
from icetree.spark.write.unweighed import LARGE, done_unweighed, with_size
from tests.effort import law

_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_BATCH = 64 * 1024 * 1024
#: What a row may take: ten thousand of them fill a batch.
_SHARE = _BATCH // 10_000
_SEEN = pa.schema([("rows", pa.int64()), ("bytes", pa.int64()), ("bound", pa.int64())])
_TOLD = "rows bigint, bytes bigint, bound bigint"


def _seen(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Tell of each batch how many rows it has, what they take, and what bounds it."""
    task = TaskContext.get()
    assert task is not None
    bound = task.getLocalProperty(_BYTES)
    for batch in batches:
        told = {"rows": batch.num_rows, "bytes": batch.nbytes, "bound": bound and int(bound)}
        yield pa.RecordBatch.from_pylist([told], schema=_SEEN)


def _done(rows: DataFrame, *, table: str | None = None) -> tuple[list[dict[str, int]], list[int]]:
    """Return what was told of batches, and how many answers were undone, time by time."""
    undone: list[int] = []
    found = done_unweighed(
        rows,
        _seen,
        _SEEN,
        table=table or str(uuid4()),
        undo=lambda told: undone.append(told.num_rows),
    )
    assert found.schema.names == _SEEN.names
    return found.to_pylist(), undone


def _texts(spark: SparkSession, count: int, size: int) -> DataFrame:
    return spark.range(0, count, 1, 1).select("id", f.expr(f"repeat('x', {size})").alias("text"))


def test_batches_of_small_rows_are_not_weighed(spark: SparkSession) -> None:
    found, undone = _done(_texts(spark, 10_000, 100))
    assert [(each["rows"], each["bound"]) for each in found] == [(10_000, 2**31 - 1)]
    assert not undone


def test_a_batch_of_the_largest_small_rows_is_no_larger_than_one_that_was_weighed(
    spark: SparkSession,
) -> None:
    found, undone = _done(_texts(spark, 10_000, _SHARE - 17))
    assert [each["rows"] for each in found] == [10_000]
    assert found[0]["bytes"] < _BATCH
    assert not undone


def test_large_rows_are_done_again_in_batches_that_spark_weighs(spark: SparkSession) -> None:
    rows = _texts(spark, 1_000, 80_000)
    found, undone = _done(rows)
    assert sum(each["rows"] for each in found) == 1_000
    assert max(each["bytes"] for each in found) < 2 * _BATCH
    assert undone == [0]


def test_what_is_large_never_goes_to_python_unweighed(spark: SparkSession) -> None:
    told = with_size(_texts(spark, 10_000, 80_000))
    assert told is not None
    with unweighed._not_weighed(spark):
        found = done_in_python(told, _seen, _TOLD)
    assert [each["rows"] for each in found.to_pylist()] == [10_000]
    assert found["bytes"][0].as_py() < 2_000_000


def test_one_large_row_of_many_undoes_what_others_did(spark: SparkSession) -> None:
    size = f"CASE WHEN id = 399 THEN {_SHARE + 1} ELSE 3 END"
    rows = spark.range(0, 400, 1, 4).select("id", f.expr(f"repeat('x', {size})").alias("text"))
    found, undone = _done(rows)
    assert sum(each["rows"] for each in found) == 400
    assert undone == [3]


def test_a_table_that_was_given_large_rows_is_weighed_from_then_on(spark: SparkSession) -> None:
    table = str(uuid4())
    assert _done(_texts(spark, 10, 80_000), table=table)[1] == [0]
    assert _done(_texts(spark, 10, 80_000), table=table)[1] == []


def test_other_threads_have_their_batches_weighed(spark: SparkSession) -> None:
    rows = _texts(spark, 10, 10)
    found: list[int | None] = []

    def elsewhere() -> None:
        told = done_in_python(rows, _seen, _TOLD)
        found.extend(told["bound"].to_pylist())

    with unweighed._not_weighed(spark):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert found == [None]
    assert spark.sparkContext.getLocalProperty(_BYTES) is None


def test_what_somebody_said_of_batches_stays(spark: SparkSession) -> None:
    spark.conf.set(_BYTES, 1_000_000)
    try:
        assert with_size(_texts(spark, 10, 10)) is None
    finally:
        spark.conf.unset(_BYTES)


@pytest.mark.parametrize("kind", ["function", "batches", "stream", "nested"])
def test_where_others_would_go_to_python_unweighed_all_are_weighed(
    spark: SparkSession, kind: str
) -> None:
    rows = _texts(spark, 10, 10)

    def same(values: pa.Array) -> pa.Array:
        return values

    same.__annotations__ = {"values": pa.Array, "return": pa.Array}
    in_python = arrow_udf(same, "string")
    made = {
        "function": lambda: rows.withColumn("text", in_python("text")),
        "batches": lambda: rows.mapInArrow(lambda batches: batches, rows.schema),
        # What a stream hands over hides how it came about.
        "stream": lambda: spark.createDataFrame(rows.rdd, rows.schema),
        "nested": lambda: rows.join(
            rows.select(in_python("text").alias("text")).distinct(), "text", "left_semi"
        ),
    }[kind]()
    assert with_size(made) is None


@pytest.mark.parametrize(
    "type", ["map<string,string>", "array<string>", "array<array<int>>", "variant"]
)
def test_rows_that_cannot_tell_their_size_for_nothing_are_weighed(
    spark: SparkSession, type: str
) -> None:
    rows = spark.range(1).select(
        f.expr("parse_json('1')" if type == "variant" else f"CAST(NULL AS {type})")
    )
    assert with_size(rows) is None


def test_rows_meet_by_bucket_and_prefix_without_python(spark: SparkSession, tmp_path: Path) -> None:
    lake = local(tmp_path, spark=spark)
    lake.create_namespace("db")
    schema = pa.schema([("id", pa.int64()), ("a.b c", pa.string())])
    table = lake.create_table(
        "db.t", schema, partition_by=["bucket(4, id)", "truncate(1, `a.b c`)"]
    )
    made = spark.range(0, 400, 1, 8).select("id", f.expr("CAST(id % 2 AS STRING)").alias("a.b c"))
    assert with_size(arranged(made, table.metadata)) is not None
    lake.append("db.t", made)
    files = lake.table("db.t").inspect.files()
    assert files.num_rows == 8
    assert sum(files["record_count"].to_pylist()) == 400


@law(40, usual=10)
@given(data=st.data())
def test_a_row_is_large_if_what_varies_of_it_is(spark: SparkSession, data: st.DataObject) -> None:
    lengths = st.one_of(
        st.none(), st.integers(0, 20), st.integers(_SHARE // 2 - 200, _SHARE // 2 + 40)
    )
    drawn = data.draw(st.lists(st.tuples(lengths, lengths, lengths), min_size=1, max_size=5))
    given_rows = [
        (
            None if a is None else "ä" * (a // 2),
            None if b is None else {"n": 1, "bytes": b"x" * b},
            None if c is None else [1] * (c // 17),
        )
        for a, b, c in drawn
    ]
    schema = "text string, inner struct<n: int, bytes: binary>, numbers array<bigint>"
    rows = spark.createDataFrame(given_rows, schema).localCheckpoint()
    # Handed over by Python, they would be weighed: what is looked at here is what a row tells.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unweighed, "_is_python_elsewhere", lambda _: False)
        told = with_size(rows)
    assert told is not None
    for (a, b, c), was, now in zip(drawn, given_rows, told.collect(), strict=True):
        varies = (a or 0) // 2 * 2 + (b or 0) + (c or 0) // 17 * 17
        if now[LARGE]:
            assert varies > _SHARE - 100
            assert (now["text"], now["inner"], now["numbers"]) == (None, None, None)
        else:
            assert varies <= _SHARE
            inner = now["inner"] and {"n": 1, "bytes": bytes(now["inner"]["bytes"])}
            assert (now["text"], inner, now["numbers"]) == was


def test_large_rows_are_appended_and_merged_whole_and_nothing_else_stays(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = local(tmp_path, spark=spark)
    lake.create_namespace("db")
    lake.create_table("db.large", pa.schema([("id", pa.int64()), ("text", pa.string())]))
    source = tmp_path / "source"
    sizes = "CASE WHEN id % 100 = 99 THEN 9000 ELSE 5 END"
    made = spark.range(0, 400, 1, 4).select("id", f.expr(f"repeat('y', {sizes})").alias("text"))
    made.write.parquet(str(source))
    rows = spark.read.parquet(str(source))
    lake.append("db.large", rows)
    assert sorted(map(tuple, lake.read("db.large").collect())) == sorted(map(tuple, rows.collect()))
    unweighed._HAVE_LARGE.remove("db.large")
    more = spark.range(390, 410).select("id", f.expr("repeat('z', 9000)").alias("text"))
    lake.merge(
        "db.large", more, ["id"]
    ).when_matched_update_all().when_not_matched_insert_all().run()
    found = {row.id: row.text for row in lake.read("db.large").collect()}
    assert len(found) == 410
    assert {id for id, text in found.items() if text[0] == "z"} == set(range(390, 410))
    table = lake.table("db.large")
    assert not table.verify(deep=True).findings
    named = {*table.inspect.all_files()["file_path"].to_pylist()}
    on_disk = {
        file.as_uri()
        for file in Path(table.location.removeprefix("file://")).glob("data/**/*")
        if file.is_file()
    }
    assert on_disk <= {each if "://" in each else Path(each).as_uri() for each in named}
