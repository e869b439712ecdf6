"""A Parquet manifest to entries."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from icetree.codec.inherit import Inherited, inherit
from icetree.errors import CorruptTable
from icetree.spec import entry_rules, stats
from icetree.spec.entry import BASE_COLUMNS, BASE_SCHEMA, POSITION, ROOT, Entries
from icetree.spec.fields import (
    BY_ID,
    CONTENT_KEY,
    CONTENT_STATS,
    DELETION_VECTOR,
    ENTRY,
    FIELD_ID_KEY,
    FORMAT_VERSION,
    FORMAT_VERSION_KEY,
    MANIFEST_STATS,
    TRACKING_INFO,
)
from icetree.spec.shape import Shape

#: Told the bounds of row groups, or of entries, a row each, says which may matter.
Keep: TypeAlias = Callable[[pa.Table], pa.BooleanArray]
_GROUPS = {group.id: group for group in (TRACKING_INFO, DELETION_VECTOR, MANIFEST_STATS)}
#: So few row groups are read at once.
_FEW_GROUPS = 2
_UNREADABLE = (pa.ArrowException, OSError, ValueError)


def decode(
    source: bytes | pa.NativeFile,
    kind: str,
    shape: Shape,
    *,
    file: str,
    tracking: Inherited | None = None,
    columns: Collection[str] | None = None,
    keep: Keep | None = None,
) -> Entries:
    """Return a manifest's entries, refusing bytes that break a rule of the format.

    `columns` narrows what is read. For a leaf, `tracking` is what its ADDED entries inherit,
    and the entries come with their `position`; `keep` is told the stats among `columns` of
    row groups, and it may be told those of entries: row groups in which it keeps none are left
    out.
    """
    if isinstance(source, bytes):
        source = pa.BufferReader(source)
    try:
        parquet = pq.ParquetFile(source, pre_buffer=False)
        _require_kind(parquet, kind, file)
        stored = _stored(parquet.schema_arrow, file, columns)
        _require_columns(stored, file)
        groups = _groups_to_read(parquet, stored, keep, shape, file)
        if keep is not None and columns is not None:
            groups = _groups_with_hits(parquet, stored, groups, columns, keep, shape, file)
        # Who inherits what depends on the status.
        wanted = columns if columns is None or tracking is None else {*columns, "status"}
        entries = _read(parquet, stored, groups, wanted, shape, file)
        if kind != ROOT and tracking is not None:
            entry_rules.require(entries, kind, file=file)
            entries = _inherit(parquet, stored, groups, entries, tracking, shape, file)
            is_wanted = columns is None or "status" in columns
            return entries if is_wanted else entries.drop_columns(["status"])
    except _UNREADABLE as error:
        raise CorruptTable(file, f"not a readable Parquet manifest: {error}") from error
    entry_rules.require(entries, kind, file=file)
    if kind == ROOT and columns is None:
        entry_rules.require_unique(entries, file=file)
    return entries


@dataclass(frozen=True, slots=True)
class _Stored:
    """Where a flat column is in the file: its path of names, and its type there."""

    path: tuple[str, ...]
    type: pa.DataType


def _require_kind(parquet: pq.ParquetFile, kind: str, file: str) -> None:
    metadata = parquet.metadata.metadata or {}
    version = metadata.get(FORMAT_VERSION_KEY.encode(), b"").decode()
    content = metadata.get(CONTENT_KEY.encode(), b"").decode()
    if version != str(FORMAT_VERSION):
        raise CorruptTable(file, f"format-version must be {FORMAT_VERSION}, not {version!r}")
    if content != kind:
        raise CorruptTable(file, f"content must be {kind!r} here, not {content!r}")


def _field_id(field: pa.Field, file: str) -> int:
    id = (field.metadata or {}).get(FIELD_ID_KEY)
    if id is None:
        raise CorruptTable(file, f"column {field.name!r} has no field id")
    return int(id)


def _stored(schema: pa.Schema, file: str, columns: Collection[str] | None) -> dict[str, _Stored]:
    """Find every column this version knows, by field id; of stats only those that are wanted."""
    each: list[tuple[str, _Stored]] = []
    for field in schema:
        id = _field_id(field, file)
        if id == CONTENT_STATS.id:
            each += _stored_stats(field, file, columns)
        elif id in _GROUPS:
            for member in _members(field, file):
                column = BY_ID.get(_field_id(member, file))
                if column is not None and column.group == _GROUPS[id]:
                    each.append((column.name, _Stored((field.name, member.name), member.type)))
        elif (column := BY_ID.get(id)) is not None and column.group is None:
            each.append((column.name, _Stored((field.name,), field.type)))
    found = dict(each)
    if len(found) < len(each) or len({where.path for _, where in each}) < len(each):
        raise CorruptTable(file, "two columns share a field id or a name")
    return found


def _stored_stats(
    stats_field: pa.Field, file: str, columns: Collection[str] | None
) -> list[tuple[str, _Stored]]:
    found = []
    fields = None if columns is None else _fields_of(columns)
    for struct in _members(stats_field, file):
        field_id = stats.field_of(_field_id(struct, file))
        if field_id is None or (fields is not None and field_id not in fields):
            continue
        for member in _members(struct, file):
            stat = stats.stat_of(field_id, _field_id(member, file))
            if stat is not None:
                path = (stats_field.name, struct.name, member.name)
                found.append((stats.column(field_id, stat), _Stored(path, member.type)))
    return found


def _fields_of(columns: Collection[str]) -> set[int]:
    parsed = map(stats.parse_column, columns)
    return {each[0] for each in parsed if each is not None}


def _members(field: pa.Field, file: str) -> list[pa.Field]:
    if not pa.types.is_struct(field.type):
        raise CorruptTable(file, f"column {field.name!r} must be a struct, not {field.type}")
    return [field.type.field(i) for i in range(field.type.num_fields)]


def _require_columns(stored: dict[str, _Stored], file: str) -> None:
    for column in ENTRY:
        if column.required and column.name not in stored:
            raise CorruptTable(file, f"required column {column.name} ({column.id}) is missing")


def _groups_to_read(
    parquet: pq.ParquetFile, stored: dict[str, _Stored], keep: Keep | None, shape: Shape, file: str
) -> list[int] | None:
    """Return the row groups to read, None for all of them."""
    if keep is None or parquet.num_row_groups < 2:
        return None
    kept = keep(row_group_stats(parquet, stored, shape, file))
    if len(kept) != parquet.num_row_groups:
        raise ValueError("keep must answer for every row group")
    found: list[int] = np.flatnonzero(kept.to_numpy(zero_copy_only=False)).tolist()
    return found


def _groups_with_hits(
    parquet: pq.ParquetFile,
    stored: dict[str, _Stored],
    groups: list[int] | None,
    columns: Collection[str],
    keep: Keep,
    shape: Shape,
    file: str,
) -> list[int] | None:
    """Leave out row groups none of whose entries is kept.

    The stats that a predicate needs are a small part of what is read: where many row groups are
    left, a look at these first saves more than it costs.
    """
    chosen = list(range(parquet.num_row_groups)) if groups is None else groups
    judged = {name for name in columns if name in stored and stats.parse_column(name)}
    if len(chosen) <= _FEW_GROUPS or not judged:
        return groups
    entries = _read(parquet, stored, chosen, {*judged, "record_count"}, shape, file)
    hits = np.flatnonzero(keep(entries).to_numpy(zero_copy_only=False))
    ends = np.cumsum([parquet.metadata.row_group(at).num_rows for at in chosen])
    return [chosen[at] for at in np.unique(np.searchsorted(ends, hits, side="right"))]


def row_group_stats(
    parquet: pq.ParquetFile, stored: dict[str, _Stored], shape: Shape, file: str
) -> pa.Table:
    """Return one row per row group, in the shape of entries: least lower, greatest upper bound.

    A row group with an unknown bound in it has an unknown bound.
    """
    groups = [parquet.metadata.row_group(i) for i in range(parquet.num_row_groups)]
    at = {parquet.schema.column(i).path: i for i in range(len(parquet.schema))}
    bounds_at = {
        name: (at[path], side, where.type)
        for name, where in stored.items()
        if (path := ".".join(where.path)) in at
        and (side := {"lower": "min", "upper": "max"}.get(name.partition(":")[2]))
    }
    _require_chunks(parquet, [column for column, _, _ in bounds_at.values()], file)
    found: dict[str, pa.Array] = {
        "record_count": pa.array([group.num_rows for group in groups], pa.int64())
    }
    for name, (column, side, type) in bounds_at.items():
        type = type.storage_type if isinstance(type, pa.UuidType) else type
        # As the number it is stored as: Python has no dates after 9999 and no nanoseconds.
        value = f"{side}_raw" if pa.types.is_temporal(type) else side
        bounds = [_extreme(group.column(column).statistics, value) for group in groups]
        if any(bound is not None for bound in bounds):
            found[name] = _promote(pa.array(bounds, type), name, shape, file)
    return pa.table(found)


def _require_chunks(parquet: pq.ParquetFile, columns: list[int], file: str) -> None:
    """Make Arrow look at the metadata of each chunk of the columns, without reading any.

    What is wrong there is an error here, but would end the process if Python asked for it first:
    pyarrow lets no exception out of the metadata's properties.
    """
    if not columns:
        return
    for at in range(parquet.num_row_groups):
        none = parquet.reader.iter_batches(
            0, row_groups=[at], column_indices=columns, use_threads=False
        )
        next(none, None)
        group = parquet.metadata.row_group(at)
        for i in columns:
            if group.column(i).physical_type != parquet.schema.column(i).physical_type:
                raise CorruptTable(file, f"row group {at} has another type in column {i}")


def _extreme(known: pq.Statistics | None, value: str) -> object:
    if known is None or not known.has_min_max or known.null_count != 0:
        return None
    found: object = getattr(known, value)
    return found


def _read(
    parquet: pq.ParquetFile,
    stored: dict[str, _Stored],
    groups: list[int] | None,
    columns: Collection[str] | None,
    shape: Shape,
    file: str,
) -> Entries:
    """Read the wanted columns, flat, promoted; base columns the file lacks are null."""
    wanted = stored if columns is None else {n: stored[n] for n in stored if n in columns}
    paths = None if columns is None else [".".join(where.path) for where in wanted.values()]
    if groups is None:
        nested = parquet.read(columns=paths, use_threads=False)
    else:
        nested = parquet.read_row_groups(groups, columns=paths, use_threads=False)
    size = nested.num_rows if wanted else _rows(parquet, groups)
    structs: dict[tuple[str, ...], dict[str, pa.Array]] = {(): _children(nested)}
    flat = {
        name: _promote(_follow(structs, where.path), name, shape, file)
        for name, where in wanted.items()
    }
    for name in BASE_COLUMNS:
        if name not in flat and (columns is None or name in columns):
            flat[name] = pa.nulls(size, BASE_SCHEMA.field(name).type)
    ordered = {name: flat[name] for name in BASE_COLUMNS if name in flat}
    return pa.table(ordered | flat)


def _children(nested: pa.Table) -> dict[str, pa.Array]:
    one = nested.combine_chunks()
    return {
        name: column.chunk(0) if column.num_chunks else pa.array([], column.type)
        for name, column in zip(one.schema.names, one.itercolumns(), strict=True)
    }


def _follow(structs: dict[tuple[str, ...], dict[str, pa.Array]], path: tuple[str, ...]) -> pa.Array:
    """Return the array at a path of names, flattening each struct on the way once."""
    for depth in range(1, len(path)):
        if path[:depth] not in structs:
            struct = structs[path[: depth - 1]][path[depth - 1]]
            names = [struct.type.field(i).name for i in range(struct.type.num_fields)]
            # flatten() hands the struct's own nulls down; field() would not.
            structs[path[:depth]] = dict(zip(names, struct.flatten(), strict=True))
    return structs[path[:-1]][path[-1]]


def _promote(column: pa.Array, name: str, shape: Shape, file: str) -> pa.Array:
    """Return the column in the type it should have, widened where the format allows it."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if pa.types.is_string(column.type):
        # Parquet's reader takes any bytes for text.
        column.validate(full=True)
    expected = _expected_type(name, shape)
    if expected is None or column.type == expected:
        return column
    if not _widens(column.type, expected):
        raise CorruptTable(file, f"column {name} has type {column.type}, expected {expected}")
    return column.cast(expected)


