"""Entries to a Parquet manifest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.types import UUIDType

from icetree.codec.manifest.row_groups import OFTEN_SAME
from icetree.spec.arrays import one_chunk
from icetree.spec.entry import stats
from icetree.spec.entry.entry import DVS, MANIFESTS, POSITION, ROOT, Entries
from icetree.spec.fields import (
    BY_NAME,
    CONTENT_KEY,
    CONTENT_STATS,
    DELETION_VECTOR,
    ENTRY,
    FIELD_ID_KEY,
    FORMAT_VERSION,
    FORMAT_VERSION_KEY,
    GEO_AXES,
    GEO_LOWER_START,
    GEO_UPPER_START,
    MANIFEST_STATS,
    STAT_OFFSETS,
    Group,
)
from icetree.spec.rules import entry as entry_rules
from icetree.spec.schema.shape import Shape
from icetree.spec.schema.types import VARIANT_BOUND

#: Below this many entries a manifest is all fixed cost: plain pages and one fast codec.
SMALL = 128
LEAF_ROW_GROUP = 8192


def encode(entries: Entries, kind: str, shape: Shape, *, file: str = "new manifest") -> bytes:
    """Return a manifest of the kind, refusing entries that break a rule of the format.

    Stats of fields whose ids are too large for them are left out.
    """
    entries = stats.storable(entries).combine_chunks()
    entry_rules.require(entries, kind, file=file)
    entry_rules.require_unique(entries, file=file)
    present = tuple(
        (name, column.type)
        for name, column in zip(entries.schema.names, entries.itercolumns(), strict=True)
        if name != POSITION and (column.null_count < len(column) or _is_required(name))
    )
    layout = _layout(present, tuple(_facts(id, shape) for id in _fields(present)), kind)
    columns = {name: one_chunk(entries[name]) for name, _ in present}
    table = pa.Table.from_arrays(
        [_assemble(part, columns) for part in layout.parts], schema=layout.schema
    )
    sink = pa.BufferOutputStream()
    options = layout.small if entries.num_rows < SMALL else layout.large
    with pq.ParquetWriter(sink, layout.schema, **options) as writer:
        writer.add_key_value_metadata({FORMAT_VERSION_KEY: str(FORMAT_VERSION), CONTENT_KEY: kind})
        writer.write_table(table, row_group_size=None if kind == ROOT else LEAF_ROW_GROUP)
    return bytes(sink.getvalue())


@dataclass(frozen=True, slots=True)
class _Part:
    """One Arrow field on disk: a flat column, or a struct of parts."""

    field: pa.Field
    column: str | None = None
    members: tuple[_Part, ...] = ()


@dataclass(frozen=True, slots=True)
class _Layout:
    parts: tuple[_Part, ...]
    schema: pa.Schema
    small: dict[str, Any]
    large: dict[str, Any]


def _is_required(name: str) -> bool:
    column = BY_NAME.get(name)
    return column is not None and column.required


def _fields(present: tuple[tuple[str, pa.DataType], ...]) -> list[int]:
    found = (stats.parse_column(name) for name, _ in present)
    return list(dict.fromkeys(each[0] for each in found if each))


def _field(name: str, type: pa.DataType, id: int, *, required: bool = False) -> pa.Field:
    return pa.field(name, type, nullable=not required, metadata={FIELD_ID_KEY: str(id)})


def _facts(field_id: int, shape: Shape) -> tuple[str, bool]:
    """Return the name of a field's struct, and whether its bounds are UUIDs."""
    name = shape.names.get(field_id, str(field_id))
    return name, isinstance(shape.types.get(field_id), UUIDType)


@lru_cache(maxsize=256)
def _layout(
    present: tuple[tuple[str, pa.DataType], ...], facts: tuple[tuple[str, bool], ...], kind: str
) -> _Layout:
    parts = (*_entry_parts({name for name, _ in present}), *_stats_parts(present, facts))
    schema = pa.schema([part.field for part in parts])
    leaves = list(_leaves(parts, ""))
    common: dict[str, Any] = {
        "use_dictionary": False,
        "store_schema": False,
        "store_decimal_as_integer": True,
        "write_page_checksum": True,
        "write_statistics": False
        if kind == ROOT
        else [path for path, column, type in leaves if _has_statistics(column, type)],
    }
    dense = {path for path, _, type in leaves if not _is_packable(type)}
    return _Layout(
        parts,
        schema,
        small=common | {"compression": "lz4", "write_statistics": False},
        large=common
        | {
            "compression": {path: "zstd" if path in dense else "none" for path, _, _ in leaves},
            "compression_level": dict.fromkeys(dense, 1),
            "column_encoding": {
                path: "DELTA_BINARY_PACKED" if _is_packable(type) else "PLAIN"
                for path, _, type in leaves
            },
        },
    )


