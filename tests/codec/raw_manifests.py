"""Manifests written without any care: whatever the entries say goes into the file.

Independent of the codec: every column is there, none is required, and nothing is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from icetree.spec.entry import stats
from icetree.spec.entry.entry import Entries
from icetree.spec.fields import ENTRY, FIELD_ID_KEY, GEO_AXES, STAT_OFFSETS, Column

METADATA = {"format-version": "4"}
CONTENT_STATS = 10000


def field(name: str, type: pa.DataType, id: int | None) -> pa.Field:
    """Return an Arrow field with a field id, or with none."""
    return pa.field(name, type, metadata=None if id is None else {FIELD_ID_KEY: str(id)})


def nested(entries: Entries) -> pa.Table:
    """Return entries in the shape they have on disk."""
    arrays: list[pa.Array] = []
    fields: list[pa.Field] = []
    groups: dict[str, tuple[int, list[pa.Array], list[pa.Field]]] = {}
    for column in ENTRY:
        array, made = _column(entries, column)
        if column.group is None:
            arrays.append(array)
            fields.append(made)
        else:
            group = groups.setdefault(column.group.name, (column.group.id, [], []))
            group[1].append(array)
            group[2].append(made)
    for name, (id, members, of) in groups.items():
        arrays.append(pa.StructArray.from_arrays(members, fields=of))
        fields.append(field(name, arrays[-1].type, id))
    told = [_stats(entries, id) for id in stats.fields_in(entries)]
    if told:
        arrays.append(pa.StructArray.from_arrays([a for a, _ in told], fields=[f for _, f in told]))
        fields.append(field("content_stats", arrays[-1].type, CONTENT_STATS))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _column(entries: Entries, column: Column) -> tuple[pa.Array, pa.Field]:
    array, type = entries[column.name].combine_chunks(), column.type
    if column.element_id is not None:
        type = pa.list_(field("element", type.value_type, column.element_id))
    return array.cast(type), field(column.disk_name or column.name, type, column.id)


def _stats(entries: Entries, field_id: int) -> tuple[pa.Array, pa.Field]:
    members, fields = [], []
    for stat, (offset, name) in STAT_OFFSETS.items():
        if (column := stats.column(field_id, stat)) not in entries.column_names:
            continue
        array = entries[column].combine_chunks()
        if pa.types.is_struct(array.type):
            start = stats.base_id(field_id) + (10 if stat == "lower" else 14)
            axes = [field(axis, pa.float64(), start + i) for i, axis in enumerate(GEO_AXES)]
            array = array.cast(pa.struct(axes))
        members.append(array)
        fields.append(field(name, array.type, stats.base_id(field_id) + offset))
    struct = pa.StructArray.from_arrays(members, fields=fields)
    return struct, field(f"field {field_id}", struct.type, stats.base_id(field_id))


def raw(
    entries: Entries,
    kind: str,
    *,
    metadata: Mapping[str, str] | None = None,
    change: Callable[[pa.Table], pa.Table] = lambda table: table,
) -> bytes:
    """Return a manifest file of the entries, the nested table changed at the last moment."""
    table = change(nested(entries))
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, store_schema=False) as writer:
        told = {**METADATA, "content": kind} if metadata is None else metadata
        writer.add_key_value_metadata(dict(told))
        writer.write_table(table)
    return bytes(sink.getvalue())
