"""Equality deletes: what they may compare, and which of their stats say anything.

An equality delete carries stats of the values it deletes and of its partition. Stats of any other
column are of no use: rows that it deletes may have any value there, so to skip it by them would
bring the rows back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import (
    DoubleType,
    FloatType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

from icetree.spec.arrays import one_chunk
from icetree.spec.entry import stats
from icetree.spec.entry.entry import Content, Entries, is_content, only
from icetree.spec.schema.shape import Shape

Flags = npt.NDArray[np.bool_]


def broken_equality(entries: Entries, shape: Shape) -> Iterator[str]:
    """Yield a sentence for each rule of equality deletes that some entry breaks, naming the first."""
    deletes = only(entries, is_content(entries, Content.EQUALITY_DELETES))
    if deletes.num_rows == 0:
        return
    for file, rule in unmatchable(deletes, shape):
        yield f"{file} {rule}"
    for field_id, owners in compared(deletes).items():
        if isinstance(shape.types.get(field_id), FloatType | DoubleType):
            name, file = shape.names[field_id], _first(deletes, owners)
            yield f"{file} deletes by {name}, a floating point number, which is never an identity"
    for field_id, loose in loose_stats(deletes, shape):
        told = loose & _has_stats(deletes, field_id)
        if told.any():
            name = shape.names.get(field_id, f"field {field_id}")
            yield (
                f"{_first(deletes, told)} has stats of {name}, by which it neither deletes nor is "
                "partitioned"
            )


def unmatchable(deletes: Entries, shape: Shape) -> Iterator[tuple[str, str]]:
    """Yield equality deletes that no row can be held against, each with the reason."""
    ids = one_chunk(deletes["equality_ids"])
    fields, owners = pc.list_flatten(ids), pc.list_parent_indices(ids)
    if fields.null_count:
        first = owners.filter(pc.is_null(fields))[0].as_py()
        yield deletes["location"][first].as_py(), "deletes by a field without an id"
    empty = pc.fill_null(pc.equal(pc.list_value_length(ids), 0), True)
    if empty.true_count:
        yield _first(deletes, empty), "names no field to delete by"
    inside = _inside_collections(shape.columns)
    for field_id, uses in compared(deletes).items():
        reason = _incomparable(field_id, shape, inside)
        if reason is not None:
            yield _first(deletes, uses), f"deletes by {reason}"


def loose_stats(entries: Entries, shape: Shape) -> Iterator[tuple[int, Flags]]:
    """Yield each field with stats, and the equality deletes of which these say nothing."""
    equality = is_content(entries, Content.EQUALITY_DELETES).to_numpy()
    if not equality.any():
        return
    uses = compared(entries)
    specs = entries["partition_spec_id"].to_numpy()
    # Of a void field there is nothing to tell, and whoever does says so.
    parts = {id: {each.stats_field for each in shape.spec(id)} for id in shape.specs}
    for field_id in stats.fields_in(entries):
        within = [spec_id for spec_id, fields in parts.items() if field_id in fields]
        loose: Flags = equality & ~np.isin(specs, within)
        if field_id in uses:
            loose &= ~uses[field_id]
        if loose.any():
            yield field_id, loose


def without_loose_stats(entries: Entries, shape: Shape) -> Entries:
    """Return the entries without stats of equality deletes that say nothing."""
    return without_stats(entries, loose_stats(entries, shape))


def without_stats(entries: Entries, hidden: Iterator[tuple[int, Flags]]) -> Entries:
    """Return the entries with the stats of some fields unknown where the flags say so."""
    names = entries.schema.names
    for field_id, where in hidden:
        mask = pa.array(where)
        for stat in stats.STATS:
            name = stats.column(field_id, stat)
            if name in names:
                old = entries[name]
                new = pc.if_else(mask, pa.scalar(None, old.type), old)
                entries = entries.set_column(names.index(name), name, new)
    return entries


def compared(entries: Entries) -> dict[int, Flags]:
    """Return the fields that equality deletes compare, and which entries do."""
    ids = one_chunk(entries["equality_ids"])
    fields, owners = pc.list_flatten(ids), pc.list_parent_indices(ids)
    found: dict[int, Flags] = {}
    for field_id in pc.unique(fields).drop_null().to_pylist():
        uses: Flags = np.zeros(entries.num_rows, np.bool_)
        uses[owners.filter(pc.equal(fields, field_id)).to_numpy()] = True
        found[field_id] = uses
    return found


def _incomparable(field_id: int, shape: Shape, inside: set[int]) -> str | None:
    column = shape.columns.get(field_id)
    if column is None:
        return f"field {field_id}, which no schema has"
    name = shape.names[field_id]
    if field_id in inside:
        return f"{name}, which is inside a list or a map"
    if not column.field_type.is_primitive:
        return f"{name}, which is a {_kind(column.field_type)}"
    return None


def _kind(type: IcebergType) -> str:
    match type:
        case StructType():
            return "struct"
        case ListType():
            return "list"
        case MapType():
            return "map"
    return str(type)


def _inside_collections(columns: Mapping[int, NestedField]) -> set[int]:
    """Return the ids of fields that a row has any number of."""
    found: set[int] = set()
    for column in columns.values():
        if isinstance(column.field_type, ListType | MapType):
            found |= _ids_below(column.field_type)
    return found


def _ids_below(type: IcebergType) -> set[int]:
    match type:
        case StructType():
            parts = type.fields
        case ListType():
            parts = (type.element_field,)
        case MapType():
            parts = (type.key_field, type.value_field)
        case _:
            return set()
    return {part.field_id for part in parts}.union(*(_ids_below(p.field_type) for p in parts))


def _has_stats(entries: Entries, field_id: int) -> Flags:
    found: Flags = np.zeros(entries.num_rows, np.bool_)
    for stat in stats.STATS:
        name = stats.column(field_id, stat)
        if name in entries.column_names:
            found |= pc.is_valid(entries[name]).to_numpy()
    return found


def _first(deletes: Entries, which: Flags | pa.BooleanArray) -> str:
    mask = pa.array(which) if isinstance(which, np.ndarray) else which
    name: str = deletes["location"].filter(mask)[0].as_py()
    return name