def _has_statistics(column: str, type: pa.DataType) -> bool:
    """Tell whether readers want to know something of a column without reading it."""
    is_bound = column.endswith((":lower", ":upper")) and type != VARIANT_BOUND
    return column in OFTEN_SAME or is_bound


def _entry_parts(present: set[str]) -> list[_Part]:
    parts: list[_Part] = []
    grouped: set[Group] = set()
    for column in ENTRY:
        if column.name not in present:
            continue
        if column.group is None:
            parts.append(_entry_part(column.name))
        elif column.group not in grouped:
            grouped.add(column.group)
            members = [
                _entry_part(c.name) for c in ENTRY if c.group is column.group and c.name in present
            ]
            parts.append(_struct(column.group.name, column.group.id, members))
    return parts


def _entry_part(name: str) -> _Part:
    column = BY_NAME[name]
    type = column.type
    if column.element_id is not None:
        type = pa.list_(_field("element", type.value_type, column.element_id, required=True))
    return _Part(_field(column.stored_as, type, column.id, required=column.required), name)


def _struct(name: str, id: int, members: list[_Part]) -> _Part:
    return _Part(
        _field(name, pa.struct([member.field for member in members]), id), members=tuple(members)
    )


def _stats_parts(
    present: tuple[tuple[str, pa.DataType], ...], facts: tuple[tuple[str, bool], ...]
) -> list[_Part]:
    of_field = dict(zip(_fields(present), facts, strict=True))
    members: dict[int, list[_Part]] = {field_id: [] for field_id in of_field}
    for name, type in present:
        if parsed := stats.parse_column(name):
            field_id, stat = parsed
            is_uuid = of_field[field_id][1] and stat in ("lower", "upper")
            members[field_id].append(
                _stat_part(field_id, stat, pa.uuid() if is_uuid else type, name)
            )
    structs: dict[str, _Part] = {}
    for field_id, (name, _) in of_field.items():
        # A dropped column and a new one may share their name; columns of a file may not.
        while name in structs:
            name = f"{name}#{field_id}"
        structs[name] = _struct(name, stats.base_id(field_id), members[field_id])
    whole = [_struct(CONTENT_STATS.name, CONTENT_STATS.id, list(structs.values()))]
    return whole if structs else []


def _stat_part(field_id: int, stat: str, type: pa.DataType, column: str) -> _Part:
    if pa.types.is_struct(type):
        start = stats.base_id(field_id) + (GEO_LOWER_START if stat == "lower" else GEO_UPPER_START)
        type = pa.struct([_field(axis, pa.float64(), start + i) for i, axis in enumerate(GEO_AXES)])
    return _Part(_field(STAT_OFFSETS[stat][1], type, stats.stat_id(field_id, stat)), column)


def _leaves(parts: tuple[_Part, ...], prefix: str) -> Iterator[tuple[str, str, pa.DataType]]:
    """Yield the Parquet path, in-memory column and type of everything that is stored."""
    for part in parts:
        path, type = prefix + part.field.name, part.field.type
        if part.column is None:
            yield from _leaves(part.members, f"{path}.")
        elif pa.types.is_list(type):
            yield f"{path}.list.element", part.column, type.value_type
        elif pa.types.is_struct(type):
            yield from ((f"{path}.{axis}", part.column, pa.float64()) for axis in GEO_AXES)
        else:
            yield path, part.column, type


def _is_packable(type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type) or pa.types.is_temporal(type))


def _assemble(part: _Part, columns: dict[str, pa.Array]) -> pa.Array:
    if part.column is None:
        children = [_assemble(member, columns) for member in part.members]
        fields = [member.field for member in part.members]
        mask = _absent(part.field.name, columns)
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    column, type = columns[part.column], part.field.type
    if isinstance(type, pa.UuidType):
        return pa.ExtensionArray.from_storage(type, column)
    return column if column.type == type else column.cast(type)


#: Groups that must be null for content they do not belong to.
_OWNERS = {
    DELETION_VECTOR.name: pa.array(list(DVS), pa.int32()),
    MANIFEST_STATS.name: pa.array(list(MANIFESTS), pa.int32()),
}


def _absent(group: str, columns: dict[str, pa.Array]) -> pa.BooleanArray | None:
    owners = _OWNERS.get(group)
    return None if owners is None else pc.invert(pc.is_in(columns["content_type"], owners))
