"""What reading and writing know of Spark's internals: a test fails here when Spark changes one of them."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from icetree.errors import CorruptTable
from icetree.spark.read import internals as read
from icetree.spark.read.deletes.marks import is_marked, marks_of
from icetree.spark.read.internals import ROW_INDEX, Asked, Internals, internals
from icetree.spark.write.internals import Bounds, bounds, is_all_javas, not_weighed
from tests.spark.files_read import files_read
from tests.spark.reading import reading

pytestmark = pytest.mark.usefixtures("lazily")

ROWS = 5_000
FILES = 3
FACTS = StructType([StructField("fact", StringType()), StructField("number", IntegerType())])
SCHEMA = StructType([StructField("n", LongType(), True, {"parquet.field.id": 1})])


@pytest.fixture
def inner(spark: SparkSession) -> Internals:
    found = internals(spark)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hold files of several row groups each; `n` counts on from file to file."""
    made = tmp_path_factory.mktemp("files")
    schema = pa.schema([pa.field("n", pa.int64(), metadata={"PARQUET:field_id": "1"})])
    for number in range(FILES):
        rows = pa.table([range(number * ROWS, number * ROWS + ROWS)], schema=schema)
        pq.write_table(rows, made / f"{number}.parquet", row_group_size=700)
    return made


def answer(folder: Path, **facts: pa.Array) -> pa.Buffer:
    paths = sorted(folder.iterdir())
    sizes = [path.stat().st_size for path in paths]
    table = pa.table({"path": [path.as_uri() for path in paths], "size": sizes, **facts})
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    return out.getvalue()


def relation(
    inner: Internals, files: Callable[[list[Any]], pa.Buffer], facts: StructType = FACTS
) -> DataFrame:
    asked = Asked(files=files, size=lambda: 12345)
    return inner.relation(asked, place="file:///place", facts=facts, schema=SCHEMA)


def test_files_are_asked_for_with_the_conditions_that_spark_pushed_down(
    inner: Internals, folder: Path
) -> None:
    asked: list[list[str]] = []

    def files(conditions: list[Any]) -> pa.Buffer:
        asked.append([each.sql() for each in conditions])
        return answer(folder, fact=["a", "b", None], number=pa.array([1, 2, 3], pa.int32()))

    rows = relation(inner, files)
    chosen = rows.where("n >= 4999").where("number < 3").select("fact", "number", "n")
    assert not asked
    assert chosen.count() == ROWS + 1
    assert sorted(asked[0]) == [
        "(n >= 4999L)",
        "(n IS NOT NULL)",
        "(number < 3)",
        "(number IS NOT NULL)",
    ]
    assert {tuple(row) for row in chosen.select("fact", "number").distinct().collect()} == {
        ("a", 1),
        ("b", 2),
    }
    assert rows._jdf.queryExecution().optimizedPlan().stats().sizeInBytes() == 12345
    assert len(rows.inputFiles()) == FILES


def test_two_relations_are_one_to_spark_where_they_ask_the_same(
    inner: Internals, folder: Path
) -> None:
    facts = answer(folder, fact=["a", "b", "c"], number=pa.array([1, 2, 3], pa.int32()))

    def rows(question: str | None) -> DataFrame:
        asked = Asked(files=lambda _: facts, size=lambda: 12345, question=question)
        return inner.relation(asked, place="file:///place", facts=FACTS, schema=SCHEMA)

    assert rows("this").sameSemantics(rows("this"))
    assert not rows("this").sameSemantics(rows("that"))
    assert not rows(None).sameSemantics(rows(None))
    twice = rows("this").groupBy("n").count().withColumnRenamed("n", "m")
    both = twice.join(rows("this").groupBy("n").count(), f.col("n") == f.col("m"))
    assert len(both.collect()) == ROWS * FILES
    told = both._jdf.queryExecution().executedPlan().toString()
    assert "Reused" in told, told


@pytest.fixture(scope="module")
def every(spark: SparkSession, folder: Path) -> DataFrame:
    facts = {"fact": ["a", "b", None], "number": pa.array([1, 2, 3], pa.int32())}
    with reading(spark, lazily=True):
        inner = internals(spark)
        assert inner is not None
        return relation(inner, lambda _: answer(folder, **facts))