def _expected_type(name: str, shape: Shape) -> pa.DataType | None:
    parsed = stats.parse_column(name)
    if parsed is None:
        return BASE_SCHEMA.field(name).type
    field_id, stat = parsed
    if stat in ("lower", "upper"):
        return shape.bounds_type(field_id)
    return stats.stat_type(stat, pa.null())


def _widens(have: pa.DataType, want: pa.DataType) -> bool:
    """Tell whether the format lets a reader take `have` for `want`."""
    t = pa.types
    if t.is_decimal(have) and t.is_decimal(want):
        return bool(have.scale == want.scale and have.precision <= want.precision)
    if t.is_list(have) and t.is_list(want):
        return bool(have.value_type == want.value_type) or _widens(have.value_type, want.value_type)
    if t.is_struct(have) and t.is_struct(want):
        return [field.name for field in have] == [field.name for field in want]
    return (
        (t.is_int32(have) and t.is_int64(want))
        or (t.is_float32(have) and t.is_float64(want))
        or (t.is_date(have) and t.is_timestamp(want) and want.tz is None)
    )


def _rows(parquet: pq.ParquetFile, groups: list[int] | None) -> int:
    if groups is None:
        return int(parquet.metadata.num_rows)
    return sum(parquet.metadata.row_group(i).num_rows for i in groups)


