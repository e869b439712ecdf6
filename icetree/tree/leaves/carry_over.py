"""What a commit finds: the live entries of the head, before anything is done to them.

Pure bookkeeping that changes nothing of the table: what was ADDED is EXISTING by now, leaves that
have nothing left are gone, and rows from before row lineage have numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from icetree.spec.entry.entry import (
    MANIFESTS,
    Content,
    Entries,
    Status,
    has_format,
    is_content,
    is_live,
    only,
    with_columns,
)
from icetree.spec.entry.equality import without_loose_stats
from icetree.spec.schema.shape import Shape
from icetree.tree.draft import Head
from icetree.tree.live import live_in_leaf
from icetree.tree.manifest_dvs import read_manifest_dvs
from icetree.tree.reading import LEAF_COLUMNS, Leaf, Reader, leaves_in

_LONG = pa.int64()


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The live entries of a head, all EXISTING."""

    root: Entries
    #: The removed positions of each leaf that has any.
    manifest_dvs: dict[str, BitMap]
    #: Rows that were numbered just now.
    numbered: int


def carry_over(head: Head, shape: Shape, reader: Reader) -> Carried:
    """Return what the root that follows a head starts from."""
    manifest_dvs = read_manifest_dvs(head.root, reader, root_file=head.root_file)
    live, manifest_dvs = _existing(head.root, manifest_dvs, reader)
    live, numbered = _number_legacy_rows(without_loose_stats(live, shape), head.next_row_id)
    return Carried(root=live, manifest_dvs=manifest_dvs, numbered=numbered)


def _existing(
    root: Entries, manifest_dvs: dict[str, BitMap], reader: Reader
) -> tuple[Entries, dict[str, BitMap]]:
    """Return the live entries as EXISTING, without leaves that have no live entry left."""
    live = only(root, is_live(root))
    live = with_columns(live, status=int(Status.EXISTING), dv_added_positions=None)
    dead = _dead_leaves(live, manifest_dvs, reader)
    if dead:
        names = pa.array(dead, pa.string())
        is_dead = pc.or_(
            pc.and_(is_content(live, *MANIFESTS), pc.is_in(live["location"], names)),
            pc.and_(
                is_content(live, Content.MANIFEST_DV), pc.is_in(live["referenced_file"], names)
            ),
        )
        live = only(live, pc.invert(is_dead))
        manifest_dvs = {leaf: gone for leaf, gone in manifest_dvs.items() if leaf not in dead}
    return live, manifest_dvs


def _dead_leaves(live: Entries, manifest_dvs: dict[str, BitMap], reader: Reader) -> set[str]:
    """Return the leaves whose live entries are all removed.

    Counts only tell which cannot be dead: a manifest DV may also name entries that were DELETED
    already, so where they leave a doubt the leaf itself is asked.
    """
    leaves = only(live, is_content(live, *MANIFESTS))
    alive = pc.add(leaves["added_files_count"], leaves["existing_files_count"])
    gone = pa.array(
        [len(manifest_dvs.get(leaf, ())) for leaf in leaves["location"].to_pylist()], _LONG
    )
    doubtful = only(leaves.select(LEAF_COLUMNS), pc.less_equal(alive, gone))
    return {
        leaf.location
        for leaf in leaves_in(doubtful)
        if _is_dead(leaf, manifest_dvs.get(leaf.location, BitMap()), reader)
    }


def _is_dead(leaf: Leaf, gone: BitMap, reader: Reader) -> bool:
    # No position is past the entries, so as many as there are entries are all of them.
    if len(gone) == leaf.record_count:
        return True
    return not len(live_in_leaf(leaf, gone, reader, ("status",)))


def _number_legacy_rows(live: Entries, next_row_id: int) -> tuple[Entries, int]:
    """Give row ids to the files of manifests from before row lineage, as v3 tells to.

    A columnar leaf without a first row id needs none: its entries have theirs.
    """
    lacks = pc.and_(
        pc.and_(is_content(live, Content.DATA_MANIFEST), has_format(live, "avro")),
        pc.is_null(live["first_row_id"]),
    )
    if not pc.any(lacks).as_py():
        return live, 0
    held = pc.add(
        pc.coalesce(live["added_rows_count"], 0), pc.coalesce(live["existing_rows_count"], 0)
    )
    rows = pc.if_else(lacks, held, pa.scalar(0, _LONG))
    start = pc.add(pc.subtract(pc.cumulative_sum(rows), rows), next_row_id)
    ids = pc.if_else(lacks, start, live["first_row_id"])
    return with_columns(live, first_row_id=ids), pc.sum(rows).as_py()
