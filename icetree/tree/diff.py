"""What one snapshot changed, read from its root and from only those leaves that changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from icetree.codec import bitmap
from icetree.errors import CorruptTable
from icetree.spec import entry
from icetree.spec.entry import (
    POSITION,
    Content,
    Entries,
    Status,
    is_content,
    is_live,
    is_vector,
)
from icetree.tree.changes import Operation
from icetree.tree.live import LEAF
from icetree.tree.reading import Leaf, Reader, leaves_in
from icetree.tree.vectors import added_positions

_FILES: Final = (Content.DATA, Content.POSITION_DELETES, Content.EQUALITY_DELETES)
#: Where a data DV is and how many rows it removes: entry column -> name in row changes.
_DV_COLUMNS: Final = {
    "location": "location",
    "dv_offset": "offset",
    "dv_size_in_bytes": "size_in_bytes",
    "record_count": "cardinality",
}
_DV_TYPES: Final = {
    name: entry.BASE_SCHEMA.field(column).type for column, name in _DV_COLUMNS.items()
}

#: Columns of `RowChanges.vectors`.
VECTOR_PAIRS: Final = pa.schema(
    [pa.field("data_file", pa.string())]
    + [
        pa.field(f"{prefix}_{name}", type)
        for prefix in ("dv", "previous")
        for name, type in _DV_TYPES.items()
    ]
)


def _no_files() -> Entries:
    return (
        entry.empty()
        .append_column(LEAF, pa.array([], pa.string()))
        .append_column(POSITION, pa.array([], pa.int64()))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """Files (content 0, 1 and 2) that came and went, tracking inherited.

    `leaf` and `position` say where each is tracked; both are null for an entry of the root.
    """

    added: Entries = field(default_factory=_no_files)
    removed: Entries = field(default_factory=_no_files)


def diff(root: Entries, reader: Reader, *, root_file: str = "root") -> Diff:
    """Return the files that the root's snapshot added and removed.

    Reads the ADDED leaves and those that ADDED manifest DVs name, nothing else.
    """
    gone = added_positions(root, reader, root_file=root_file)
    own = _placed(root.filter(is_content(root, *_FILES)), leaf=None)
    added = [own.filter(_has(own, Status.ADDED))]
    removed = [own.filter(_has(own, Status.DELETED))]
    fresh = {leaf.location for leaf in leaves_in(root.filter(_has(root, Status.ADDED)))}
    for leaf in leaves_in(root.filter(is_live(root))):
        if leaf.location in fresh or leaf.location in gone:
            came, went = _leaf_diff(
                leaf, reader, gone.get(leaf.location, BitMap()), is_new=leaf.location in fresh
            )
            added.append(came)
            removed.append(went)
    found = Diff(added=_stack(added), removed=_stack(removed))
    _require_once(found.added, "added", root_file)
    _require_once(found.removed, "removed", root_file)
    return found


def _leaf_diff(
    leaf: Leaf, reader: Reader, gone: BitMap, *, is_new: bool
) -> tuple[Entries, Entries]:
    entries = reader.leaf(leaf)
    is_gone = bitmap.mask(gone, entries.num_rows, file=leaf.location)
    entries = _placed(entries, leaf=leaf.location)
    if not is_new:
        # A tombstone in a leaf of an earlier snapshot is that snapshot's change.
        went = pc.and_(is_gone, is_live(entries))
        return entries.slice(0, 0), entries.filter(went)
    # An entry that came and went in one snapshot never was.
    came = pc.and_(_has(entries, Status.ADDED), pc.invert(is_gone))
    went = pc.or_(_has(entries, Status.DELETED), pc.and_(_has(entries, Status.EXISTING), is_gone))
    return entries.filter(came), entries.filter(went)


def _has(entries: Entries, status: Status) -> pa.ChunkedArray:
    return pc.equal(entries["status"], pa.scalar(status, pa.int32()))


def _placed(entries: Entries, *, leaf: str | None) -> Entries:
    size = entries.num_rows
    if leaf is None:
        position = pa.nulls(size, pa.int64())
    else:
        position = entries[POSITION]
        entries = entries.drop_columns([POSITION])
    place = pa.nulls(size, pa.string()) if leaf is None else pa.repeat(leaf, size)
    return entries.append_column(LEAF, place).append_column(POSITION, position)


def _stack(tables: Sequence[Entries]) -> Entries:
    return entry.concat([tables[0], *(table for table in tables[1:] if table.num_rows)])


def _require_once(entries: Entries, what: str, root_file: str) -> None:
    vectors = is_vector(entries)
    keys = pc.if_else(vectors, entries["referenced_file"], entries["location"])
    for subject, subset in (("data DV of", vectors), ("file", pc.invert(vectors))):
        found = keys.filter(subset)
        if pc.count_distinct(found).as_py() < len(found):
            counts = pc.value_counts(found)
            twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")[0]
            raise CorruptTable(root_file, f"the {subject} {twice} is {what} twice in one snapshot")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChanges:
    """Which rows came and went, as files to read and positions to subtract."""

    #: Data files whose rows are new, with `dv_*` of the DV that came along: its rows are not.
    added: pa.Table
    #: Data files whose rows are gone, with `dv_*` of the DV they had: its rows had gone before.
    removed: pa.Table
    #: Files that stayed while their DV changed, as `VECTOR_PAIRS`: rows in the DV but not in the
    #: previous one are gone; rows in the previous one only are back.
    vectors: pa.Table
    #: New equality deletes: which rows they remove only reading the data can tell.
    equality_deletes: Entries


def row_changes(diff: Diff, *, operation: Operation | None = None) -> RowChanges:
    """Return the row changes of a diff; a `replace` has none, whatever files it swapped.

    Equality deletes that went are taken to have no rows left to remove.
    """
    if operation is Operation.REPLACE:
        diff = Diff(added=diff.added.slice(0, 0), removed=diff.removed.slice(0, 0))
    came = diff.added.filter(is_content(diff.added, Content.DATA))
    went = diff.removed.filter(is_content(diff.removed, Content.DATA))
    new = diff.added.filter(is_vector(diff.added))
    old = diff.removed.filter(is_vector(diff.removed))
    moving = pa.chunked_array([*came["location"].chunks, *went["location"].chunks], pa.string())
    return RowChanges(
        added=_with_vectors(came, came["location"], dv=new),
        removed=_with_vectors(went, went["location"], dv=old),
        vectors=_vector_pairs(new, old, moving.combine_chunks()),
        equality_deletes=diff.added.filter(is_content(diff.added, Content.EQUALITY_DELETES)),
    )


def _vector_pairs(new: Entries, old: Entries, moving: pa.Array) -> pa.Table:
    new_files, old_files = new["referenced_file"], old["referenced_file"]
    only_old = old_files.filter(
        pc.invert(pc.is_in(old_files, value_set=new_files.combine_chunks()))
    )
    files = pa.chunked_array([*new_files.chunks, *only_old.chunks], pa.string())
    files = files.filter(pc.invert(pc.is_in(files, value_set=moving)))
    pairs = _with_vectors(pa.table({"data_file": files}), files, dv=new, previous=old)
    return pairs.cast(VECTOR_PAIRS)


def _with_vectors(table: pa.Table, files: pa.ChunkedArray, **vectors: Entries) -> pa.Table:
    """Append to each row the place of the DV on its data file, null where there is none."""
    for prefix, found in vectors.items():
        rows = pc.index_in(files, value_set=found["referenced_file"].combine_chunks())
        matched = found.select(list(_DV_COLUMNS)).take(rows)
        for column, name in _DV_COLUMNS.items():
            target = f"{prefix}_{name}"
            if target in table.column_names:
                table = table.set_column(table.column_names.index(target), target, matched[column])
            else:
                table = table.append_column(target, matched[column])
    return table


def net(diffs: Sequence[Diff]) -> Diff:
    """Return what a range of snapshots, oldest first, changed as a whole.

    A file that came and went is in neither side. A data DV is one of (data file, location,
    offset): of a DV replaced twice, the first previous and the last new one remain.
    """
    if not diffs:
        return Diff()
    added = entry.concat([each.added for each in diffs])
    removed = entry.concat([each.removed for each in diffs])
    added_keys, removed_keys = _identity(added), _identity(removed)
    balance = (
        pa.table(
            {
                "key": pa.chunked_array([*added_keys.chunks, *removed_keys.chunks], pa.string()),
                "sign": pa.concat_arrays(
                    [pa.repeat(1, added.num_rows), pa.repeat(-1, removed.num_rows)]
                ),
            }
        )
        .group_by("key")
        .aggregate([("sign", "sum")])
    )
    gained = balance.filter(pc.greater(balance["sign_sum"], 0))["key"]
    lost = balance.filter(pc.less(balance["sign_sum"], 0))["key"]
    return Diff(
        added=_one_each(added, added_keys, gained, "max"),
        removed=_one_each(removed, removed_keys, lost, "min"),
    )


def _identity(entries: Entries) -> pa.ChunkedArray:
    """Return one string a row; equal strings name the same file."""
    return pc.binary_join_element_wise(
        pc.cast(entries["content_type"], pa.string()),
        entries["location"],
        pc.cast(entries["dv_offset"], pa.string()),
        entries["referenced_file"],
        "\0",
        null_handling="replace",
    )


def _one_each(
    entries: Entries, keys: pa.ChunkedArray, wanted: pa.ChunkedArray, which: str
) -> Entries:
    """Return the first ("min") or last ("max") row of each wanted key, in order."""
    order = pa.table({"key": keys, "row": pa.array(np.arange(entries.num_rows))})
    order = order.filter(pc.is_in(keys, value_set=wanted.combine_chunks()))
    rows = order.group_by("key").aggregate([("row", which)])[f"row_{which}"]
    return entries.take(rows.take(pc.sort_indices(rows)))
