"""Writing rows as data files of the table: partitioned, sorted, with exact stats."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyiceberg.types import NestedField, UnknownType
from typing_extensions import Self

from icetree.errors import InvalidInput
from icetree.rows.formats.format import Format
from icetree.rows.formats.formats import format_to_write
from icetree.rows.write.fit import ArrowData, fitted, without_untyped
from icetree.rows.write.partition import Partition, by_partition, folder_of, key_of, sorted_rows
from icetree.rows.write.sealing import Sealing, Stored
from icetree.rows.write.stats import FileStats, partition_stats, stats_of
from icetree.spec.entry.entry import Content, Entries, Entry, to_table
from icetree.spec.entry.metrics import Mode
from icetree.spec.entry.stats import column, parse_column, stat_type
from icetree.spec.location import absolute, prefix_of, stored_form
from icetree.spec.metadata.encryption import data_key_bytes, require_told
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.properties.values import whole_number
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.metadata_columns import stored_lineage
from icetree.spec.schema.shape import Shape
from icetree.store.base import Store
from icetree.surroundings import new_pool, new_uuid

TARGET_FILE_SIZE: Final = "write.target-file-size-bytes"
DEFAULT_TARGET_FILE_SIZE: Final = 512 * 1024 * 1024
DATA_PATH: Final = "write.data.path"

#: Rows are looked at in portions of this many bytes, and held back up to so many.
_PORTION_BYTES: Final = 128 * 1024 * 1024
_HELD_BYTES: Final = 1024 * 1024 * 1024


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
    so they are smaller than that once compressed. With `keep_lineage` the data has the lineage of
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
    with Writer(layout=layout, store=store, target_bytes=target) as writer:
        for portion in in_portions(rows, _PORTION_BYTES):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What all files of one job have in common."""

    content: Content
    fields: tuple[NestedField, ...]
    modes: Mapping[int, Mode]
    spec_id: int
    spec: tuple[Expression, ...]
    shape: Shape
    metadata: TableMetadata
    equality_ids: tuple[int, ...] | None = None

    @property
    def format(self) -> Format:
        """What the files are."""
        is_data = self.content is Content.DATA
        return format_to_write(self.metadata.properties, deletes=not is_data)

    @property
    def key_bytes(self) -> int | None:
        """How long the keys of the files are; None where they are plain."""
        return data_key_bytes(self.metadata.properties)

    def folder(self, values: Sequence[pa.Scalar]) -> str:
        """Return the folder of a partition's files; names of folders are no place for secrets."""
        return "" if self.key_bytes else folder_of(values, self.spec, self.shape)

    def stats(self, rows: pa.Table, values: Sequence[pa.Scalar]) -> FileStats:
        """Return the stats of a file's rows, its partition's among them."""
        found = stats_of(rows, self.fields, self.modes)
        return self.with_partition(found, values, rows.num_rows)

    def with_partition(self, found: FileStats, values: Sequence[pa.Scalar], rows: int) -> FileStats:
        """Return the stats of a file with those of its partition."""
        for expression, value in zip(self.spec, values, strict=True):
            id = expression.stats_field
            # Of an identity, the column's own stats say it, where the file has the column.
            if expression.transform != "void" and column(id, "values") not in found:
                found |= partition_stats(id, value, rows)
        return found