@pytest.fixture(scope="module")
def known(every: DataFrame) -> DataFrame:
    """The same rows, which no index knows of."""
    return every.sparkSession.createDataFrame(every.toArrow())


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("number = 2", 1),
        ("number <> 2", 2),
        ("fact IS NULL", 1),
        ("fact > 'a' OR number = 1", 2),
        ("concat(fact, number) = 'a1'", 1),
        ("number IN (1, 3) AND fact IS NOT NULL", 1),
        ("number = (SELECT 1)", 1),
        ("number = 2 OR n = 0", 3),
    ],
)
def test_a_condition_on_facts_alone_is_tested_by_the_index(
    every: DataFrame, known: DataFrame, condition: str, files: int
) -> None:
    rows = every.where(condition)
    assert rows.count() == known.where(condition).count()
    if "SELECT" not in condition:
        assert files_read(rows) == files


def test_every_row_knows_where_it_stands(
    inner: Internals, folder: Path, spark: SparkSession
) -> None:
    facts = {"fact": ["a", "b", "c"], "number": pa.array([0, 1, 2], pa.int32())}
    most = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "5000")
    try:
        rows = relation(inner, lambda _: answer(folder, **facts))
        wrong = rows.where(f"n <> number * {ROWS} + {ROW_INDEX} OR {ROW_INDEX} IS NULL")
        assert wrong.count() == 0
        # Row groups that Parquet skips count, too.
        assert rows.where("n = 4321").select(ROW_INDEX).collect() == [(4321,)]
        assert rows.select(ROW_INDEX).count() == ROWS * FILES
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", most)


@pytest.mark.parametrize("generated", ["true", "false"])
def test_rows_are_looked_up_in_marks(
    inner: Internals, folder: Path, spark: SparkSession, generated: str
) -> None:
    was = spark.conf.get("spark.sql.codegen.wholeStage")
    spark.conf.set("spark.sql.codegen.wholeStage", generated)
    try:
        _look_up(inner, folder)
    finally:
        spark.conf.set("spark.sql.codegen.wholeStage", was)


def _look_up(inner: Internals, folder: Path) -> None:
    chance = np.random.default_rng(7)
    gone = [
        np.zeros(0, np.int64),
        np.flatnonzero(chance.random(ROWS) < 0.2),
        # Far apart, and the first and last of a piece.
        np.array([0, 63, 64, 1023, 1024, 4096, 4999]),
    ]
    made = [marks_of(rows) for rows in gone]
    schema = StructType(
        [StructField("last", LongType(), False), StructField("marks", BinaryType(), False)]
    )
    facts = {"last": [last for last, _ in made], "marks": [bits for _, bits in made]}
    rows = relation(inner, lambda _: answer(folder, **facts), schema)
    found = rows.where(is_marked(inner, "marks", "last", ROW_INDEX)).select("n").collect()
    wanted = np.concatenate([rows + at * ROWS for at, rows in enumerate(gone)])
    assert sorted(row.n for row in found) == wanted.tolist()
    # A row that no file should have has no mark, and harms nothing.
    beyond = is_marked(inner, "marks", "last", f"({ROW_INDEX} + 1000000000000)")
    assert rows.where(beyond).count() == 0


def test_a_number_outside_of_the_bytes_is_an_error(inner: Internals, spark: SparkSession) -> None:
    [row] = spark.range(1).select(inner.number_at(f.expr("X'0000000100'"), f.lit(0))).collect()
    assert row[0] == 1
    with pytest.raises(Exception, match="IndexOutOfBounds"):
        spark.range(1).select(inner.number_at(f.expr("X'00'"), f.lit(3))).collect()


@pytest.mark.parametrize("room", [True, False])
def test_a_large_answer_goes_by_a_file_that_nobody_finds_afterwards(
    inner: Internals,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    room: bool,
) -> None:
    written = tmp_path / "answers"
    if room:
        written.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(written))
    handed: list[str] = []
    real = read._in_file
    monkeypatch.setattr(read, "_in_file", lambda each: handed.append(real(each)) or handed[-1])
    facts = {"fact": ["x" * 100_000, "b", "c"], "number": pa.array([0, 1, 2], pa.int32())}
    rows = relation(inner, lambda _: answer(folder, **facts))
    assert rows.where("length(fact) = 100000").count() == ROWS
    assert len(rows.inputFiles()) == FILES
    assert len(handed) == (2 if room else 0)
    assert not room or not [*written.iterdir()]


def test_what_is_wrong_with_a_table_is_told_in_one_line(inner: Internals) -> None:
    def files(_: list[Any]) -> pa.Buffer:
        raise CorruptTable("m/7.parquet", "it is torn")

    with pytest.raises(IllegalArgumentException) as raised:
        relation(inner, files).collect()
    assert (
        str(raised.value).splitlines()[0] == "icetree.errors.CorruptTable: m/7.parquet: it is torn"
    )


