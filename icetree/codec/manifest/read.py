"""A Parquet manifest to entries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from icetree.codec import limits
from icetree.codec.inherit import Inherited, inherit, inherit_in_root
from icetree.codec.manifest.row_groups import row_group_stats, same_throughout
from icetree.codec.manifest.stored import Opened, Stored, open_manifest
from icetree.codec.manifest.types import promote
from icetree.codec.parquet.modest import Wanted, require_modest
from icetree.codec.parquet.parquet import chunk_of, require_chunks
from icetree.codec.places import stored_form
from icetree.errors import CorruptTable
from icetree.spec.entry import stats
from icetree.spec.entry.entry import BASE_COLUMNS, BASE_SCHEMA, POSITION, ROOT, Entries
from icetree.spec.rules import entry as entry_rules
from icetree.spec.schema.shape import Shape

#: Told the bounds of row groups, or of entries, a row each, says which may matter. Entries come
#: with their position.
Keep: TypeAlias = Callable[[pa.Table], pa.BooleanArray]
#: So few row groups are read at once.
_FEW_GROUPS = 2
UNREADABLE = (pa.ArrowException, OSError, ValueError)
_LOCATIONS = ("location", "referenced_file")
_BYTES_A_VALUE = 8
#: No codec of Parquet makes more of a byte: zstd, of 128 KiB that are all the same.
_MOST_PACKED = 32 * 1024
_ROW_ID_INPUTS = ("status", "record_count", "first_row_id")


def decode(
    source: bytes | pa.NativeFile,
    kind: str,
    shape: Shape,
    *,
    file: str,
    tracking: Inherited | None = None,
    columns: Collection[str] | None = None,
    keep: Keep | None = None,
    table_location: str = "",
) -> Entries:
    """Return a manifest's entries, refusing bytes that break a rule of the format.

    Locations come in the form that the table at `table_location` stores, however they were spelt.
    `columns` narrows what is read. `tracking` is what ADDED entries inherit: those of a leaf from
    its entry, those of a root from its snapshot. The entries of a leaf then come with their
    `position`; `keep` is told the stats among `columns` of row groups, and it may be told those
    of entries: what it does not keep may be left out.
    """
    if isinstance(source, bytes):
        source = pa.BufferReader(source)
    try:
        manifest = open_manifest(
            source, kind, shape, file=file, columns=columns, table_location=table_location
        )
        groups = _groups_to_read(manifest, keep)
        if kind != ROOT and tracking is not None:
            return _decode_leaf(manifest, kind, tracking, groups, columns, keep)
        entries = read_flat(manifest, groups, columns)
        if tracking is not None:
            entries = inherit_in_root(entries, tracking)
    except UNREADABLE as error:
        raise CorruptTable(file, f"not a readable Parquet manifest: {error}") from error
    entry_rules.require(entries, kind, file=file)
    if kind == ROOT and columns is None:
        entry_rules.require_unique(entries, file=file)
    return entries


def _groups_to_read(manifest: Opened, keep: Keep | None) -> list[int] | None:
    """Return the row groups to read, None for all of them."""
    count = manifest.parquet.num_row_groups
    if keep is None or count < 2 or manifest.row_groups is None:
        return None
    kept = keep(row_group_stats(manifest))
    if len(kept) != count:
        raise ValueError("keep must answer for every row group")
    found: list[int] = np.flatnonzero(kept.to_numpy(zero_copy_only=False)).tolist()
    return found


# --- leaves --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A leaf that is being read, and what is known of it."""

    manifest: Opened
    kind: str
    tracking: Inherited
    #: Columns that need not be read.
    same: dict[str, pa.Scalar] = field(default_factory=dict)


def _decode_leaf(
    manifest: Opened,
    kind: str,
    tracking: Inherited,
    groups: list[int] | None,
    columns: Collection[str] | None,
    keep: Keep | None,
) -> Entries:
    leaf = _Leaf(manifest, kind, tracking)
    if columns is None:
        return _read_leaf(leaf, groups, None)
    # Who inherits what depends on the status.
    wanted = {*columns, "status"}
    if keep is not None and _is_much(leaf, groups, wanted):
        entries = _read_kept(leaf, groups, wanted, keep)
    else:
        entries = _read_leaf(leaf, groups, wanted)
    return entries if "status" in columns else entries.drop_columns(["status"])