_ROW_ID_INPUTS = ("status", "record_count", "first_row_id")


def _inherit(
    parquet: pq.ParquetFile,
    stored: dict[str, _Stored],
    groups: list[int] | None,
    entries: Entries,
    tracking: Inherited,
    shape: Shape,
    file: str,
) -> Entries:
    """Fill in inherited tracking and the position of each entry."""
    positions = _positions(parquet, groups)
    at = entries.schema.get_field_index("first_row_id")
    if at >= 0 and tracking.first_row_id is not None and entries.num_rows:
        # Row ids count every file before this one, also those in row groups that were skipped.
        before = None if groups is None else list(range(groups[-1] + 1))
        if before != groups or not set(_ROW_ID_INPUTS) <= set(entries.schema.names):
            # Only a data manifest has row ids to give, and it holds data files only.
            counted = inherit(_read(parquet, stored, before, _ROW_ID_INPUTS, shape, file), tracking)
            ids = counted["first_row_id"].take(positions)
            entries = entries.set_column(at, "first_row_id", ids)
            tracking = replace(tracking, first_row_id=None)
    return inherit(entries, tracking).append_column(POSITION, positions)


def _positions(parquet: pq.ParquetFile, groups: list[int] | None) -> pa.Int64Array:
    if groups is None:
        return pa.array(np.arange(parquet.metadata.num_rows, dtype=np.int64))
    sizes = [parquet.metadata.row_group(i).num_rows for i in range(parquet.num_row_groups)]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    ranges = [np.arange(starts[i], starts[i + 1], dtype=np.int64) for i in groups]
    return pa.array(np.concatenate(ranges) if ranges else np.empty(0, dtype=np.int64))
