"""A snapshot to scale: leaves and files as bars on an axis, wide as their range, high as their files."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from icetree.explore.axis import axis_of, ranges
from icetree.explore.bars import Flags, depth, draw
from icetree.explore.film import read_root
from icetree.explore.named import leaf_named, told
from icetree.picture.rows import stats_columns
from icetree.spec.arrays import one_chunk
from icetree.spec.entry.entry import POSITION, Content, Entries, is_content, is_live, only
from icetree.spec.schema.shape import Shape
from icetree.table.table import Table
from icetree.tree.live import is_live_in
from icetree.tree.manifest_dvs import read_manifest_dvs
from icetree.tree.plan.delete_stats import judged
from icetree.tree.prune.bind import bind
from icetree.tree.prune.prune import columns_needed, may_match

#: Bars in one answer.
_BARS: Final = 300
#: What is told of a file in a leaf.
_FACTS: Final = (
    *("content_type", "location", "status", "snapshot_id", "sequence_number", "record_count"),
    *("file_size_in_bytes", "partition_spec_id", "referenced_file", "added_files_count"),
    *("existing_files_count", "added_rows_count", "existing_rows_count"),
)


def scale(
    table: Table,
    *,
    at: str | None = None,
    by: str | None = None,
    where: str | None = None,
    leaf: str | None = None,
) -> dict[str, Any]:
    """Return a snapshot's data on an axis; of the files of one leaf, where that is named.

    Only the root is read, or the root and that leaf. With a filter each bar tells what is left of it.
    A filter is about the columns that the snapshot has, as of a scan; an axis is one of today.
    """
    scan = table.scan(where, at=at)
    snapshot, shape = scan.snapshot, scan.metadata.shape(scan.schema.schema_id)
    axis = axis_of(table.metadata.shape(), by)
    bound = bind(scan.where, shape)
    wanted = {*stats_columns(shape), *columns_needed(bound)}
    wanted |= set(axis.columns) if axis is not None else set()
    root = read_root(table, snapshot, shape, frozenset(wanted))
    root_file = snapshot.root_file if snapshot else "root"
    removed = read_manifest_dvs(root, table.files.reader(shape), root_file=root_file)
    if leaf is None:
        shown = only(
            root, pc.and_(is_live(root), is_content(root, Content.DATA, Content.DATA_MANIFEST))
        )
        gone = np.zeros(shown.num_rows, np.bool_)
    else:
        shown, gone = _leaf(table, root, leaf, shape, removed, wanted)
    kept = None
    if where:
        kept = may_match(judged(shown, shape), bound).to_numpy(zero_copy_only=False) & ~gone
    drawn = draw(
        *(shown, axis, shape),
        table_location=table.location,
        removed=removed,
        most=_BARS,
        gone=gone,
        kept=kept,
    )
    place = None if axis is None else ranges(shown, axis)
    return {
        "axis": None if axis is None else {"name": axis.name, "kind": axis.kind},
        "leaf": None if leaf is None else told(table, leaf),
        "bars": drawn.bars,
        "ticks": [list(each) for each in drawn.ticks],
        "depth": [] if place is None else depth(place.first[~gone], place.last[~gone]),
        "objects": shown.num_rows,
        "unplaced": shown.num_rows if place is None else int(np.isnan(place.first).sum()),
    }


def _leaf(
    table: Table, root: Entries, leaf: str, shape: Shape, removed: Any, columns: set[str]
) -> tuple[Entries, Flags]:
    """Return the entries of one leaf, and which of them do not count any more."""
    found = leaf_named(table, root, leaf)
    entries = table.files.reader(shape).leaf(found, columns={*_FACTS, POSITION, *columns})
    alive = one_chunk(is_live_in(found, entries, removed.get(found.location)))
    return entries, ~alive.to_numpy(zero_copy_only=False)