def _is_much(leaf: _Leaf, groups: list[int] | None, columns: set[str]) -> bool:
    """Tell whether a look at the stats among the columns saves more than it costs."""
    count = leaf.manifest.parquet.num_row_groups if groups is None else len(groups)
    judged = columns & leaf.manifest.columns.keys()
    return count > _FEW_GROUPS and any(map(stats.parse_column, judged))


def _read_leaf(leaf: _Leaf, groups: list[int] | None, columns: Collection[str] | None) -> Entries:
    """Return the entries of row groups, with what they inherit and their positions."""
    entries = read_flat(leaf.manifest, groups, columns, same=leaf.same)
    entry_rules.require(entries, leaf.kind, file=leaf.manifest.file)
    return _inherit(leaf, groups, entries)


def _read_kept(leaf: _Leaf, groups: list[int] | None, columns: set[str], keep: Keep) -> Entries:
    """Return the entries that are kept.

    The stats that a predicate needs are a small part of a leaf. They are read first, and with
    them what row ids follow from; the rest then costs little for entries that are not kept.
    """
    manifest, parquet = leaf.manifest, leaf.manifest.parquet
    leaf = replace(leaf, same=same_throughout(manifest))
    first = {name for name in columns if name in _ROW_ID_INPUTS or stats.parse_column(name)}
    judged = _read_leaf(leaf, groups, {*first, "record_count"})
    hits = np.flatnonzero(keep(judged).to_numpy(zero_copy_only=False))
    chosen = list(range(parquet.num_row_groups)) if groups is None else groups
    sizes = [manifest.group_rows[at] for at in chosen]
    ends = np.cumsum(sizes)
    hit_groups, group_of_hit = np.unique(
        np.searchsorted(ends, hits, side="right"), return_inverse=True
    )
    # Where a hit stands among the rows of the row groups that have one.
    skipped = ends[hit_groups] - np.cumsum(np.take(sizes, hit_groups))
    rows = pa.array(hits - skipped[group_of_hit])
    with_hits = [chosen[at] for at in hit_groups]
    rest = read_flat(manifest, with_hits, columns - first, rows=rows, same=leaf.same)
    judged = judged.take(pa.array(hits))
    found = {
        name: column
        for part in (judged, rest)
        for name, column in zip(part.schema.names, part.columns, strict=True)
        if name in columns and name != POSITION
    }
    base = {name: found[name] for name in BASE_COLUMNS if name in found}
    entries = pa.table(base | found)
    entry_rules.require(entries, leaf.kind, file=manifest.file)
    given = replace(leaf.tracking, first_row_id=None)
    return inherit(entries, given).append_column(POSITION, judged[POSITION])


def _inherit(leaf: _Leaf, groups: list[int] | None, entries: Entries) -> Entries:
    """Fill in inherited tracking and the position of each entry."""
    tracking = leaf.tracking
    positions = _positions(leaf.manifest, groups)
    at = entries.schema.get_field_index("first_row_id")
    if at >= 0 and tracking.first_row_id is not None and entries.num_rows:
        # Row ids count every file before this one, also those in row groups that were skipped.
        before = None if groups is None else list(range(groups[-1] + 1))
        if before != groups or not set(_ROW_ID_INPUTS) <= set(entries.schema.names):
            # Only a data manifest has row ids to give, and it holds data files only.
            counted = inherit(read_flat(leaf.manifest, before, _ROW_ID_INPUTS), tracking)
            ids = counted["first_row_id"].take(positions)
            entries = entries.set_column(at, "first_row_id", ids)
            tracking = replace(tracking, first_row_id=None)
    return inherit(entries, tracking).append_column(POSITION, positions)


