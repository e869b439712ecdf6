"""Streams into tables.

A micro-batch is one commit under a key made of the query's id and the batch's number. Spark runs a
batch again, under the same number, when it was cut off before its checkpoint knew of it; the table
knows the key by then, and nothing is done twice. It does so while the snapshot of the last batch is
part of its history: do not expire that while its query is down.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from icetree.errors import InvalidInput
from icetree.spark.names import as_column, column
from icetree.spark.source.write import batch_key
from icetree.spark.stream.stopping import ending_with, quietly
from icetree.spark.stream.upsert import require_unique, upsert_by_equality
from icetree.spark.wap import BRANCH, ID, audited, begin
from icetree.spark.write.arrange import arranged
from icetree.spark.write.fit import fit
from icetree.spark.write.sink import sink
from icetree.spec.location import scheme_of
from icetree.spec.schema.columns import required_identifiers
from icetree.table.commit.commit import Committed
from icetree.table.commit.options import CommitOptions
from icetree.table.commit.validate import already_applied
from icetree.table.state import Work
from icetree.table.table import Table
from icetree.visible import log_of

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

log = log_of(__name__)

APPEND, UPSERT = "append", "upsert"
VECTORS, EQUALITY = "vectors", "equality"
AVAILABLE_NOW: Final = "available-now"
#: Where Spark tells a batch which query it is of.
_QUERY_ID: Final = "sql.streaming.queryId"
_RANK: Final = "__icetree_rank"
_POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What became of a micro-batch."""

    query_id: str
    batch_id: int
    #: None for a batch without rows, which makes no commit.
    committed: Committed | None
    rows: int
    files: int
    spent_ms: float

    @property
    def repeated(self) -> bool:
        """Whether it had been committed before."""
        return self.committed is not None and self.committed.repeated


def write_stream(
    lake: SparkLake,
    name: str,
    rows: DataFrame,
    *,
    checkpoint: str | Path,
    trigger: str | None = None,
    mode: str = APPEND,
    deletes: str = VECTORS,
    latest_by: str | Column | None = None,
    branch: str | None = None,
    query_name: str | None = None,
    on_batch: Callable[[Batch], None] | None = None,
) -> StreamingQuery:
    """Start a query that commits each micro-batch to a table, exactly once; `stop` ends it.

    `trigger` is how often, such as "1 second", or "available-now" to take what is there and end.
    With mode "upsert" a row takes the place of the one with its identifier fields: found and
    marked at once, or with `deletes="equality"` left for readers to find, which writes faster and
    reads slower. Of rows of one batch with the same key the one with the greatest `latest_by`
    counts; without it they are refused. `on_batch` hears of each batch, as the log does.
    """
    _require(mode, "mode", (APPEND, UPSERT))
    _require(deletes, "deletes", (VECTORS, EQUALITY))
    if not rows.isStreaming:
        raise InvalidInput("these rows are no stream: write them with lake.append(name, rows)")
    table = lake.table(name)
    if audited(lake.spark, table)[1]:
        raise InvalidInput(f"table {name}: a stream is not staged: unset {ID}, or choose {BRANCH}")
    if mode == APPEND and latest_by is not None:
        raise InvalidInput("latest_by is for mode='upsert': appended rows are all kept")
    keys = required_identifiers(table.schema, of=table.name) if mode == UPSERT else []
    fit(rows, table.schema, table=name)
    how = _How(
        lake=lake,
        name=name,
        mode=mode,
        deletes=deletes,
        latest_by=latest_by,
        keys=tuple(keys),
        place={} if branch is None else {"branch": branch},
        on_batch=on_batch,
    )
    place = _place(checkpoint)
    writer = rows.writeStream.option("checkpointLocation", place).foreachBatch(how.take)
    if query_name is not None:
        writer = writer.queryName(query_name)
    if trigger == AVAILABLE_NOW:
        writer = writer.trigger(availableNow=True)
    elif trigger is not None:
        writer = writer.trigger(processingTime=trigger)
    quietly()
    return writer.start()


def stop(query: StreamingQuery, *, timeout_s: float = 60.0) -> None:
    """End a query between two batches; after the timeout in the midst of one, which does no harm."""
    until = time.monotonic() + timeout_s
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < until:
        time.sleep(_POLL_S)
    query.stop()


