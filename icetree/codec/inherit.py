"""Tracking that entries take over from one level up: a leaf's entry, or a root's snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import CorruptTable
from icetree.spec.entry.entry import (
    Content,
    Entries,
    Status,
    has_status,
    is_content,
    is_data_file,
    is_live,
)

TRACKING: Final = ("snapshot_id", "sequence_number", "file_sequence_number")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inherited:
    """What a leaf's entry, in a root or in a manifest list, says of the entries in the leaf.

    For a root it is what its snapshot says.
    """

    content_type: int = Content.DATA_MANIFEST
    partition_spec_id: int = 0
    snapshot_id: int | None = None
    sequence_number: int | None = None
    #: The row id of the first row that has none of its own; None in tables without row lineage.
    first_row_id: int | None = None


def inherit(table: Entries, tracking: Inherited) -> Entries:
    """Return the entries with null tracking replaced by what they inherit.

    A null snapshot id is inherited by every entry; null sequence numbers by ADDED ones, and by
    all when the leaf's own is 0, which only leaves of v1 tables have. A live data file with a
    null first row id takes the leaf's plus the rows of the live data files before it that had
    none either: ids are handed out for added and existing rows only, so a DELETED entry neither
    takes nor uses up any.

    Columns that the table lacks stay absent. `status` is needed for the sequence numbers, and
    for `first_row_id` also `record_count`, every entry of the leaf, and `content_type` unless
    all are data files.
    """
    if "snapshot_id" in table.schema.names:
        table = _fill(table, "snapshot_id", tracking.snapshot_id)
    for name in ("sequence_number", "file_sequence_number"):
        if name in table.schema.names and tracking.sequence_number is not None:
            takes = None
            if tracking.sequence_number != 0:
                takes = has_status(table, Status.ADDED)
            table = _fill(table, name, tracking.sequence_number, where=takes)
    if "first_row_id" in table.schema.names and tracking.first_row_id is not None:
        table = _assign_row_ids(table, tracking.first_row_id)
    return table


def inherit_in_root(root: Entries, snapshot: Inherited) -> Entries:
    """Return a root whose ADDED entries have what they left to the snapshot to say.

    ADDED data files and data manifests without a first row id are numbered in order, from the
    snapshot's first: a data manifest takes as many as it has rows, as in a manifest list of v3.
    """
    own = ("status", *TRACKING, "first_row_id")
    if not set(own) <= set(root.schema.names) or not any(root[name].null_count for name in own):
        return root
    added = has_status(root, Status.ADDED)
    for name in TRACKING:
        value = snapshot.snapshot_id if name == "snapshot_id" else snapshot.sequence_number
        root = _fill(root, name, value, where=added)
    ids = root["first_row_id"]
    numbered = is_content(root, Content.DATA, Content.DATA_MANIFEST)
    takes = pc.and_(pc.and_(added, numbered), pc.is_null(ids))
    if snapshot.first_row_id is None or not pc.any(takes).as_py():
        return root
    held = pc.add(
        pc.coalesce(root["added_rows_count"], 0), pc.coalesce(root["existing_rows_count"], 0)
    )
    rows = pc.if_else(is_data_file(root), root["record_count"], held)
    return _replace(root, "first_row_id", _numbered(ids, takes, rows, snapshot.first_row_id))


def require_tracking(table: Entries, *, file: str, names: tuple[str, ...] = TRACKING) -> None:
    """Refuse entries that still lack tracking after inheritance."""
    for name in names:
        if name in table.schema.names and table[name].null_count:
            raise CorruptTable(file, f"an entry has no {name} and may not inherit one")


def _fill(
    table: Entries, name: str, value: int | None, *, where: pa.ChunkedArray | None = None
) -> Entries:
    column = table[name]
    if value is None or column.null_count == 0:
        return table
    filled = pc.fill_null(column, pa.scalar(value, pa.int64()))
    if where is not None:
        filled = pc.if_else(where, filled, column)
    return _replace(table, name, filled)


def _assign_row_ids(table: Entries, first_row_id: int) -> Entries:
    own = table["first_row_id"]
    if own.null_count == 0:
        return table
    takes = pc.and_(pc.is_null(own), is_live(table))
    if "content_type" in table.schema.names:
        takes = pc.and_(takes, is_data_file(table))
    ids = _numbered(own, takes, table["record_count"], first_row_id)
    return _replace(table, "first_row_id", ids)


def _numbered(
    own: pa.ChunkedArray, takes: pa.ChunkedArray, rows: pa.ChunkedArray, first: int
) -> pa.ChunkedArray:
    """Return first row ids: those that entries have, and running ones for those that take one."""
    taken = pc.if_else(takes, pc.fill_null(rows, 0), pa.scalar(0, pa.int64()))
    counts = taken.to_numpy()
    # Arrow's running sum is several times slower than numpy's.
    given = pa.array(np.cumsum(counts) - counts + first)
    return pc.if_else(takes, given, own)


def _replace(table: Entries, name: str, column: pa.ChunkedArray) -> Entries:
    return table.set_column(table.schema.names.index(name), name, column)