@dataclass(slots=True)
class _Pending:
    """Rows of a partition that wait to become a file."""

    values: tuple[pa.Scalar, ...]
    parts: list[pa.Table] = field(default_factory=list)
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file that was written, or found: its entry, and its stats."""

    entry: Entry
    stats: FileStats


class Writer:
    """Gathers rows by partition and writes files as they fill up, several at a time."""

    def __init__(self, *, layout: Layout, store: Store, target_bytes: int) -> None:
        self._layout = layout
        self._store = store
        self._target_bytes = target_bytes
        self._pending: dict[tuple[Hashable, ...], _Pending] = {}
        self._workers = min(4, os.cpu_count() or 1)
        self._pool = new_pool(self._workers, "icetree-write")
        self._files: list[Future[Written]] = []
        self._started: list[str] = []
        self._job = new_uuid()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                for pending in list(self._pending.values()):
                    self._flush(pending)
                for file in self._files:
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
        pending.size_bytes += part.rows.nbytes
        if pending.size_bytes >= self._target_bytes:
            self._flush(pending)
        held = sum(each.size_bytes for each in self._pending.values())
        while held > _HELD_BYTES:
            largest = max(self._pending.values(), key=lambda each: each.size_bytes)
            held -= largest.size_bytes
            self._flush(largest)

    def entries(self) -> Entries:
        """Return the entries of the files written, in the order they were begun."""
        return entries_of([file.result() for file in self._files], self._layout.shape)

    def _flush(self, pending: _Pending) -> None:
        del self._pending[key_of(pending.values)]
        rows = pa.concat_tables(pending.parts)
        if self._layout.content is Content.DATA:
            rows = sorted_rows(rows, self._layout.metadata.sort_keys, self._layout.shape)
        count = max(1, round(rows.nbytes / self._target_bytes))
        each = -(-rows.num_rows // count)
        for start in range(0, rows.num_rows, each):
            self._begin(rows.slice(start, each), pending.values)

    def _begin(self, rows: pa.Table, values: tuple[pa.Scalar, ...]) -> None:
        # The oldest is waited for, so that encoded files do not pile up in memory.
        if len(self._files) > self._workers:
            self._files[-self._workers - 1].result()
        folder = self._layout.folder(values)
        name = f"{len(self._files):05d}-{self._job}.{self._layout.format.name}"
        location = new_location(self._layout.metadata, folder + name)
        self._started.append(location)
        self._files.append(
            self._pool.submit(_write, rows, values, location, self._layout, self._store)
        )

    def _discard(self) -> None:
        for file in self._files:
            file.cancel()
        self._pool.shutdown(wait=True, cancel_futures=True)
        with suppress(Exception):
            self._store.delete(self._started)


def new_location(metadata: TableMetadata, name: str) -> str:
    """Return the absolute location of a new file of rows."""
    base = metadata.properties.get(DATA_PATH)
    return (prefix_of(base) if base else absolute("data/", metadata.location)) + name


def _write(
    rows: pa.Table,
    values: tuple[pa.Scalar, ...],
    location: str,
    layout: Layout,
    store: Store,
) -> Written:
    stored = encode(rows, layout)
    store.write_new(location, stored.content)
    is_data = layout.content is Content.DATA
    return Written(
        entry=Entry(
            content_type=layout.content,
            location=stored_form(location, layout.metadata.location),
            file_format=layout.format.name,
            partition_spec_id=layout.spec_id,
            sort_order_id=layout.metadata.default_sort_order_id if is_data else None,
            record_count=rows.num_rows,
            file_size_in_bytes=len(stored.content),
            split_offsets=stored.split_offsets,
            equality_ids=layout.equality_ids,
            key_metadata=stored.key_metadata,
        ),
        stats=layout.stats(rows, values),
    )


def encode(rows: pa.Table, layout: Layout) -> Stored:
    """Return rows as a file."""
    sink, how = pa.BufferOutputStream(), Sealing.of(layout.format, layout.key_bytes)
    writer = how.format.begin(sink, layout.fields, layout.metadata.properties)
    writer.write(rows)
    writer.close()
    return how.stored(sink.getvalue())


def entries_of(files: Sequence[Written], shape: Shape) -> Entries:
    """Return files with their stats, as columns."""
    table = to_table([file.entry for file in files], shape)
    names: dict[str, None] = {}
    for file in files:
        names |= dict.fromkeys(file.stats)
    # All at once: a table that grows by a column is made anew each time, and these may be thousands.
    columns = dict(zip(table.column_names, table.columns, strict=True))
    for name in names:
        parsed = parse_column(name)
        assert parsed is not None
        bounds = shape.bounds_type(parsed[0]) or pa.null()
        values = [file.stats.get(name) for file in files]
        columns[name] = pa.array(values, stat_type(parsed[1], bounds))
    return pa.table(columns)
