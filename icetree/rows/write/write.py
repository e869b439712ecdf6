"""Writing rows as data files of the table: partitioned, sorted, with exact stats."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyiceberg.types import UnknownType
from typing_extensions import Self

from icetree.errors import InvalidInput
from icetree.rows.write.fit import ArrowData, fitted, without_untyped
from icetree.rows.write.growing import Growing
from icetree.rows.write.layout import Layout, Written, encode, entries_of, new_location, written
from icetree.rows.write.partition import Partition, by_partition, key_of, sorted_rows
from icetree.spec.entry.entry import Content, Entries
from icetree.spec.metadata.encryption import require_told
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.properties.values import whole_number
from icetree.spec.schema.metadata_columns import stored_lineage
from icetree.store.base import Store
from icetree.surroundings import new_pool, new_uuid

TARGET_FILE_SIZE: Final = "write.target-file-size-bytes"
DEFAULT_TARGET_FILE_SIZE: Final = 512 * 1024 * 1024

#: Rows are looked at in portions of this many bytes, and held back up to so many.
_PORTION_BYTES: Final = 128 * 1024 * 1024
_HELD_BYTES: Final = 1024 * 1024 * 1024
#: Files grow by row groups, but not by less.
_GROWN_BYTES: Final = 32 * 1024 * 1024
#: So many files grow at once.
_GROWING: Final = 16

T = TypeVar("T")


def write_files(
    data: ArrowData,
    *,
    metadata: TableMetadata,
    store: Store,
    table: str | None = None,
    target_file_size: int | None = None,
    keep_lineage: bool = False,
) -> Entries:
    """Write rows as data files under the table's default spec; return their entries.

    Columns are matched by name. Files hold about `target_file_size` bytes of Arrow data at most,
    so they are smaller than that once compressed. Of a stream of rows a few portions are in memory,
    or a few files where the table has a sort order. With `keep_lineage` the data has the lineage of
    the rows, in columns that are named as `stored_lineage` does. When anything fails no file stays.
    Complaints call the table by its name, or by its location where none is given.
    """
    require_told(metadata)
    name = table or metadata.location
    shape, schema = metadata.shape(), metadata.schema()
    # A column without a type yet has nothing to store.
    fields = tuple(f for f in schema.fields if not isinstance(f.field_type, UnknownType))
    if not fields:
        raise InvalidInput(
            f"table {name} has no column that can be stored, so no row could be: add one"
        )
    stored = (*fields, *(stored_lineage(schema) if keep_lineage else ()))
    rows = fitted(
        without_untyped(data, schema.fields, table=name),
        stored,
        table=name,
    )
    target = target_file_size or whole_number(
        metadata.properties, TARGET_FILE_SIZE, default=DEFAULT_TARGET_FILE_SIZE, least=1
    )
    layout = Layout(
        content=Content.DATA,
        fields=stored,
        modes=metadata.metrics(),
        spec_id=metadata.default_spec_id,
        spec=shape.spec(metadata.default_spec_id),
        shape=shape,
        metadata=metadata,
    )
    # Rows that are in memory anyhow are written side by side, a whole file each.
    streams = not isinstance(data, pa.Table | pa.RecordBatch)
    with Writer(layout=layout, store=store, target_bytes=target, streams=streams) as writer:
        for portion in in_portions(rows, writer.portion_bytes):
            for part in by_partition(portion, layout.spec, shape):
                writer.add(part)
    return writer.entries()


def in_portions(batches: Iterator[pa.RecordBatch], least_bytes: int) -> Iterator[pa.Table]:
    """Yield rows as tables of so many bytes and a batch at most more; none without rows."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            size += batch.nbytes
        if size >= least_bytes:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


@dataclass(slots=True)
class _Pending:
    """Rows of a partition that wait to become a file."""

    values: tuple[pa.Scalar, ...]
    parts: list[pa.Table] = field(default_factory=list)
    size_bytes: int = 0
    #: The file that rows of it are in, where it is begun, with their size.
    growing: Growing | None = None
    grown_bytes: int = 0
    number: int = 0
    #: The last portion that was handed on.
    portion: Future[None] | None = None

    @property
    def held_bytes(self) -> int:
        """How much of it is in memory."""
        return self.size_bytes + (0 if self.growing is None else self.growing.held_bytes)