def _positions(manifest: Opened, groups: list[int] | None) -> pa.Int64Array:
    if groups is None:
        return pa.array(np.arange(_rows(manifest, None), dtype=np.int64))
    starts = np.concatenate([[0], np.cumsum(manifest.group_rows)])
    ranges = [np.arange(starts[i], starts[i + 1], dtype=np.int64) for i in groups]
    return pa.array(np.concatenate(ranges) if ranges else np.empty(0, dtype=np.int64))


# --- columns -------------------------------------------------------------------------------------


def read_flat(
    manifest: Opened,
    groups: list[int] | None,
    columns: Collection[str] | None,
    *,
    rows: pa.Array | None = None,
    same: dict[str, pa.Scalar] | None = None,
) -> Entries:
    """Read the wanted columns, flat, promoted; base columns the file lacks are null.

    Only some `rows` of what is read are wanted, if given. Columns of which one value is known to
    be the `same` for all are not read.
    """
    known = manifest.columns
    wanted = known if columns is None else {n: known[n] for n in known if n in columns}
    told = {name: value for name, value in (same or {}).items() if name in wanted}
    numbers = [n for name, where in wanted.items() if name not in told for n in where.numbers]
    size = _rows(manifest, groups)
    nested = _nested(manifest, groups, wanted, numbers, size) if numbers else pa.table({})
    if rows is not None:
        nested, size = nested.take(rows), len(rows)
    structs: dict[tuple[str, ...], dict[str, pa.Array]] = {(): _children(nested)}

    def column(name: str, path: tuple[str, ...]) -> pa.Array:
        array = pa.repeat(told[name], size) if name in told else _follow(structs, path)
        return promote(array, name, manifest.shape, manifest.file)

    flat = {name: column(name, where.path) for name, where in wanted.items()}
    for name in BASE_COLUMNS:
        if name not in flat and (columns is None or name in columns):
            flat[name] = pa.nulls(size, BASE_SCHEMA.field(name).type)
    for name in _LOCATIONS:
        if name in flat:
            flat[name] = stored_form(flat[name], manifest.table_location, file=manifest.file)
    ordered = {name: flat[name] for name in BASE_COLUMNS if name in flat}
    return pa.table(ordered | flat)


def _nested(
    manifest: Opened,
    groups: list[int] | None,
    wanted: Mapping[str, Stored],
    numbers: list[int],
    rows: int,
) -> pa.Table:
    """Read columns by their numbers, unless they take more memory than allowed."""
    what = f"{rows:,} entries of {len(numbers)} columns"
    limits.METADATA.require(_BYTES_A_VALUE * rows * len(numbers), file=manifest.file, what=what)
    every = range(manifest.parquet.num_row_groups) if groups is None else groups
    looked = _numbers_to_look_at(manifest, wanted, numbers)
    held = manifest.source.held
    to_hold = looked if held.is_whole else numbers
    require_chunks(manifest.parquet, every, to_hold)
    chunks = {(at, n): chunk_of(manifest.parquet, at, n) for at in every for n in to_hold}
    held.hold((chunk.first_page, chunk.packed_bytes) for chunk in chunks.values())
    try:
        types = manifest.footer.columns
        asked = [Wanted(at, n, chunks[at, n], types[n]) for at in every for n in looked]
        require_modest(manifest.source, asked, limits.METADATA, what)
        return manifest.parquet.read_columns(groups, numbers, rows)
    finally:
        held.let_go()


def _numbers_to_look_at(
    manifest: Opened, wanted: Mapping[str, Stored], numbers: list[int]
) -> list[int]:
    """Return the columns that may take more than the number of entries and of bytes tells."""
    if manifest.footer.file_bytes * _MOST_PACKED > limits.METADATA.bytes:
        return numbers
    types = manifest.footer.columns
    lists = {n for where in wanted.values() if pa.types.is_list(where.type) for n in where.numbers}
    return [n for n in numbers if types[n].width is None or n in lists]


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


def _rows(manifest: Opened, groups: list[int] | None) -> int:
    if groups is None:
        return int(manifest.parquet.metadata.num_rows)
    return sum(manifest.group_rows[at] for at in groups)
