"""Streams into tables: every row exactly once, whatever is run again."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from icetree.catalog.base import Catalog
from icetree.errors import InvalidInput
from icetree.spark import SparkLake, local
from icetree.spark.source import register
from icetree.spark.source.options import options_of
from icetree.spark.stream.write import Batch, stop, write_stream
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import usually
from tests.spark.java_log import java_log

_SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "v", StringType(), required=False),
    identifier_field_ids=[1],
)
_ARROW = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[SparkLake]:
    lake = local(tmp_path / "lake", spark=spark)
    lake.create_namespace("db")
    (tmp_path / "in").mkdir()
    yield lake
    lake.close()


def _table(lake: SparkLake, **how: Any) -> Table:
    return lake.create_table("db.t", _SCHEMA, **how)


def _drop(folder: Path, name: str, *rows: tuple[int, str]) -> None:
    """Put a file of rows where the stream looks."""
    lines = [json.dumps({"id": id, "v": v}) for id, v in rows]
    (folder / "in" / f"{name}.json").write_text("\n".join(lines))


def _incoming(lake: SparkLake, folder: Path) -> DataFrame:
    reader = lake.spark.readStream.schema("id long, v string").option("maxFilesPerTrigger", 1)
    return reader.json(str(folder / "in"))


def _run(lake: SparkLake, folder: Path, **how: Any) -> list[Batch]:
    """Take what is there, and end."""
    batches: list[Batch] = []
    query = write_stream(
        lake,
        "db.t",
        _incoming(lake, folder),
        checkpoint=folder / "checkpoint",
        trigger="available-now",
        on_batch=batches.append,
        **how,
    )
    query.awaitTermination()
    return batches


def _forget_last_batch(folder: Path) -> None:
    """Leave the checkpoint as a kill between a batch's commit and its end leaves it."""
    commits = folder / "checkpoint" / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)


def _rows(lake: SparkLake) -> list[tuple[int, str]]:
    return sorted((row["id"], row["v"]) for row in lake.read("db.t").collect())


def test_each_micro_batch_is_one_snapshot_and_a_line_in_the_log(
    lake: SparkLake, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = _table(lake)
    _drop(tmp_path, "a", (1, "a"), (2, "b"))
    _drop(tmp_path, "b", (3, "c"))
    with caplog.at_level(logging.INFO, logger="icetree.spark.stream.write"):
        batches = _run(lake, tmp_path)
    assert _rows(lake) == [(1, "a"), (2, "b"), (3, "c")]
    assert sorted(batch.rows for batch in batches) == [1, 2]
    assert len(list(table.refresh().history())) == 2
    lines = [line for line in caplog.messages if "batch 0 to db.t: rows=" in line]
    assert len(lines) == 1
    _drop(tmp_path, "c", (4, "d"))
    assert [batch.rows for batch in _run(lake, tmp_path)] == [1]
    assert _rows(lake) == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]


def test_a_batch_that_is_run_again_is_not_applied_again(lake: SparkLake, tmp_path: Path) -> None:
    table = _table(lake)
    _drop(tmp_path, "a", (1, "a"))
    _run(lake, tmp_path)
    _forget_last_batch(tmp_path)
    _drop(tmp_path, "b", (2, "b"))
    again = _run(lake, tmp_path)
    assert [batch.repeated for batch in again] == [True, False]
    assert _rows(lake) == [(1, "a"), (2, "b")]
    assert len(list(table.refresh().history())) == 2


def test_another_query_is_not_taken_for_one_run_again(lake: SparkLake, tmp_path: Path) -> None:
    _table(lake)
    _drop(tmp_path, "a", (1, "a"))
    _run(lake, tmp_path)
    (tmp_path / "checkpoint").rename(tmp_path / "old")
    assert [batch.repeated for batch in _run(lake, tmp_path)] == [False]
    assert _rows(lake) == [(1, "a"), (1, "a")]


@pytest.mark.parametrize("deletes", ["vectors", "equality"])
def test_an_upsert_replaces_the_row_with_the_same_key(
    lake: SparkLake, tmp_path: Path, deletes: str
) -> None:
    table = _table(lake)
    _drop(tmp_path, "a", (1, "a"), (2, "b"))
    _run(lake, tmp_path, mode="upsert", deletes=deletes)
    _drop(tmp_path, "b", (2, "B"), (3, "c"))
    _run(lake, tmp_path, mode="upsert", deletes=deletes)
    _forget_last_batch(tmp_path)
    [again] = _run(lake, tmp_path, mode="upsert", deletes=deletes)
    assert again.repeated
    assert _rows(lake) == [(1, "a"), (2, "B"), (3, "c")]
    assert table.refresh().scan().count() == 3
    assert len(list(table.history())) == 2


