"""The content entry: one shape for root and leaf, as columns.

`Entries` is a plain Arrow table: every column of `fields.ENTRY` in order, then stats columns
(`spec.entry.stats`) for the fields that have any. `Entry` is one row of it as a Python value, for
the edges only: a few files being added, a few being reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import cache
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import InvalidInput
from icetree.spec.arrays import one_chunk
from icetree.spec.entry import stats
from icetree.spec.entry.stats import FieldStats
from icetree.spec.fields import ENTRY
from icetree.spec.schema.shape import Shape

Entries: TypeAlias = pa.Table

#: Added to entries read from a leaf: the row's ordinal there, counting every entry.
POSITION: Final = "position"


class Content(IntEnum):
    """What an entry tracks."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2
    DATA_MANIFEST = 3
    DELETE_MANIFEST = 4
    MANIFEST_DV = 5


class Status(IntEnum):
    """What the snapshot that wrote the manifest did to the entry."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


#: The kinds of manifest, as their key-value metadata says it.
ROOT: Final = "root"
DATA: Final = "data"
DELETE: Final = "delete"


def kind_of(content_type: int) -> str:
    """Return the kind of a leaf from the content of its entry in the root."""
    return DATA if content_type == Content.DATA_MANIFEST else DELETE


#: Which content may stand in which kind of manifest.
ALLOWED: Final[Mapping[str, frozenset[Content]]] = MappingProxyType(
    {
        ROOT: frozenset(Content),
        DATA: frozenset({Content.DATA}),
        DELETE: frozenset({Content.POSITION_DELETES, Content.EQUALITY_DELETES}),
    }
)

#: Which status an entry may have after one commit, by the status it had before (None: absent).
#: None afterwards means that the entry is gone: dropped, flushed or compacted away.
TRANSITIONS: Final[Mapping[Status | None, frozenset[Status | None]]] = MappingProxyType(
    {
        None: frozenset({None, Status.ADDED, Status.EXISTING}),
        Status.ADDED: frozenset({None, Status.EXISTING, Status.DELETED}),
        Status.EXISTING: frozenset({None, Status.EXISTING, Status.DELETED}),
        Status.DELETED: frozenset({None, Status.ADDED}),
    }
)

#: What readers of rows want: data files, and what deletes rows of them.
FILES: Final = (Content.DATA, Content.POSITION_DELETES, Content.EQUALITY_DELETES)
DELETE_FILES: Final = (Content.POSITION_DELETES, Content.EQUALITY_DELETES)
MANIFESTS: Final = (Content.DATA_MANIFEST, Content.DELETE_MANIFEST)
DVS: Final = (Content.POSITION_DELETES, Content.MANIFEST_DV)

BASE_SCHEMA: Final = pa.schema([pa.field(column.name, column.type) for column in ENTRY])
BASE_COLUMNS: Final = tuple(BASE_SCHEMA.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One content entry as a value; field names are the in-memory column names."""

    content_type: int = Content.DATA
    location: str | None = None
    file_format: str = "parquet"
    status: int = Status.ADDED
    snapshot_id: int | None = None
    sequence_number: int | None = None
    file_sequence_number: int | None = None
    first_row_id: int | None = None
    dv_offset: int | None = None
    dv_size_in_bytes: int | None = None
    dv_inline_content: bytes | None = None
    dv_added_positions: bytes | None = None
    partition_spec_id: int = 0
    sort_order_id: int | None = None
    record_count: int = 0
    file_size_in_bytes: int | None = None
    added_files_count: int | None = None
    existing_files_count: int | None = None
    deleted_files_count: int | None = None
    added_rows_count: int | None = None
    existing_rows_count: int | None = None
    deleted_rows_count: int | None = None
    min_sequence_number: int | None = None
    referenced_file: str | None = None
    key_metadata: bytes | None = None
    split_offsets: Sequence[int] | None = None
    equality_ids: Sequence[int] | None = None
    stats: Mapping[int, FieldStats] = field(default_factory=dict)


_ENTRY_FIELDS: Final = tuple(each.name for each in fields(Entry) if each.name != "stats")


_NONE: Final = BASE_SCHEMA.empty_table()


def empty() -> Entries:
    """Return no entries."""
    return _NONE


def to_table(entries: Iterable[Entry], shape: Shape) -> Entries:
    """Return entries as columns; InvalidInput for a value that its column cannot hold.

    Stats of fields whose ids are too large for them are left out.
    """
    rows = list(entries)
    columns = {
        name: _array([getattr(row, name) for row in rows], BASE_SCHEMA.field(name).type, name)
        for name in _ENTRY_FIELDS
    }
    for row in rows:
        told: Any = row.stats
        if not isinstance(told, Mapping) or not all(
            isinstance(each, FieldStats) for each in told.values()
        ):
            raise InvalidInput(f"stats of {row.location} must be FieldStats by field id")
    for field_id in dict.fromkeys(id for row in rows for id in row.stats):
        if not stats.can_be_stored(field_id):
            continue
        columns |= _stats_columns(field_id, [row.stats.get(field_id) for row in rows], shape)
    return pa.table(columns)


_NOTHING: Final = FieldStats()


def _stats_columns(
    field_id: int, rows: list[FieldStats | None], shape: Shape
) -> dict[str, pa.Array]:
    bounds = shape.bounds_type(field_id) or pa.null()
    found = {}
    for stat in stats.STATS:
        values = [getattr(row or _NOTHING, stat) for row in rows]
        if any(value is not None for value in values):
            name, type = stats.column(field_id, stat), stats.stat_type(stat, bounds)
            found[name] = _array(values, type, f"{stat} bounds" if type is bounds else stat)
    return found


