"""What the new files of one job have in common, and what is told of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyiceberg.types import NestedField

from icetree.rows.formats.format import Format
from icetree.rows.formats.formats import format_to_write
from icetree.rows.write.partition import folder_of
from icetree.rows.write.sealing import Sealing, Stored
from icetree.rows.write.stats import FileStats, partition_stats, stats_of
from icetree.spec.entry.entry import Content, Entries, Entry, to_table
from icetree.spec.entry.metrics import Mode
from icetree.spec.entry.stats import column, parse_column, stat_type
from icetree.spec.location import absolute, prefix_of, stored_form
from icetree.spec.metadata.encryption import data_key_bytes
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape

DATA_PATH: Final = "write.data.path"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file that was written, or found: its entry, and its stats."""

    entry: Entry
    stats: FileStats


def new_location(metadata: TableMetadata, name: str) -> str:
    """Return the absolute location of a new file of rows."""
    base = metadata.properties.get(DATA_PATH)
    return (prefix_of(base) if base else absolute("data/", metadata.location)) + name


def written(
    location: str, layout: Layout, stored: Stored, rows: int, size_bytes: int, stats: FileStats
) -> Written:
    """Return a file that was written as its layout tells, with its entry."""
    is_data = layout.content is Content.DATA
    return Written(
        entry=Entry(
            content_type=layout.content,
            location=stored_form(location, layout.metadata.location),
            file_format=layout.format.name,
            partition_spec_id=layout.spec_id,
            sort_order_id=layout.metadata.default_sort_order_id if is_data else None,
            record_count=rows,
            file_size_in_bytes=size_bytes,
            split_offsets=stored.split_offsets,
            equality_ids=layout.equality_ids,
            key_metadata=stored.key_metadata,
        ),
        stats=stats,
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