@pytest.mark.parametrize("deletes", ["vectors", "equality"])
def test_of_rows_with_one_key_the_latest_counts(
    lake: SparkLake, tmp_path: Path, deletes: str
) -> None:
    _table(lake)
    _drop(tmp_path, "a", (1, "a"), (1, "b"))
    how: dict[str, Any] = {"mode": "upsert", "deletes": deletes}
    with pytest.raises(PySparkException, match="say which one counts with latest_by"):
        _run(lake, tmp_path, **how)
    assert _rows(lake) == []
    _run(lake, tmp_path, latest_by="v", **how)
    assert _rows(lake) == [(1, "b")]


def test_a_key_that_may_be_in_any_partition_is_refused_or_deleted_in_all(
    lake: SparkLake, tmp_path: Path
) -> None:
    table = _table(lake, partition_by=["v"])
    _drop(tmp_path, "a", (1, "a"))
    how: dict[str, Any] = {"mode": "upsert", "deletes": "equality"}
    with pytest.raises(PySparkException, match="no unpartitioned spec"):
        _run(lake, tmp_path, **how)
    with table.refresh().edit_spec() as edit:
        edit.remove("v")
    with table.edit_spec() as edit:
        edit.add("v")
    _run(lake, tmp_path, **how)
    _drop(tmp_path, "b", (1, "b"))
    _run(lake, tmp_path, **how)
    assert _rows(lake) == [(1, "b")]


def test_rows_go_to_a_branch(lake: SparkLake, tmp_path: Path) -> None:
    table = _table(lake)
    table.append(pa.table({"id": pa.array([9], pa.int64()), "v": ["x"]}))
    table.create_branch("audit")
    _drop(tmp_path, "a", (1, "a"))
    _run(lake, tmp_path, branch="audit")
    assert _rows(lake) == [(9, "x")]
    assert lake.read("db.t", at="audit").count() == 2


def test_what_cannot_be_streamed_is_refused_before_it_starts(
    lake: SparkLake, tmp_path: Path
) -> None:
    lake.create_table("db.t", Schema(*_SCHEMA.fields))
    rows = _incoming(lake, tmp_path)
    how: dict[str, Any] = {"checkpoint": tmp_path / "checkpoint"}
    refused: list[tuple[dict[str, Any], str]] = [
        ({"mode": "upsert"}, "no identifier fields"),
        ({"mode": "merge"}, "allowed are append and upsert"),
        ({"deletes": "none", "mode": "upsert"}, "allowed are vectors and equality"),
        ({"latest_by": "v"}, "latest_by is for mode='upsert'"),
    ]
    for bad, message in refused:
        with pytest.raises(InvalidInput, match=message):
            write_stream(lake, "db.t", rows, **how, **bad)
    with pytest.raises(InvalidInput, match="has no column 'w'"):
        write_stream(lake, "db.t", rows.withColumnRenamed("v", "w"), **how)
    with pytest.raises(InvalidInput, match="are no stream"):
        write_stream(
            lake, "db.t", lake.spark.createDataFrame([(1, "a")], "id long, v string"), **how
        )
    assert not (tmp_path / "checkpoint").exists()


@pytest.mark.long
def test_small_batches_follow_each_other_without_losing_a_row(
    lake: SparkLake, tmp_path: Path
) -> None:
    table = _table(lake)
    rate = lake.spark.readStream.format("rate").option("rowsPerSecond", 40).load()
    rows = rate.selectExpr("value as id", "cast(timestamp as string) as v")
    for _ in range(2):
        batches: list[Batch] = []
        query = write_stream(
            lake,
            "db.t",
            rows,
            checkpoint=tmp_path / "checkpoint",
            trigger="200 milliseconds",
            on_batch=batches.append,
        )
        until = time.monotonic() + 300
        while sum(batch.rows > 0 for batch in batches) < 3 and time.monotonic() < until:
            assert query.exception() is None
            time.sleep(0.1)
        stop(query)
        assert not query.isActive
        assert sum(batch.rows > 0 for batch in batches) >= 3
    ids = sorted(table.refresh().scan(columns=["id"]).to_arrow()["id"].to_pylist())
    assert ids == list(range(len(ids)))