def _array(values: list[Any], type: pa.DataType, name: str) -> pa.Array:
    try:
        return pa.array(values, type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        told = str(error).partition("\n")[0]
        raise InvalidInput(f"an entry's {name} cannot be stored as {type}: {told}") from error


def from_table(table: Entries) -> list[Entry]:
    """Return entries as values. For few entries, at the edges: it builds an object a row."""
    tracked = stats.fields_in(table)
    return [_entry(row, tracked) for row in table.to_pylist()]


def _entry(row: dict[str, Any], tracked: list[int]) -> Entry:
    found: dict[int, FieldStats] = {}
    for field_id in tracked:
        one = FieldStats(**{stat: row.get(stats.column(field_id, stat)) for stat in stats.STATS})
        if one != _NOTHING:
            found[field_id] = one
    return Entry(**{name: row[name] for name in _ENTRY_FIELDS}, stats=found)


def complete(table: pa.Table) -> Entries:
    """Return the table with every base column, in order; missing ones are null."""
    names = table.schema.names
    if tuple(names[: len(BASE_COLUMNS)]) == BASE_COLUMNS:
        return table
    columns = {
        name: table[name]
        if name in names
        else pa.nulls(table.num_rows, BASE_SCHEMA.field(name).type)
        for name in BASE_COLUMNS
    }
    columns |= {name: table[name] for name in names if name not in columns}
    return pa.table(columns)


def concat(tables: Iterable[Entries]) -> Entries:
    """Stack entries; a stats column that one side lacks is null there."""
    parts = list(tables)
    if len(parts) < 2:
        return parts[0] if parts else empty()
    # Finding one schema for many columns costs more than stacking them, so like goes to like first.
    runs = [list(run) for _, run in groupby(parts, key=lambda part: part.schema)]
    alike = [run[0] if len(run) == 1 else pa.concat_tables(run) for run in runs]
    return alike[0] if len(alike) == 1 else pa.concat_tables(alike, promote_options="default")


def is_content(entries: Entries, *contents: Content) -> pa.ChunkedArray:
    """Tell which entries have one of the contents."""
    if len(contents) == 1:
        return pc.equal(entries["content_type"], _CONTENTS[contents[0]])
    return pc.is_in(entries["content_type"], value_set=set_of(contents))


#: Typed, so that no kernel widens the column to compare it, and none is made for each comparison.
_CONTENTS: Final = {content: pa.scalar(content, pa.int32()) for content in Content}
_STATUSES: Final = {status: pa.scalar(status, pa.int32()) for status in Status}
_FORMATS: Final = {name: pa.scalar(name) for name in ("parquet", "avro", "puffin")}


@cache
def set_of(contents: tuple[Content, ...]) -> pa.Array:
    """Return contents as an array, to look others up in."""
    return pa.array(contents, pa.int32())


def has_format(entries: Entries, name: str) -> pa.ChunkedArray:
    """Tell which entries' files are parquet, avro or puffin."""
    return pc.equal(entries["file_format"], _FORMATS[name])


def is_data_file(entries: Entries) -> pa.ChunkedArray:
    """Tell which entries are data files."""
    return is_content(entries, Content.DATA)


def is_data_dv(entries: Entries) -> pa.ChunkedArray:
    """Tell which entries are data DVs; position delete files of v2 are content 1 too."""
    return pc.and_(is_content(entries, Content.POSITION_DELETES), has_format(entries, "puffin"))


def has_status(entries: Entries, status: Status) -> pa.ChunkedArray:
    """Tell which entries have the status."""
    return pc.equal(entries["status"], _STATUSES[status])


def is_of_spec(entries: Entries, spec_id: int) -> pa.ChunkedArray:
    """Tell which entries have the partition spec."""
    return pc.equal(entries["partition_spec_id"], pa.scalar(spec_id, pa.int32()))


def is_live(entries: Entries) -> pa.ChunkedArray:
    """Tell which entries are not DELETED."""
    return pc.not_equal(entries["status"], _STATUSES[Status.DELETED])


def is_named(entries: Entries, location: str) -> pa.ChunkedArray:
    """Tell which entries are of a file; one that is in no file, as an inline bitmap, never is."""
    return pc.fill_null(pc.equal(entries["location"], pa.scalar(location)), False)


def keys_of(entries: Entries) -> pa.ChunkedArray:
    """Return the name by which a file is removed: its location, for a data DV its data file."""
    return pc.if_else(is_data_dv(entries), entries["referenced_file"], entries["location"])


def only(entries: Entries, mask: pa.Array | pa.ChunkedArray) -> Entries:
    """Return the entries where the mask holds; all of them, untouched, costs nothing."""
    # Filtering copies every column, and entries have many: the usual answers are all, none, and
    # some that stand side by side.
    mask = one_chunk(mask)
    chosen = mask.true_count
    if chosen == entries.num_rows:
        return entries
    if chosen == 0:
        return entries.slice(0, 0)
    if mask.null_count == 0:
        flags = mask.to_numpy(zero_copy_only=False)
        first = int(flags.argmax())
        if flags[first : first + chosen].all():
            return entries.slice(first, chosen)
    return entries.filter(mask)


def with_columns(entries: Entries, **columns: object) -> Entries:
    """Return the entries with whole base columns replaced, by one value or by an array."""
    for name, value in columns.items():
        if not isinstance(value, pa.Array | pa.ChunkedArray):
            value = pa.repeat(pa.scalar(value, BASE_SCHEMA.field(name).type), entries.num_rows)
        entries = entries.set_column(entries.schema.get_field_index(name), name, value)
    return entries
