"""Rows that go to Python in batches, and what is told there of each batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from uuid import uuid4

import pyarrow as pa
from msgspec.structs import replace
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from icetree.spark.write.unweighed import done_unweighed, shares_of, with_size
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.metadata import new_table as new_metadata
from icetree.spec.metadata.snapshot import Snapshot

BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
BATCH = 64 * 1024 * 1024
#: What a row may take: so many of them fill a batch.
AT_ONCE = 2_000
SHARE = BATCH // AT_ONCE
SEEN = pa.schema([("rows", pa.int64()), ("bytes", pa.int64()), ("bound", pa.int64())])
_NO_COLUMNS = {"type": "struct", "fields": []}
TOLD = "rows bigint, bytes bigint, bound bigint"


def seen(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Tell of each batch how many rows it has, what they take, and what bounds it."""
    task = TaskContext.get()
    assert task is not None
    bound = task.getLocalProperty(BYTES)
    for batch in batches:
        told = {"rows": batch.num_rows, "bytes": batch.nbytes, "bound": bound and int(bound)}
        yield pa.RecordBatch.from_pylist([told], schema=SEEN)


def metadata_telling(**totals: int) -> TableMetadata:
    """Return the metadata of a table that nobody has heard of, and what its snapshot tells of it."""
    made = new_metadata(
        table_uuid=str(uuid4()), location="memory://t", schema=_NO_COLUMNS, at_ms=1_000
    )
    if not totals:
        return made
    summary = {"operation": "append"} | {
        name.replace("_", "-"): str(total) for name, total in totals.items()
    }
    snapshot = Snapshot(
        snapshot_id=1, sequence_number=1, timestamp_ms=1_000, manifest_list="r", summary=summary
    )
    return replace(made, snapshots=(snapshot,), current_snapshot_id=1)


#: A table whose files tell of small rows.
SMALL = metadata_telling(total_records=1_000_000, total_files_size=1_000_000 * 100)


def done(
    rows: DataFrame, metadata: TableMetadata | None = None
) -> tuple[list[dict[str, int]], list[int]]:
    """Return what was told of batches, and how many answers were undone, time by time."""
    undone: list[int] = []
    found = done_unweighed(
        rows,
        seen,
        SEEN,
        table="db.docs",
        metadata=metadata or metadata_telling(),
        undo=lambda told: undone.append(told.num_rows),
    )
    assert found.schema.names == SEEN.names
    return found.to_pylist(), undone


def sized(rows: DataFrame) -> DataFrame | None:
    [share] = shares_of(rows.sparkSession, metadata_telling())
    return with_size(rows, share)


@contextmanager
def setting(spark: SparkSession, name: str, value: int | str) -> Iterator[None]:
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name)


def texts(spark: SparkSession, count: int, size: int) -> DataFrame:
    return spark.range(0, count, 1, 1).select("id", f.expr(f"repeat('x', {size})").alias("text"))
