"""Rows go to Python in batches that nobody weighs, unless one of them is large."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from py4j.java_gateway import JavaGateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from icetree.spark import local
from icetree.spark.in_python import done_in_python
from icetree.spark.write import unweighed
from icetree.spark.write.arrange import arranged
from icetree.spark.write.internals import bounds, not_weighed
from icetree.spark.write.unweighed import LARGE, Share, shares_of
from tests.effort import law
from tests.spark.made_in_python import made_in_python
from tests.spark.weighing import (
    AT_ONCE,
    BATCH,
    BYTES,
    ROWS,
    SHARE,
    SMALL,
    TOLD,
    done,
    metadata_telling,
    seen,
    setting,
    sized,
    texts,
)


def test_batches_of_small_rows_are_not_weighed_and_are_put_together_again(
    spark: SparkSession,
) -> None:
    found, undone = done(texts(spark, 12_500, 100))
    told = [(each["rows"], each["bound"]) for each in found]
    assert told == [(10_000, 2**31 - 1), (2_500, 2**31 - 1)]
    assert not undone


def test_a_batch_of_the_largest_small_rows_is_no_larger_than_one_that_was_weighed(
    spark: SparkSession,
) -> None:
    # The id, and where the text ends.
    rows = texts(spark, AT_ONCE, SHARE - 17 - 9)
    found, undone = done(rows)
    assert [each["rows"] for each in found] == [AT_ONCE]
    assert BATCH * 0.99 < found[0]["bytes"] < BATCH
    assert not undone
    assert done(texts(spark, 1, SHARE - 17 - 8))[1] == [0]


def test_large_rows_are_done_again_in_batches_that_spark_weighs(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    rows = texts(spark, 1_000, 80_000)
    found, undone = done(rows)
    assert [each["bound"] for each in found] == [None, None]
    assert sum(each["rows"] for each in found) == 1_000
    assert max(each["bytes"] for each in found) < 2 * BATCH
    assert undone == [0]
    [told] = [each.getMessage() for each in caplog.records if each.name == unweighed.__name__]
    assert "db.docs: a row takes 80026 bytes, more than 33554" in told
    assert f"set {BYTES}" in told


def test_what_is_large_never_goes_to_python_unweighed(spark: SparkSession) -> None:
    told = sized(texts(spark, 10_000, 80_000))
    assert told is not None
    with not_weighed(spark, 10_000):
        found = done_in_python(told, seen, TOLD)
    assert [each["rows"] for each in found.to_pylist()] == [10_000]
    assert found["bytes"][0].as_py() < 2_000_000


def test_one_large_row_of_many_undoes_what_others_did(spark: SparkSession) -> None:
    size = f"CASE WHEN id = 399 THEN {SHARE + 1} ELSE 3 END"
    rows = spark.range(0, 400, 1, 4).select("id", f.expr(f"repeat('x', {size})").alias("text"))
    found, undone = done(rows)
    assert sum(each["rows"] for each in found) == 400
    assert undone == [3]


def test_a_table_that_was_given_large_rows_is_weighed_from_then_on(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    metadata = metadata_telling()
    assert done(texts(spark, 10, 80_000), metadata)[1] == [0]
    caplog.clear()
    found, undone = done(texts(spark, 10, 80_000), metadata)
    assert [each["bound"] for each in found] == [None]
    assert undone == []
    assert not caplog.records
    # Another one may have the same name, in another lake.
    assert done(texts(spark, 10, 10))[0][0]["bound"] is not None


@pytest.mark.parametrize(
    ("totals", "weighed"),
    [
        ({"total_records": 10_000, "total_files_size": 10_000 * 20_000}, True),
        ({"total_records": 10_000, "total_files_size": 10_000 * 8_000}, False),
        # The footers of files are most of what these few take.
        ({"total_records": 10, "total_files_size": 10 * 20_000}, False),
        ({"total_records": 0, "total_files_size": 0}, False),
        ({"total_records": 10_000}, False),
    ],
)
def test_a_table_whose_files_tell_of_large_rows_is_weighed_at_once(
    spark: SparkSession, totals: dict[str, int], weighed: bool
) -> None:
    found, _ = done(texts(spark, 10, 10), metadata_telling(**totals))
    assert [each["bound"] is None for each in found] == [weighed]


@pytest.mark.parametrize(
    ("totals", "at_once"),
    [
        ({"total_records": 1_000_000, "total_files_size": 1_000_000 * 104}, 10_000),
        ({"total_records": 1_000_000, "total_files_size": 1_000_000 * 105}, 2_000),
        # The footers of files are most of what these few take.
        ({"total_records": 1_000, "total_files_size": 1_000 * 10}, 2_000),
        ({}, 2_000),
    ],
)
def test_batches_have_more_rows_where_files_tell_that_rows_are_small(
    spark: SparkSession, totals: dict[str, int], at_once: int
) -> None:
    first = shares_of(spark, metadata_telling(**totals))[0]
    assert first == Share(rows=at_once, bytes=BATCH // at_once)
    with setting(spark, ROWS, 3_000):
        assert [each.rows for each in shares_of(spark, metadata_telling(**totals))] == [3_000]


@pytest.mark.parametrize(
    ("size", "tried"), [(6_000, [10_000]), (7_000, [10_000, 2_000]), (80_000, [10_000])]
)
def test_rows_too_large_for_small_ones_are_done_again_no_more_often_than_they_tell(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, size: int, tried: list[int]
) -> None:
    asked: list[int] = []

    def noting(session: SparkSession, rows: int) -> AbstractContextManager[None]:
        asked.append(rows)
        return not_weighed(session, rows)

    monkeypatch.setattr(unweighed, "not_weighed", noting)
    metadata = replace(SMALL, table_uuid=str(uuid4()))
    # The largest comes after one that is enough to end the first try.
    sizes = f"CASE WHEN id = 24999 THEN {size} WHEN id > 100 THEN least({size}, 6900) ELSE 5 END"
    rows = spark.range(0, 25_000, 1, 1).select("id", f.expr(f"repeat('x', {sizes})").alias("text"))
    found, undone = done(rows, metadata)
    assert asked == tried
    assert sum(each["rows"] for each in found) == 25_000
    assert max(each["bytes"] for each in found) < 2 * BATCH
    assert undone == [0] * (len(tried) - 1 + (size == 80_000))
    # What was learnt is known from then on.
    asked.clear()
    assert done(rows, metadata)[1] == []
    assert asked == {6_000: [10_000], 7_000: [2_000], 80_000: []}[size]


def test_other_threads_have_their_batches_weighed(spark: SparkSession) -> None:
    rows = texts(spark, 10, 10)
    found: list[int | None] = []

    def elsewhere() -> None:
        told = done_in_python(rows, seen, TOLD)
        found.extend(told["bound"].to_pylist())

    with not_weighed(spark, AT_ONCE):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert found == [None]
    assert spark.sparkContext.getLocalProperty(BYTES) is None
    assert spark.sparkContext.getLocalProperty(ROWS) is None


def test_what_somebody_said_of_batches_stays(spark: SparkSession) -> None:
    with setting(spark, BYTES, "64m"):
        assert bounds(spark).bytes == BATCH  # type: ignore[union-attr]
        assert shares_of(spark, SMALL) == []
    with setting(spark, ROWS, 5_000):
        assert shares_of(spark, SMALL) == [Share(rows=5_000, bytes=BATCH // 5_000)]
        assert done(texts(spark, 10, 14_000))[1] == [0]
    with setting(spark, ROWS, 20_000):
        assert shares_of(spark, SMALL) == []
    with setting(spark, ROWS, 0):
        assert shares_of(spark, SMALL) == []


def test_where_java_has_no_thread_for_each_of_pythons_all_are_weighed(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = spark.sparkContext._gateway
    # What PYSPARK_PIN_THREAD=false has in its place.
    unpinned = JavaGateway.__new__(JavaGateway)
    vars(unpinned).update(vars(gateway))
    monkeypatch.setattr(type(spark.sparkContext), "_gateway", unpinned)
    assert shares_of(spark, SMALL) == []


def test_a_column_may_have_the_name_of_the_sign(spark: SparkSession) -> None:
    rows = texts(spark, 10, 10).withColumn(LARGE.upper(), f.lit(True))
    found, undone = done(rows)
    assert [(each["rows"], each["bound"]) for each in found] == [(10, None)]
    assert not undone


_KINDS = (
    *("function", "batches", "groups", "stream", "nested", "table function"),
    *("arrow table function", "view", "subquery", "subquery of a subquery"),
    *("table function of a subquery", "long"),
)


@pytest.fixture(scope="module")
def of_python(spark: SparkSession) -> dict[str, DataFrame]:
    return made_in_python(spark, texts(spark, 10, 10))


@pytest.mark.parametrize("kind", _KINDS)
def test_where_others_would_go_to_python_unweighed_all_are_weighed(
    of_python: dict[str, DataFrame], kind: str
) -> None:
    assert sized(of_python[kind]) is None


@pytest.mark.parametrize(
    "query",
    [
        "WITH a AS (SELECT * FROM texts) SELECT a.id FROM a JOIN a AS b ON a.id = b.id LIMIT 3",
        "SELECT id, row_number() OVER (ORDER BY id) AS n FROM texts WHERE id IN (SELECT 1)",
        "SELECT id, each FROM texts LATERAL VIEW explode(split(text, ' ')) AS each",
        "SELECT DISTINCT text FROM texts UNION SELECT text FROM texts GROUP BY text HAVING count(*) > 1",
        "SELECT id, (SELECT max(id) FROM texts) AS most FROM texts TABLESAMPLE (50 PERCENT) ORDER BY 1",
        "SELECT t.id, s.id AS other FROM texts AS t, LATERAL (SELECT t.id + 1 AS id) AS s",
        "SELECT id FROM texts EXCEPT SELECT id FROM VALUES (1), (2) AS v(id)",
    ],
)
def test_what_java_does_alone_is_not_weighed(spark: SparkSession, query: str) -> None:
    texts(spark, 10, 10).createOrReplaceTempView("texts")
    assert sized(spark.sql(query)) is not None


@pytest.mark.parametrize(
    "type", ["map<string,string>", "array<string>", "array<array<int>>", "variant"]
)
def test_rows_that_cannot_tell_their_size_for_nothing_are_weighed(
    spark: SparkSession, type: str
) -> None:
    rows = spark.range(1).select(
        f.expr("parse_json('1')" if type == "variant" else f"CAST(NULL AS {type})")
    )
    assert sized(rows) is None


def test_rows_meet_by_bucket_and_prefix_without_python(spark: SparkSession, tmp_path: Path) -> None:
    lake = local(tmp_path, spark=spark)
    lake.create_namespace("db")
    schema = pa.schema([("id", pa.int64()), ("a.b c", pa.string())])
    table = lake.create_table(
        "db.t", schema, partition_by=["bucket(4, id)", "truncate(1, `a.b c`)"]
    )
    made = spark.range(0, 400, 1, 8).select("id", f.expr("CAST(id % 2 AS STRING)").alias("a.b c"))
    assert sized(arranged(made, table.metadata)) is not None
    lake.append("db.t", made)
    files = lake.table("db.t").inspect.files()
    assert files.num_rows == 8
    assert sum(files["record_count"].to_pylist()) == 400


@law(40, usual=10)
@given(data=st.data())
def test_a_row_is_large_if_what_varies_of_it_is(spark: SparkSession, data: st.DataObject) -> None:
    lengths = st.one_of(
        st.none(), st.integers(0, 20), st.integers(SHARE // 2 - 200, SHARE // 2 + 40)
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
        patch.setattr(unweighed, "is_all_javas", lambda _: True)
        told = sized(rows)
    assert told is not None
    for (a, b, c), was, now in zip(drawn, given_rows, told.collect(), strict=True):
        varies = (a or 0) // 2 * 2 + (b or 0) + (c or 0) // 17 * 17
        if now[LARGE]:
            assert varies > SHARE - 100
            assert (now["text"], now["inner"], now["numbers"]) == (None, None, None)
        else:
            assert varies <= SHARE
            inner = now["inner"] and {"n": 1, "bytes": bytes(now["inner"]["bytes"])}
            assert (now["text"], inner, now["numbers"]) == was


def test_large_rows_are_appended_and_merged_whole_and_nothing_else_stays(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = local(tmp_path, spark=spark)
    lake.create_namespace("db")
    lake.create_table("db.large", pa.schema([("id", pa.int64()), ("text", pa.string())]))
    source = tmp_path / "source"
    sizes = "CASE WHEN id % 100 = 99 THEN 90000 ELSE 5 END"
    made = spark.range(0, 400, 1, 4).select("id", f.expr(f"repeat('y', {sizes})").alias("text"))
    made.write.parquet(str(source))
    rows = spark.read.parquet(str(source))
    lake.append("db.large", rows)
    assert sorted(map(tuple, lake.read("db.large").collect())) == sorted(map(tuple, rows.collect()))
    del unweighed._LARGEST[str(lake.table("db.large").metadata.table_uuid)]
    more = spark.range(390, 410).select("id", f.expr("repeat('z', 90000)").alias("text"))
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