def test_the_data_source_takes_a_stream_too(lake: SparkLake, tmp_path: Path) -> None:
    table = _table(lake)
    register(lake.spark)
    given = options_of(lake, "db.t")
    for name, rows in (("a", (1, "a")), ("b", (2, "b"))):
        _drop(tmp_path, name, rows)
        for _ in range(2):
            writer = _incoming(lake, tmp_path).writeStream.format("icetree").options(**given)
            query = (
                writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
                .queryName("to db.t")
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
        _forget_last_batch(tmp_path)
    assert _rows(lake) == [(1, "a"), (2, "b")]
    assert len(list(table.refresh().history())) == 2


def test_a_row_under_an_older_spec_is_replaced_too(lake: SparkLake, tmp_path: Path) -> None:
    table = _table(lake)
    table.append(pa.table({"id": [1, 2], "v": ["old", "old"]}, _ARROW))
    with table.edit_spec() as edit:
        edit.add("bucket(4, id)")
    _drop(tmp_path, "a", (1, "new"))
    _run(lake, tmp_path, mode="upsert", deletes="equality")
    assert _rows(lake) == [(1, "new"), (2, "old")]


def test_where_no_delete_reaches_an_older_spec_an_upsert_is_refused(
    lake: SparkLake, tmp_path: Path
) -> None:
    table = _table(lake, partition_by=["bucket(4, id)"])
    table.append(pa.table({"id": [1, 2], "v": ["old", "old"]}, _ARROW))
    with table.edit_spec() as edit:
        edit.remove("bucket(4, id)")
        edit.add("bucket(8, id)")
    _drop(tmp_path, "a", (1, "new"))
    with pytest.raises(PySparkException, match=r"no unpartitioned spec.*data DVs"):
        _run(lake, tmp_path, mode="upsert", deletes="equality")
    assert _rows(lake) == [(1, "old"), (2, "old")]


@pytest.mark.parametrize("verb", usually(["delete", "update", "merge"], "update"))
def test_rows_that_were_replaced_stay_away_when_their_files_are_rewritten(
    lake: SparkLake, tmp_path: Path, verb: str
) -> None:
    table = _table(lake, properties={f"write.{verb}.mode": "copy-on-write"})
    table.append(pa.table({"id": [1, 2, 3], "v": ["old"] * 3}, _ARROW))
    _drop(tmp_path, "a", (1, "new"))
    _run(lake, tmp_path, mode="upsert", deletes="equality")
    if verb == "delete":
        lake.delete("db.t", "id = 3")
    elif verb == "update":
        lake.update("db.t", {"v": "'x'"}, "id = 3")
    else:
        source = lake.spark.createDataFrame([(3, "x")], "id long, v string")
        lake.upsert("db.t", source)
    last = [] if verb == "delete" else [(3, "x")]
    assert _rows(lake) == [(1, "new"), (2, "old"), *last]


def test_a_query_that_is_stopped_within_a_batch_ends_quietly_and_commits_nothing(
    lake: SparkLake, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark looks for the interrupt in what is said of the error; a long text overflows its stack."""
    table = _table(lake)
    _drop(tmp_path, "a", (1, "one"))
    begun = str(tmp_path / "begun")

    def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            Path(begun).touch()
            time.sleep(10)
            yield batch

    rows = _incoming(lake, tmp_path).mapInArrow(slow, "id long, v string")
    query = write_stream(lake, "db.t", rows, checkpoint=tmp_path / "checkpoint")
    while not Path(begun).exists():
        assert query.isActive
        time.sleep(0.05)
    with caplog.at_level(logging.ERROR, logger="py4j"), java_log(lake.spark) as logged:
        query.stop()
    assert "StackOverflowError" not in logged()
    assert not [record for record in caplog.records if record.name.startswith("py4j")]
    assert query.exception() is None
    assert query.status["message"] == "Stopped"
    assert table.refresh().current_snapshot is None


class _StandingCatalog:
    """A catalog of which a swap stands still until it is told to go on."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.reached, self.go = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def swap(self, name: Any, *, expected: str, to: str) -> Any:
        self.reached.set()
        self.go.wait(60)
        return self._catalog.swap(name, expected=expected, to=to)


@pytest.mark.parametrize("mode", usually(["append", "upsert"], "append"))
def test_a_query_that_is_stopped_while_it_commits_ends_soon_with_all_rows_of_the_batch(
    lake: SparkLake, tmp_path: Path, mode: str
) -> None:
    table = _table(lake)
    _drop(tmp_path, "a", (1, "one"), (2, "two"))
    standing: Any = _StandingCatalog(lake.catalog)
    slow = SparkLake(lake.spark, Lake(catalog=standing, store=lake.store, warehouse=lake.warehouse))
    query = write_stream(
        slow, "db.t", _incoming(lake, tmp_path), checkpoint=tmp_path / "checkpoint", mode=mode
    )
    assert standing.reached.wait(60)
    with java_log(lake.spark) as logged, ThreadPoolExecutor(1) as other:
        ended = other.submit(query.stop)
        while query.isActive:
            time.sleep(0.01)
        standing.go.set()
        ended.result(10)
    assert "StackOverflowError" not in logged()
    assert query.exception() is None
    assert query.status["message"] == "Stopped"
    assert table.refresh().verify(deep=True).is_clean
    assert _rows(lake) == [(1, "one"), (2, "two")]
    # Where Spark has not noted that the batch is done, the table has.
    assert all(again.repeated for again in _run(lake, tmp_path, mode=mode))
    assert _rows(lake) == [(1, "one"), (2, "two")]
