"""What one snapshot changed, read from its root and from only those leaves that changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from icetree.codec import bitmap
from icetree.errors import CorruptTable
from icetree.spec.arrays import first_repeated, grouped
from icetree.spec.entry import entry
from icetree.spec.entry.entry import (
    FILES,
    Entries,
    Status,
    has_status,
    is_content,
    is_data_dv,
    is_live,
    keys_of,
    only,
)
from icetree.spec.short import short
from icetree.tree.live import placed
from icetree.tree.manifest_dvs import added_positions
from icetree.tree.reading import Leaf, Reader, leaves_in


def _no_files() -> Entries:
    return placed(entry.empty(), leaf=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """Files (content 0, 1 and 2) that came and went, tracking inherited.

    `leaf` and `position` say where each is tracked; both are null for an entry of the root.
    """

    added: Entries = field(default_factory=_no_files)
    removed: Entries = field(default_factory=_no_files)

    __repr__ = short


def diff(root: Entries, reader: Reader, *, root_file: str = "root") -> Diff:
    """Return the files that the root's snapshot added and removed.

    Reads the ADDED leaves and those that ADDED manifest DVs name, nothing else.
    """
    gone = added_positions(root, reader, root_file=root_file)
    own = placed(only(root, is_content(root, *FILES)), leaf=None)
    added = [only(own, has_status(own, Status.ADDED))]
    removed = [only(own, has_status(own, Status.DELETED))]
    fresh = {leaf.location for leaf in leaves_in(only(root, has_status(root, Status.ADDED)))}
    for leaf in leaves_in(only(root, is_live(root))):
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
    entries = placed(entries, leaf=leaf.location)
    if not is_new:
        # A tombstone in a leaf of an earlier snapshot is that snapshot's change.
        went = pc.and_(is_gone, is_live(entries))
        return entries.slice(0, 0), only(entries, went)
    # An entry that came and went in one snapshot never was.
    came = pc.and_(has_status(entries, Status.ADDED), pc.invert(is_gone))
    went = pc.or_(
        has_status(entries, Status.DELETED), pc.and_(has_status(entries, Status.EXISTING), is_gone)
    )
    return only(entries, came), only(entries, went)


def _stack(tables: Sequence[Entries]) -> Entries:
    return entry.concat([tables[0], *(table for table in tables[1:] if table.num_rows)])


def _require_once(entries: Entries, what: str, root_file: str) -> None:
    keys, data_dvs = keys_of(entries), is_data_dv(entries)
    for subject, subset in (("data DV of", data_dvs), ("file", pc.invert(data_dvs))):
        if (name := first_repeated(keys.filter(subset))) is not None:
            raise CorruptTable(root_file, f"the {subject} {name} is {what} twice in one snapshot")


def net(diffs: Sequence[Diff]) -> Diff:
    """Return what a range of snapshots, oldest first, changed as a whole.

    A file that came and went is in neither side. A data DV is one of (data file, location,
    offset): of a DV replaced twice, the first previous and the last new one remain.
    """
    if not diffs:
        return Diff()
    added = entry.concat([each.added for each in diffs])
    removed = entry.concat([each.removed for each in diffs])
    added_keys, removed_keys = identity(added), identity(removed)
    signs = pa.table(
        {
            "key": pa.chunked_array([*added_keys.chunks, *removed_keys.chunks], pa.string()),
            "sign": pa.concat_arrays(
                [pa.repeat(1, added.num_rows), pa.repeat(-1, removed.num_rows)]
            ),
        }
    )
    balance = grouped(signs, "key").aggregate([("sign", "sum")])
    gained = balance.filter(pc.greater(balance["sign_sum"], 0))["key"]
    lost = balance.filter(pc.less(balance["sign_sum"], 0))["key"]
    return Diff(
        added=_one_each(added, added_keys, gained, "max"),
        removed=_one_each(removed, removed_keys, lost, "min"),
    )


def identity(entries: Entries) -> pa.ChunkedArray:
    """Return one string a row, content first; equal strings name the same file."""
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
    rows = grouped(order, "key").aggregate([("row", which)])[f"row_{which}"]
    return entries.take(rows.take(pc.sort_indices(rows)))