def test_where_internals_are_not_to_be_had_there_are_none(
    spark: SparkSession, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reading(spark, lazily=False):
        assert internals(spark) is None
    assert internals(spark) is internals(spark) is not None

    class Remote:
        conf = spark.conf

    with caplog.at_level(logging.WARNING, logger=read.__name__):
        assert internals(Remote()) is None  # type: ignore[arg-type]
    assert "planned before Spark runs a query" in caplog.text
    monkeypatch.setattr(read, "_KNOWN", {})
    monkeypatch.setattr(read, "_COMPILED", {})
    monkeypatch.setattr(read, "_FORMAT", "NoSuchClass")
    pruning = spark.conf.get(read._PRUNING)
    try:
        with caplog.at_level(logging.WARNING, logger=read.__name__):
            assert internals(spark) is None
        # Structs are read whole then: Spark would look for their fields by name.
        rows = spark.range(1)
        assert read.found_by_id(rows) is rows
        assert spark.conf.get(read._PRUNING) == "false"
    finally:
        spark.conf.set(read._PRUNING, pruning or "")


@pytest.mark.parametrize("what", ["relation", "number_at", "by_id"])
def test_what_another_spark_lacks_is_told_before_a_query_needs_it(
    spark: SparkSession,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    def lacking(*_: object, **__: object) -> None:
        raise TypeError("HadoopFsRelation takes another argument")

    monkeypatch.setattr(read, "_KNOWN", {})
    monkeypatch.setattr(Internals, what, lacking)
    with caplog.at_level(logging.WARNING, logger=read.__name__):
        assert internals(spark) is None
    assert "HadoopFsRelation takes another argument" in caplog.text


def test_a_size_that_cannot_be_told_leaves_it_to_the_files_to_say_why(inner: Internals) -> None:
    def torn(*_: object) -> Any:
        raise CorruptTable("m/7.parquet", "it is torn")

    asked = Asked(files=torn, size=torn)
    rows = inner.relation(asked, place="file:///place", facts=FACTS, schema=SCHEMA)
    assert rows._jdf.queryExecution().optimizedPlan().stats().sizeInBytes() == read.UNKNOWN_BYTES
    # Of two sides that fail at once Spark tells otherwise.
    sound = rows.sparkSession.range(1).withColumnRenamed("id", "n")
    with pytest.raises(IllegalArgumentException, match=r"m/7\.parquet: it is torn"):
        rows.join(sound, "n").collect()


def _batches(rows: DataFrame) -> list[tuple[int, int]]:
    """Return how many rows and bytes each batch has that goes to Python."""

    def seen(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pylist([{"rows": batch.num_rows, "bytes": batch.nbytes}])

    return [tuple(row) for row in rows.mapInArrow(seen, "rows bigint, bytes bigint").collect()]


def test_a_thread_may_have_its_batches_end_at_a_number_of_rows_alone(spark: SparkSession) -> None:
    found = bounds(spark)
    assert found == Bounds(rows=10_000, bytes=2**26, rows_set=False, bytes_set=False)
    large = spark.range(0, 900, 1, 1).select(f.expr("repeat('x', 80000)").alias("text"))
    [first, *more] = _batches(large)
    assert first[0] < 900 == first[0] + sum(rows for rows, _ in more)
    with not_weighed(spark, 2_000):
        [(rows, size)] = _batches(large)
    assert rows == 900
    assert size > found.bytes
    with not_weighed(spark, 500):
        assert [rows for rows, _ in _batches(large)] == [500, 400]
    assert _batches(large)[0] == first


def test_what_a_session_has_set_goes_before_what_a_thread_wants(spark: SparkSession) -> None:
    few = spark.range(0, 50, 1, 1)
    wanted = {"maxRecordsPerBatch": "20", "maxBytesPerBatch": "1000000"}
    names = {f"spark.sql.execution.arrow.{name}": value for name, value in wanted.items()}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        found = bounds(spark)
        assert found == Bounds(rows=20, bytes=1_000_000, rows_set=True, bytes_set=True)
        with not_weighed(spark, 30):
            assert [rows for rows, _ in _batches(few)] == [20, 20, 10]
    finally:
        for name in names:
            spark.conf.unset(name)


def test_a_plan_tells_what_of_it_is_pythons(spark: SparkSession, folder: Path) -> None:
    few = spark.read.parquet(str(folder))
    assert is_all_javas(few.join(spark.range(3), few["n"] == f.col("id")))
    assert not is_all_javas(few.select(f.udf(lambda n: f"{n}", "string")("n").alias("text")))
    assert not is_all_javas(few.mapInArrow(lambda batches: batches, "n long"))
    assert not is_all_javas(spark.createDataFrame(few.rdd, "n long"))