@dataclass(frozen=True, slots=True, kw_only=True)
class _How:
    """How a query commits its batches."""

    lake: SparkLake
    name: str
    mode: str
    deletes: str
    latest_by: str | Column | None
    keys: tuple[str, ...]
    #: Where the session says, unless somebody said where.
    place: CommitOptions
    on_batch: Callable[[Batch], None] | None

    def how(self, key: str) -> CommitOptions:
        """Return how a batch is committed that is known by a key."""
        return {**self.place, "key": key}

    def take(self, rows: DataFrame, batch_id: int) -> None:
        """Commit one micro-batch, unless that was done before."""
        start = time.perf_counter()
        query_id = rows.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
        assert query_id is not None  # Spark sets it for every batch
        key = batch_key(query_id, batch_id)
        with ending_with(rows.sparkSession, query_id):
            table = self.lake.table(self.name)
            done = _done_before(table, key) or self._commit(table, rows, key)
        summary = {} if done is None or done.snapshot is None else done.snapshot.summary or {}
        batch = Batch(
            query_id=query_id,
            batch_id=batch_id,
            committed=done,
            rows=int(summary.get("added-records", 0)),
            files=int(summary.get("added-data-files", 0)),
            spent_ms=(time.perf_counter() - start) * 1000,
        )
        _tell(batch, self.name)
        if self.on_batch is not None:
            self.on_batch(batch)

    def _commit(self, table: Table, rows: DataFrame, key: str) -> Committed | None:
        if self.mode == APPEND:
            return self._append(table, rows, key)
        chosen = self._latest(rows)
        if self.deletes == EQUALITY:
            transaction = begin(self.lake.spark, table, **self.how(key))
            return upsert_by_equality(table, chosen, self.keys, transaction)
        # Looked at more than once, and of equal rows another may be the latest the next time.
        held = chosen.persist()
        try:
            if held.isEmpty():
                return None
            if self.latest_by is None:
                # Two that match nothing would both be inserted.
                require_unique(held, self.keys)
            return self.lake.upsert(self.name, held, **self.how(key))
        finally:
            held.unpersist()

    def _append(self, table: Table, rows: DataFrame, key: str) -> Committed | None:
        transaction = begin(self.lake.spark, table, **self.how(key))
        metadata = transaction.metadata
        ready = arranged(fit(rows, table.schema, table=self.name), metadata)
        with transaction:
            store = table.files.store
            made = sink(ready, table=self.name, metadata=metadata, store=store)
            files = transaction.adopt(made.files)
            if not files.num_rows:
                return None
            transaction.append_files(files)
            return transaction.commit()

    def _latest(self, rows: DataFrame) -> DataFrame:
        """Return one row for each key, where there is an order to choose by."""
        if self.latest_by is None:
            return rows
        order = as_column(self.latest_by)
        newest = Window.partitionBy(*map(column, self.keys)).orderBy(order.desc())
        ranked = rows.withColumn(_RANK, f.row_number().over(newest))
        return ranked.where(f.col(_RANK) == 1).drop(_RANK)


def _done_before(table: Table, key: str) -> Committed | None:
    """Return the commit that was made under a key, without a row being read for it."""
    from icetree.table.commit.report import Report

    found = already_applied(Work(base=table.state, key=key), table.metadata, table.files)
    if found is None:
        return None
    return Committed(state=table.state, snapshot=found, report=Report(), repeated=True)


def _tell(batch: Batch, name: str) -> None:
    done = batch.committed
    number = "none" if done is None or done.snapshot is None else done.snapshot.snapshot_id
    log.info(
        "stream %s batch %d to %s: rows=%d files=%d snapshot=%s repeated=%s retries=%d ms=%.0f",
        batch.query_id, batch.batch_id, name, batch.rows, batch.files, number, batch.repeated,
        0 if done is None else done.report.retries, batch.spent_ms,
    )  # fmt: skip


def _place(checkpoint: str | Path) -> str:
    """Return a folder as Spark finds it: to Java, a relative path is where Java was started."""
    given = str(checkpoint)
    return given if scheme_of(given) else str(Path(given).expanduser().absolute())


def _require(value: str, name: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidInput(f"{name}={value!r}: allowed are {' and '.join(allowed)}")
