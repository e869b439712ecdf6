"""Every position that a delete marks, a row each, as Iceberg's `position_deletes` table has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import (
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
)

from icetree.rows.read.deletes import read_vector
from icetree.rows.read.files import ReadRules, open_file
from icetree.rows.read.partition_values import partition_column
from icetree.rows.schema import arrow_field, arrow_type
from icetree.spec.entry.entry import Content, is_content, is_data_dv, is_data_file
from icetree.spec.fields import DELETE_FILE_PATH_FIELD, DELETE_POS_FIELD
from icetree.spec.locations import absolute_array
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.schema.metadata_columns import partition_type
from icetree.spec.schema.shape import Shape
from icetree.store.base import Store
from icetree.tree.live import live_files

if TYPE_CHECKING:
    from icetree.table.table import Table

#: Where a delete file of v2 may hold a copy of the row.
_ROW_FIELD: Final = 2147483544
_ROWS_AT_ONCE: Final = 1 << 16


def columns(shape: Shape) -> tuple[NestedField, ...]:
    """Return the columns; a table that was never partitioned has no `partition`."""
    partition = partition_type(shape)
    whole = shape.schema.as_struct()
    return (
        NestedField(DELETE_FILE_PATH_FIELD, "file_path", StringType(), required=False),
        NestedField(DELETE_POS_FIELD, "pos", LongType(), required=False),
        NestedField(_ROW_FIELD, "row", _optional(whole), required=False),
        *([NestedField(4, "partition", partition, required=False)] if partition.fields else []),
        NestedField(5, "spec_id", IntegerType(), required=False),
        NestedField(6, "delete_file_path", StringType(), required=False),
        NestedField(7, "content_offset", LongType(), required=False),
        NestedField(8, "content_size_in_bytes", LongType(), required=False),
    )


def _optional(struct: StructType) -> StructType:
    """Return a struct whose own fields may be null."""
    fields = [
        NestedField(each.field_id, each.name, each.field_type, required=False)
        for each in struct.fields
    ]
    return StructType(*fields)


def position_deletes_table(table: Table, snapshot: Snapshot | None) -> pa.Table:
    """Return all positions that are marked in a snapshot."""
    fields, store = columns(table.metadata.shape()), table.files.store
    files = marking(table, snapshot).to_pylist()
    parts = (batch for file in files for batch in positions(file, fields, store=store))
    return pa.Table.from_batches(parts, arrow_columns(fields))


def marking(table: Table, snapshot: Snapshot | None) -> pa.Table:
    """Return the live files that mark positions, a row each, with what all their rows tell.

    A DV is in the partition of its data file; one whose file is gone marks nothing.
    """
    shape, table_location = table.metadata.shape(), table.location
    live = live_files(
        table.files.counted_root(snapshot, shape),
        table.files.reader(shape),
        root_file=snapshot.root_file if snapshot else "root",
    )
    positional = live.filter(is_content(live, Content.POSITION_DELETES))
    data = live.filter(is_data_file(live))
    idle = pc.and_not(
        is_data_dv(positional),
        pc.is_in(positional["referenced_file"], data["location"].combine_chunks()),
    )
    positional = positional.filter(pc.invert(idle))
    is_dv = is_data_dv(positional)
    at = pc.index_in(positional["referenced_file"], value_set=data["location"].combine_chunks())
    at = pc.if_else(is_dv, at, pa.scalar(None, pa.int32()))
    theirs, own = (partition_column(each, shape) for each in (data, positional))
    specs = pc.coalesce(data["partition_spec_id"].take(at), positional["partition_spec_id"])
    refers = absolute_array(positional["referenced_file"], table_location)
    partition = theirs.take(at.combine_chunks()) if own.type.num_fields else own
    return pa.table(
        {
            "is_dv": is_dv,
            "file_format": positional["file_format"],
            "record_count": positional["record_count"],
            "rows_in_file": data["record_count"].take(at),
            "file_path": pc.if_else(is_dv, refers, pa.scalar(None, pa.string())),
            "partition": pc.if_else(is_dv.combine_chunks(), partition, own),
            "spec_id": specs,
            "delete_file_path": absolute_array(positional["location"], table_location),
            "content_offset": positional["dv_offset"],
            "content_size_in_bytes": positional["dv_size_in_bytes"],
            "key_metadata": positional["key_metadata"],
        }
    )


def positions(
    file: dict[str, Any], fields: tuple[NestedField, ...], *, store: Store
) -> Iterator[pa.RecordBatch]:
    """Yield the positions that one row of `marking` stands for, in the columns of `columns`."""
    found = _of_dv(file, store) if file["is_dv"] else _of_file(file, fields, store)
    for batch in found:
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            part = batch.slice(start, _ROWS_AT_ONCE)
            arrays = [
                part.column(field.name)
                if field.name in part.schema.names
                else pa.repeat(
                    pa.scalar(file.get(field.name), arrow_type(field.field_type)), part.num_rows
                )
                for field in fields
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=arrow_columns(fields))


def arrow_columns(fields: tuple[NestedField, ...]) -> pa.Schema:
    """Return the columns as Arrow has them."""
    return pa.schema([arrow_field(field) for field in fields])


def _of_dv(file: dict[str, Any], store: Store) -> Iterator[pa.RecordBatch]:
    told = {
        "location": file["file_path"],
        "record_count": file["rows_in_file"],
        "dv_location": file["delete_file_path"],
        "dv_offset": file["content_offset"],
        "dv_size_in_bytes": file["content_size_in_bytes"],
        "dv_cardinality": file["record_count"],
        "dv_key_metadata": file["key_metadata"],
    }
    yield pa.RecordBatch.from_arrays([pa.array(read_vector(store, told, ""))], names=["pos"])


def _of_file(
    file: dict[str, Any], fields: tuple[NestedField, ...], store: Store
) -> Iterator[pa.RecordBatch]:
    location = file["delete_file_path"]
    opened = open_file(store, location, file["file_format"], mapping=None, key=file["key_metadata"])
    rules = ReadRules(location=location)
    for group in opened.groups:
        for batch in opened.read(group, list(fields[:3]), rules):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=arrow_columns(fields[:3]))
