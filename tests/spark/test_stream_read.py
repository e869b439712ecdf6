"""Streams out of tables: appended rows, or all changes, from where the query stood."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import icetree
from icetree.errors import IcetreeError, InvalidInput
from icetree.spark import SparkLake, local
from icetree.spark.source.source import IcetreeSource
from icetree.spark.stream.read import read_stream
from icetree.spark.stream.write import stop, write_stream
from icetree.table.table import Table
from tests.effort import usually
from tests.table.changing import compact, delete_equal, delete_rows, now

_SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "v", StringType(), required=False),
    NestedField(3, "tags", StringType(), required=False),
    identifier_field_ids=[1],
)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[SparkLake]:
    lake = local(tmp_path / "lake", spark=spark)
    lake.create_namespace("db")
    yield lake
    lake.close()


@pytest.fixture
def table(lake: SparkLake) -> Table:
    return lake.create_table("db.t", _SCHEMA)


def _some(*rows: tuple[int, str]) -> pa.Table:
    ids, values = zip(*rows, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "v": list(values)})


class _Run:
    """A query that hands over the rows of its batches."""

    def __init__(self, folder: Path) -> None:
        self._checkpoint = folder / "checkpoint"

    def __call__(self, rows: DataFrame) -> list[list[tuple[Any, ...]]]:
        """Take what is there, and end; return the rows of each batch."""
        batches: list[list[tuple[Any, ...]]] = []

        def take(batch: DataFrame, _: int) -> None:
            batches.append(sorted(tuple(row) for row in batch.collect()))

        writer = rows.writeStream.option("checkpointLocation", str(self._checkpoint))
        query = writer.foreachBatch(take).trigger(availableNow=True).start()
        query.awaitTermination()
        return batches


@pytest.fixture
def run(tmp_path: Path) -> _Run:
    return _Run(tmp_path)


def test_a_stream_goes_on_from_its_checkpoint(lake: SparkLake, table: Table, run: _Run) -> None:
    table.append(_some((1, "a")))
    table.append(_some((2, "b")))
    assert run(read_stream(lake, "db.t")) == [[(1, "a", None), (2, "b", None)]]
    assert run(read_stream(lake, "db.t")) == []
    table.append(_some((3, "c")))
    compact(table)  # changes no row
    assert run(read_stream(lake, "db.t")) == [[(3, "c", None)]]


def test_a_stream_starts_after_a_snapshot(lake: SparkLake, table: Table, run: _Run) -> None:
    table.append(_some((1, "a")))
    first = now(table)
    table.append(_some((2, "b")))
    rows = read_stream(lake, "db.t", since=first, columns=["v"])
    assert run(rows) == [[("b",)]]


def test_a_run_takes_no_more_snapshots_than_allowed(
    lake: SparkLake, table: Table, run: _Run
) -> None:
    for id in range(3):
        table.append(_some((id, "x")))
    rows = read_stream(lake, "db.t", columns=["id"], max_snapshots_per_trigger=2)
    assert run(rows) == [[(0,), (1,)]]
    assert run(rows) == [[(2,)]]


def test_a_delete_ends_a_stream_of_appended_rows_unless_skipped(
    lake: SparkLake, table: Table, run: _Run
) -> None:
    table.append(_some((1, "a"), (2, "b")))
    delete_rows(table, [1])
    table.append(_some((3, "c")))
    with pytest.raises(PySparkException, match="is no append but of kind delete"):
        run(read_stream(lake, "db.t"))
    rows = read_stream(lake, "db.t", columns=["id"], skip=["delete"])
    assert run(rows) == [[(1,), (2,), (3,)]]
    with pytest.raises(PySparkException, match="allowed are overwrite and delete"):
        run(read_stream(lake, "db.t", skip=["append"]))


def test_a_stream_of_changes_tells_what_the_feed_tells(
    lake: SparkLake, table: Table, run: _Run
) -> None:
    table.append(_some((1, "a"), (2, "b"), (3, "c")))
    delete_rows(table, [1])
    delete_equal(table, [2, 3], add=_some((2, "B"), (3, "c")))
    compact(table)
    [told] = run(read_stream(lake, "db.t", changes=True, images=True))
    here = table.changes().to_arrow(images=True)
    assert told == sorted(tuple(row.values()) for row in here.to_pylist())
    assert {row[3] for row in told if row[0] == 2} == {"INSERT", "UPDATE_AFTER", "UPDATE_BEFORE"}
    last = now(table)
    delete_rows(table, [3])
    [told] = run(read_stream(lake, "db.t", changes=True, columns=["id"]))
    assert [(row[0], row[1]) for row in told] == [(3, "DELETE")]
    assert table.changes(last).to_arrow().num_rows == 1


@pytest.mark.usefixtures("table")
def test_what_means_nothing_to_a_stream_is_refused(lake: SparkLake) -> None:
    with pytest.raises(InvalidInput, match=r"'images' means nothing .*: say option changes=true"):
        read_stream(lake, "db.t", images=True)
    with pytest.raises(InvalidInput, match=r"'skip' means nothing .*: changes are all told"):
        read_stream(lake, "db.t", changes=True, skip=["delete"])


def test_one_query_writes_while_another_reads(
    lake: SparkLake, table: Table, tmp_path: Path
) -> None:
    rate = lake.spark.readStream.format("rate").option("rowsPerSecond", 40).load()
    incoming = rate.selectExpr("value as id", "'x' as v")
    seen: list[int] = []

    def take(batch: DataFrame, _: int) -> None:
        seen.extend(row["id"] for row in batch.collect())

    writing = write_stream(
        lake, "db.t", incoming, checkpoint=tmp_path / "in", trigger="200 milliseconds"
    )
    reading = (
        read_stream(lake, "db.t", columns=["id"])
        .writeStream.option("checkpointLocation", str(tmp_path / "out"))
        .foreachBatch(take)
        .trigger(processingTime="200 milliseconds")
        .start()
    )
    until = time.monotonic() + 300
    while len(seen) < 60 and time.monotonic() < until:
        assert writing.exception() is None
        assert reading.exception() is None
        time.sleep(0.1)
    stop(writing)
    reading.processAllAvailable()
    stop(reading)
    written = table.refresh().scan(columns=["id"]).to_arrow()["id"].to_pylist()
    assert len(seen) >= 60
    assert sorted(seen) == sorted(written) == list(range(len(written)))


@pytest.mark.parametrize("changes", ["false", "true"])
def test_a_stream_goes_on_where_the_snapshot_that_it_reached_has_expired(
    tmp_path: Path, changes: str
) -> None:
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", str(tmp_path / "tables")
    with icetree.connect(uri, warehouse=warehouse) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", _SCHEMA)
        told = {"catalog": uri, "warehouse": warehouse, "path": "db.t", "changes": changes}
        source = IcetreeSource(told)
        reader = source.streamReader(source.schema())
        table.append(_some((1, "a")))
        reached = reader.latestOffset()
        table.append(_some((2, "b")))
        table.maintenance.expire_snapshots(older_than="2100-01-01", retain_last=1)
        [came] = reader.partitions(reached, reader.latestOffset())
        [batch] = reader.read(came)
        assert batch["id"].to_pylist() == [2]
        reached = reader.latestOffset()
        delete_rows(table, [2])
        table.maintenance.expire_snapshots(older_than="2100-01-01", retain_last=1)
        with pytest.raises(IcetreeError, match=r"history has a gap|of kind delete"):
            reader.partitions(reached, reader.latestOffset())
        reader.stop()


@pytest.mark.parametrize("changes", usually([True, False], True))
def test_columns_stay_the_same_when_they_are_renamed_meanwhile(
    lake: SparkLake, tmp_path: Path, changes: bool
) -> None:
    lake.sql("CREATE TABLE db.sw (id BIGINT, a STRING, b STRING)")
    lake.sql("INSERT INTO db.sw VALUES (1, 'a1', 'b1')")
    seen: list[tuple[Any, ...]] = []

    def take(batch: DataFrame, _: int) -> None:
        seen.extend(tuple(row)[:4] for row in batch.collect())

    rows = lake.read_stream("db.sw", changes=changes, images=changes)
    writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.foreachBatch(take).trigger(processingTime="200 milliseconds").start()
    try:
        query.processAllAvailable()
        for names in ("a TO tmp", "b TO a", "tmp TO b"):
            lake.sql(f"ALTER TABLE db.sw RENAME COLUMN {names}")
        lake.sql("INSERT INTO db.sw (id, a, b) VALUES (3, 'b3', 'a3')")
        query.processAllAvailable()
        if changes:
            lake.sql("UPDATE db.sw SET a = 'b1x' WHERE id = 1")
            query.processAllAvailable()
    finally:
        query.stop()
    came = [(1, "a1", "b1"), (3, "a3", "b3")]
    if changes:
        assert seen[:2] == [(*row, "INSERT") for row in came]
        assert sorted(seen[2:]) == [
            (1, "a1", "b1", "UPDATE_BEFORE"),
            (1, "a1", "b1x", "UPDATE_AFTER"),
        ]
    else:
        assert seen == came
