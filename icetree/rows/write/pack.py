"""Writing rows that come in order as files of a size: streamed, one row group in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyiceberg.types import UnknownType

from icetree.rows.formats.format import RowsWriter
from icetree.rows.write.layout import (
    Layout,
    Written,
    encode,
    entries_of,
    new_location,
)
from icetree.rows.write.partition import Partition, by_partition, key_of
from icetree.rows.write.sealing import Sealing
from icetree.rows.write.stats import StatsGatherer
from icetree.spec.entry.entry import Content, Entries, Entry
from icetree.spec.location import stored_form
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.schema.metadata_columns import stored_lineage
from icetree.store.base import Store
from icetree.surroundings import new_uuid

#: So many bytes of rows tell how small they get in a file.
_SAMPLED_BYTES: Final = 16 * 1024 * 1024
#: Files are in memory until they are stored; where all that are open have more, the largest ends.
_HELD_BYTES: Final = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedSize:
    """How large files get."""

    #: How many rows there are; about right will do.
    rows: int
    #: Given the bytes of all rows in files, how many files there are to be.
    count: Callable[[float], int]
    #: No file has more bytes by much.
    max_bytes: int


def layout_of(metadata: TableMetadata, spec_id: int) -> Layout:
    """Return what files of a spec have in common whose rows keep their lineage."""
    shape, schema = metadata.shape(), metadata.schema()
    fields = tuple(each for each in schema.fields if not isinstance(each.field_type, UnknownType))
    return Layout(
        content=Content.DATA,
        fields=(*fields, *stored_lineage(schema)),
        modes=metadata.metrics(),
        spec_id=spec_id,
        spec=shape.spec(spec_id),
        shape=shape,
        metadata=metadata,
    )


def write_packed(
    portions: Iterator[pa.Table],
    layout: Layout,
    size: PackedSize,
    *,
    store: Store,
    sort_order_id: int | None,
) -> Entries:
    """Write rows as files, in the order in which they come; return their entries.

    Columns are those of the layout, as `rows.fit.fitted` gives them. When anything fails no file stays.
    """
    packer = _Packer(layout=layout, store=store, size=size, sort_order_id=sort_order_id)
    try:
        for portion in portions:
            packer.add(portion)
        packer.close()
    except BaseException:
        packer.discard()
        raise
    return entries_of(packer.files, layout.shape)


@dataclass(slots=True)
class _Open:
    """A file that is being made: what is encoded, and rows that wait to be."""

    values: tuple[pa.Scalar, ...]
    stats: StatsGatherer
    sink: pa.BufferOutputStream = field(default_factory=pa.BufferOutputStream)
    writer: RowsWriter | None = None
    how: Sealing | None = None
    rows: int = 0
    waiting: list[pa.Table] = field(default_factory=list)
    waiting_bytes: int = 0

    @property
    def held_bytes(self) -> int:
        return int(self.waiting_bytes + self.sink.tell())


class _Packer:
    """Cuts a stream of rows into files, partition by partition."""

    def __init__(
        self, *, layout: Layout, store: Store, size: PackedSize, sort_order_id: int | None
    ) -> None:
        self._layout = layout
        self._store = store
        self._size = size
        self._sort_order_id = sort_order_id
        self._group_bytes = layout.format.bytes_at_once(layout.metadata.properties)
        self._open: dict[tuple[Hashable, ...], _Open] = {}
        self._rows_a_file: int | None = None
        self._job = new_uuid()
        self._started: list[str] = []
        self.files: list[Written] = []

    def add(self, rows: pa.Table) -> None:
        """Take rows."""
        for part in by_partition(rows, self._layout.spec, self._layout.shape):
            self._add(part)

    def close(self) -> None:
        """Write what is left."""
        for key in list(self._open):
            self._end(key)

    def discard(self) -> None:
        """Remove what was written."""
        with suppress(Exception):
            self._store.delete(self._started)

    def _add(self, part: Partition) -> None:
        rows, key = part.rows, key_of(part.values)
        if self._rows_a_file is None:
            self._rows_a_file = self._measured(rows)
        while rows.num_rows:
            file = self._open.get(key)
            if file is None:
                gatherer = StatsGatherer(self._layout.fields, self._layout.modes)
                file = self._open[key] = _Open(part.values, gatherer)
            some = rows.slice(0, self._rows_a_file - file.rows)
            rows = rows.slice(some.num_rows)
            file.rows += some.num_rows
            file.waiting.append(some)
            file.waiting_bytes += some.nbytes
            if file.waiting_bytes >= self._group_bytes:
                self._encode(file)
            if file.rows >= self._rows_a_file or file.sink.tell() >= self._size.max_bytes:
                self._end(key)
        while sum(each.held_bytes for each in self._open.values()) > _HELD_BYTES:
            self._end(max(self._open, key=lambda each: self._open[each].held_bytes))

    def _measured(self, rows: pa.Table) -> int:
        """Return how many rows make a file, by how small the first ones get."""
        few = rows.slice(
            0, max(1, int(rows.num_rows * min(1, _SAMPLED_BYTES / max(1, rows.nbytes))))
        )
        a_row = len(encode(few, self._layout).content) / few.num_rows
        total = max(self._size.rows, rows.num_rows)
        return max(1, int(-(-total // self._size.count(total * a_row))))

    def _encode(self, file: _Open) -> None:
        if not file.waiting:
            return
        rows, layout = pa.concat_tables(file.waiting), self._layout
        file.waiting, file.waiting_bytes = [], 0
        file.stats.add(rows)
        if file.writer is None:
            file.how = Sealing.of(layout.format, layout.key_bytes)
            file.writer = file.how.format.begin(
                file.sink, layout.fields, layout.metadata.properties
            )
        file.writer.write(rows)

    def _end(self, key: tuple[Hashable, ...]) -> None:
        file = self._open.pop(key)
        self._encode(file)
        assert file.writer is not None
        assert file.how is not None
        file.writer.close()
        stored = file.how.stored(file.sink.getvalue())
        folder = self._layout.folder(file.values)
        name = f"{len(self._started):05d}-{self._job}.{self._layout.format.name}"
        location = new_location(self._layout.metadata, folder + name)
        self._started.append(location)
        self._store.write_new(location, stored.content)
        found = file.stats.stats()
        self.files.append(
            Written(
                entry=Entry(
                    content_type=Content.DATA,
                    location=stored_form(location, self._layout.metadata.location),
                    file_format=self._layout.format.name,
                    partition_spec_id=self._layout.spec_id,
                    sort_order_id=self._sort_order_id,
                    record_count=file.rows,
                    file_size_in_bytes=len(stored.content),
                    split_offsets=stored.split_offsets,
                    key_metadata=stored.key_metadata,
                ),
                stats=self._layout.with_partition(found, file.values, file.rows),
            )
        )