class Writer:
    """Gathers rows by partition and writes files as they fill up, several at a time.

    Where it `streams`, and rows need not be sorted, files grow by portions of them.
    """

    def __init__(
        self, *, layout: Layout, store: Store, target_bytes: int, streams: bool = False
    ) -> None:
        self._layout = layout
        self._store = store
        self._target_bytes = target_bytes
        sorts = layout.content is Content.DATA and layout.metadata.sort_keys
        self._streams = streams and not sorts
        #: How many rows are best added at once; those that are parted by their values cost by the part.
        self.portion_bytes = _GROWN_BYTES if self._streams and not layout.spec else _PORTION_BYTES
        self._pending: dict[tuple[Hashable, ...], _Pending] = {}
        #: The size of all rows in them.
        self._waiting_bytes = 0
        self._workers = min(4, os.cpu_count() or 1)
        self._pool = new_pool(self._workers, "icetree-write")
        #: By the number of the file; those that grow are not there yet.
        self._files: dict[int, Future[Written]] = {}
        self._growing: list[Growing] = []
        self._running: list[Future[Any]] = []
        self._started: list[str] = []
        self._job = new_uuid()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                for pending in list(self._pending.values()):
                    self._flush(pending)
                for file in self._files.values():
                    file.result()
        except BaseException:
            self._discard()
            raise
        else:
            if kind is not None:
                self._discard()
        finally:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def add(self, part: Partition) -> None:
        """Take rows of one partition."""
        pending = self._pending.setdefault(key_of(part.values), _Pending(part.values))
        pending.parts.append(part.rows)
        size_bytes = part.rows.nbytes
        pending.size_bytes += size_bytes
        self._waiting_bytes += size_bytes
        if pending.grown_bytes + pending.size_bytes >= self._target_bytes:
            self._flush(pending)
        elif pending.size_bytes >= _GROWN_BYTES and self._may_grow(pending):
            self._grow(pending)
        # Partitions may be many: they are looked at only where so much may be held at all.
        held = self._waiting_bytes + sum(each.held_bytes for each in self._growing.copy())
        if held > _HELD_BYTES:
            self._make_room()

    def entries(self) -> Entries:
        """Return the entries of the files written, in the order they were begun."""
        files = [self._files[number].result() for number in sorted(self._files)]
        return entries_of(files, self._layout.shape)

    def _may_grow(self, pending: _Pending) -> bool:
        if pending.growing is not None or not self._streams:
            return self._streams
        return sum(each.growing is not None for each in self._pending.values()) < _GROWING

    def _make_room(self) -> None:
        """End files, the largest first, until little enough is held."""
        while sum(each.held_bytes for each in self._pending.values()) > _HELD_BYTES:
            self._flush(max(self._pending.values(), key=lambda each: each.held_bytes))

    def _grow(self, pending: _Pending) -> None:
        """Write what waits, but for what is less than a row group."""
        layout, count = self._layout, sum(part.num_rows for part in pending.parts)
        properties, row_bytes = layout.metadata.properties, pending.size_bytes / count
        group = layout.format.rows_at_once(properties, row_bytes)
        if count < group:
            return
        rows = pa.concat_tables(pending.parts)
        part = rows.slice(0, count - count % group)
        if pending.growing is None:
            pending.number, location = self._place(pending.values)
            pending.growing = Growing(location, self._layout, self._store)
            self._growing.append(pending.growing)
        if pending.portion is not None:
            pending.portion.result()
        pending.portion = self._submit(pending.growing.add, part, group)
        pending.grown_bytes += part.nbytes
        pending.parts = [rows.slice(part.num_rows)]
        self._waiting_bytes -= pending.size_bytes
        pending.size_bytes = pending.parts[0].nbytes
        self._waiting_bytes += pending.size_bytes

    def _flush(self, pending: _Pending) -> None:
        del self._pending[key_of(pending.values)]
        self._waiting_bytes -= pending.size_bytes
        rows = pa.concat_tables(pending.parts)
        if pending.growing is not None:
            self._end(pending, pending.growing, rows)
            return
        if self._layout.content is Content.DATA:
            rows = sorted_rows(rows, self._layout.metadata.sort_keys, self._layout.shape)
        count = max(1, round(rows.nbytes / self._target_bytes))
        each = -(-rows.num_rows // count)
        for start in range(0, rows.num_rows, each):
            self._begin(rows.slice(start, each), pending.values)

    def _end(self, pending: _Pending, growing: Growing, rows: pa.Table) -> None:
        if pending.portion is not None:
            pending.portion.result()
        self._files[pending.number] = self._submit(self._ended, growing, rows, pending.values)

    def _ended(self, growing: Growing, rows: pa.Table, values: tuple[pa.Scalar, ...]) -> Written:
        made = growing.end(rows, values)
        # What is whole has nothing to be abandoned, and its writer holds memory.
        self._growing.remove(growing)
        return made

    def _begin(self, rows: pa.Table, values: tuple[pa.Scalar, ...]) -> None:
        number, location = self._place(values)
        self._files[number] = self._submit(
            _write, rows, values, location, self._layout, self._store
        )

    def _submit(self, call: Callable[..., T], *given: Any) -> Future[T]:
        # The oldest is waited for, so that rows and encoded files do not pile up in memory.
        if len(self._running) > self._workers:
            self._running[-self._workers - 1].result()
        begun = self._pool.submit(call, *given)
        self._running.append(begun)
        return begun

    def _place(self, values: tuple[pa.Scalar, ...]) -> tuple[int, str]:
        """Return the number of the next file of a partition, and where it is to be."""
        folder, number = self._layout.folder(values), len(self._started)
        name = f"{number:05d}-{self._job}.{self._layout.format.name}"
        location = new_location(self._layout.metadata, folder + name)
        self._started.append(location)
        return number, location

    def _discard(self) -> None:
        for each in self._running:
            each.cancel()
        self._pool.shutdown(wait=True, cancel_futures=True)
        for file in self._growing:
            file.abandon()
        with suppress(Exception):
            self._store.delete(self._started)


def _write(
    rows: pa.Table,
    values: tuple[pa.Scalar, ...],
    location: str,
    layout: Layout,
    store: Store,
) -> Written:
    stored = encode(rows, layout)
    store.write_new(location, stored.content)
    stats = layout.stats(rows, values)
    return written(location, layout, stored, rows.num_rows, len(stored.content), stats)
