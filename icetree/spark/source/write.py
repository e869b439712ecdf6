"""The writing faces of the Python data source: executors write files, the driver commits once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from typing_extensions import override

from icetree.codec import metadata as metadata_codec
from icetree.errors import IcetreeError, InvalidInput
from icetree.filters.filter import parse_filter
from icetree.rows.read.filter import row_filter
from icetree.rows.write.write import write_files
from icetree.spark.restored import fitting
from icetree.spark.ship import shipped, shipped_metadata, unshipped
from icetree.spark.source.options import Options
from icetree.spark.write.sink import discard
from icetree.spec.entry.entry import Entries, concat, to_table
from icetree.spec.metadata.encryption import require_told
from icetree.spec.metadata.snapshot import MAIN
from icetree.store.base import Store
from icetree.store.open import store_for
from icetree.table.commit.commit import Committed
from icetree.table.rows.overwrite import matching
from icetree.table.state import require_same
from icetree.table.table import Table

STATIC, DYNAMIC = "static", "dynamic"
_MODES = (STATIC, DYNAMIC)


@dataclass
class Written(WriterCommitMessage):
    """The entries of the files that one task wrote."""

    files: bytes | None


class FileWriter:
    """Writes rows as files of the table, on an executor."""

    def __init__(self, table: Table, where: str | None = None) -> None:
        require_told(table.metadata)
        if where is not None:
            row_filter(parse_filter(where), table.schema)
        self.table_uuid = table.metadata.table_uuid
        self._store: Store = table.files.store
        self._name = str(table.name)
        self._metadata = shipped_metadata(table.metadata)
        #: What rows must match.
        self._where = where

    def write(self, batches: Iterator[pa.RecordBatch]) -> Written:
        """Write what a task has; nothing is written for no rows."""
        table = metadata_codec.decode(self._metadata, file="table metadata")
        types = {field.name: field.field_type for field in table.schema().fields}
        ready = (fitting(batch, types) for batch in batches if batch.num_rows)
        first = next(ready, None)
        if first is None:
            return Written(files=None)
        rows: Iterator[pa.RecordBatch] = chain([first], ready)
        if self._where is not None:
            rows = matching(rows, parse_filter(self._where), table.schema(), name=self._name)
        written = write_files(rows, table=self._name, metadata=table, store=self._store)
        return Written(files=shipped(written))


class TableWriter(DataSourceArrowWriter):
    """Appends rows to a table, or puts them in the place of others."""

    def __init__(self, options: Options, *, overwrite: bool) -> None:
        self._options = options
        self._mode = _mode(options) if overwrite else None
        self._files = FileWriter(options.load(), options.values.get("where"))

    @override
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write files, on an executor."""
        return self._files.write(iterator)

    @override
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit what all tasks wrote, as one snapshot."""
        files = _gathered(messages)
        if files is None and self._mode is None:
            return
        with self._options.connect() as connection:
            table = connection.table(self._options.table)
            if files is None:
                files = to_table([], table.metadata.shape())
            key, uuid = self._options.values.get("key"), self._files.table_uuid
            _commit(table, files, self._options, key, mode=self._mode, uuid=uuid)

    @override
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete what tasks wrote, if one of them failed."""
        _abort(messages, self._options)


class TableStreamWriter(DataSourceStreamArrowWriter):
    """Appends micro-batches to a table, each exactly once."""

    def __init__(self, options: Options, *, overwrite: bool) -> None:
        if overwrite:
            raise InvalidInput(
                "a stream appends: use outputMode('append'), or lake.write_stream(mode='upsert')"
            )
        self._options = options
        self._query = query_id(options)
        self._files = FileWriter(options.load())

    @override
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write files, on an executor."""
        return self._files.write(iterator)

    @override
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Commit a micro-batch, unless that was done before."""
        files = _gathered(messages)
        if files is None:
            return
        with self._options.connect() as connection:
            table = connection.table(self._options.table)
            key, uuid = batch_key(self._query, batchId), self._files.table_uuid
            _commit(table, files, self._options, key, mode=None, uuid=uuid)

    @override
    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Delete what tasks wrote, if one of them failed."""
        _abort(messages, self._options)


def batch_key(query: str, batch: int) -> str:
    """Return the key of a micro-batch: Spark gives a batch that is run again the same number."""
    return f"stream:{query}:{batch}"


def query_id(options: Options) -> str:
    """Return what tells a query from all others: its own id, which its checkpoint keeps."""
    given = options.values.get("query-id")
    if given:
        return given
    place = options.values.get("checkpointlocation")
    if not place:
        raise InvalidInput(
            "a stream needs option checkpointLocation, or query-id, by which a batch that is run "
            "again is known"
        )
    store = store_for(place, options.values)
    at = f"{place.rstrip('/')}/metadata"
    try:
        return str(json.loads(store.read(at))["id"])
    except (IcetreeError, ValueError, KeyError) as error:
        raise InvalidInput(
            f"{at} does not tell the query's id ({error}): give option query-id"
        ) from None


def _mode(options: Options) -> str:
    mode = options.values.get("overwrite-mode", STATIC)
    if mode not in _MODES:
        raise InvalidInput(f"option overwrite-mode={mode!r}: allowed are {', '.join(_MODES)}")
    if mode == DYNAMIC and "where" in options.values:
        raise InvalidInput(
            "options where and overwrite-mode=dynamic exclude each other: each says which rows go"
        )
    return mode


def _gathered(messages: Sequence[WriterCommitMessage | None]) -> Entries | None:
    parts = [unshipped(each.files) for each in messages if isinstance(each, Written) and each.files]
    return concat(parts) if parts else None


def _commit(
    table: Table,
    files: Entries,
    options: Options,
    key: str | None,
    *,
    mode: str | None,
    uuid: str | None,
) -> Committed:
    branch = options.values.get("branch", MAIN)
    with table.transaction(branch=branch, key=key) as transaction:
        transaction.adopt(files)
        require_same(table.name, table.metadata, was=uuid)
        if mode is None:
            transaction.append_files(files)
        elif mode == STATIC:
            where = options.values.get("where")
            # Each row was looked at when it was written.
            transaction.overwrite(AlwaysTrue() if where is None else where, files, strict=False)
        else:
            transaction.replace_partitions(files)
        return transaction.commit()


def _abort(messages: Sequence[WriterCommitMessage | None], options: Options) -> None:
    """Delete what tasks wrote, where one of them failed.

    Spark also gives up what `commit` failed on, once all tasks had succeeded: that has cleaned up
    by itself, or does not know whether the files are the table's by now.
    """
    files = _gathered(messages)
    if files is not None and None in messages:
        table = options.load()
        discard(files, table.metadata, table.files.store)
