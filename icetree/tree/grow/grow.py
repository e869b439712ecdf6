"""Growing a root: the previous root and a change become the draft of the next one.

Pure: nothing is written. A draft that loses its race costs nothing but time, and the next
attempt grows again from the new head, with the leaves of `prepare` already stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from icetree.codec import manifest
from icetree.spec.entry import stats
from icetree.spec.entry.entry import (
    MANIFESTS,
    ROOT,
    Content,
    Entries,
    Status,
    complete,
    concat,
    empty,
    is_content,
    is_data_file,
    only,
    with_columns,
)
from icetree.spec.schema.shape import Shape
from icetree.tree.changes import Changes
from icetree.tree.draft import Draft, Head, Prepared, Stamp
from icetree.tree.grow.locate import Located, locate
from icetree.tree.grow.targets import require_addable, require_new, require_targets
from icetree.tree.leaf import NewFile, NewLeaf, Reshaped, make_leaf, split
from icetree.tree.leaves.carry_over import Carried, carry_over
from icetree.tree.leaves.cluster import clustered
from icetree.tree.leaves.flush import flush
from icetree.tree.leaves.mark import removing
from icetree.tree.leaves.rewritten import Rewritten, take_over
from icetree.tree.leaves.tidy import compact
from icetree.tree.manifest_dvs import loosened
from icetree.tree.policy import Policy
from icetree.tree.reading import Reader, leaves_in
from icetree.tree.summary import TOLD_OF_LEAVES, changed_partitions, names_outside, summarise

_INT, _LONG = pa.int32(), pa.int64()
_MINUS_ONE = pa.scalar(-1, _LONG)

#: Entries, the kind of manifest and the table's shape -> the manifest's bytes.
Encode: TypeAlias = Callable[[Entries, str, Shape], bytes]


def prepare(changes: Changes, shape: Shape, policy: Policy, *, commit_id: str) -> Prepared:
    """Put new files into leaves when there are more of them than the root should hold."""
    require_addable(changes.added)
    is_data = is_data_file(changes.added)
    in_root: list[Entries] = []
    leaves: list[NewLeaf] = []
    for content, most, entries in (
        (Content.DATA_MANIFEST, policy.root_max_data_entries, only(changes.added, is_data)),
        (
            Content.DELETE_MANIFEST,
            policy.root_max_delete_entries,
            only(changes.added, pc.invert(is_data)),
        ),
    ):
        if entries.num_rows == 0:
            continue
        fresh = with_columns(complete(stats.storable(entries)), status=int(Status.ADDED))
        if entries.num_rows <= most:
            in_root.append(fresh)
            continue
        for part in split(clustered(fresh, shape), policy):
            location = f"metadata/{commit_id}-m{len(leaves)}.parquet"
            leaves.append(
                make_leaf(
                    part,
                    content,
                    location,
                    shape,
                    status=Status.ADDED,
                    key_bytes=policy.key_bytes,
                )
            )
    return Prepared(changes=changes, in_root=concat(in_root), leaves=tuple(leaves))


def grow(
    head: Head,
    prepared: Prepared,
    stamp: Stamp,
    shape: Shape,
    policy: Policy,
    reader: Reader,
    *,
    rewritten: Rewritten | None = None,
    encode: Encode = manifest.encode,
) -> Draft:
    """Return the root that follows `head` when the change is applied to it.

    `rewritten` are leaves that were made, and stored, to take the place of others. `encode` makes the root's bytes; a caller may pass one that also keeps the time.
    """
    carried = carry_over(head, shape, reader)
    live, manifest_dvs = carried.root, carried.manifest_dvs
    processed, marks = 0, tuple[NewFile, ...]()
    if rewritten is not None:
        taken = take_over(rewritten, live, manifest_dvs, stamp, shape, policy)
        live, manifest_dvs = taken.root, taken.manifest_dvs
        processed, marks = taken.processed, taken.files
        # What gains was chosen with all leaves in sight, so nothing else is done to them.
        policy = policy.at_rest()
    leaves = leaves_in(live)
    located = locate(live, leaves, manifest_dvs, prepared.changes, reader)
    require_new(prepared.changes, live, leaves, manifest_dvs, located, shape, reader)
    require_targets(prepared.changes, live, leaves, manifest_dvs, located, reader)
    kept, new_manifest_dvs, files = _remove(live, located, manifest_dvs, stamp, shape, policy)
    added, added_rows = _stamp_added(prepared, stamp, head.next_row_id + carried.numbered)

    new = [some for some in (new_manifest_dvs, added) if some.num_rows]
    tidied = compact(kept, manifest_dvs, located.in_leaves.keys(), stamp, shape, policy, reader)
    # One chunk a column: a head that grew from heads would else get slower with every commit.
    grown = tidied.then(loosened(concat([tidied.root, *new]).combine_chunks()))
    removed = {
        **manifest_dvs,
        **{at: gone | manifest_dvs.get(at, BitMap()) for at, gone in located.in_leaves.items()},
    }
    flushed = flush(grown, removed, stamp, shape, policy, reader)
    encoded = encode(flushed.root, ROOT, shape)
    if len(encoded) > policy.root_target_bytes:
        smaller = flush(flushed, removed, stamp, shape, policy, reader, by_size=True)
        if smaller is not flushed:
            flushed, encoded = smaller, encode(smaller.root, ROOT, shape)
    return Draft(
        root=flushed.root,
        root_bytes=encoded,
        files=(*marks, *files, *(leaf.file for leaf in flushed.leaves)),
        summary=_summary(
            head,
            prepared,
            located,
            live,
            shape,
            _told_of_leaves(carried, flushed, processed),
            outside=names_outside(flushed.root, prepared.changes.added, head.root, head.summary),
        ),
        first_row_id=head.next_row_id,
        added_rows=carried.numbered + added_rows,
    )


def _remove(
    live: Entries,
    located: Located,
    manifest_dvs: dict[str, BitMap],
    stamp: Stamp,
    shape: Shape,
    policy: Policy,
) -> tuple[Entries, Entries, list[NewFile]]:
    """Mark what goes: root entries DELETED, leaf entries in new manifest DVs."""
    if located.in_root.true_count:
        live = with_columns(
            live,
            status=pc.if_else(
                located.in_root, pa.scalar(int(Status.DELETED), _INT), live["status"]
            ),
            snapshot_id=pc.if_else(
                located.in_root, pa.scalar(stamp.snapshot_id, _LONG), live["snapshot_id"]
            ),
        )
    if not located.in_leaves:
        return live, empty(), []
    replaced = pc.and_(
        is_content(live, Content.MANIFEST_DV),
        pc.is_in(live["referenced_file"], pa.array(list(located.in_leaves), pa.string())),
    )
    marks, files = removing(located.in_leaves, manifest_dvs, stamp, shape, policy)
    return only(live, pc.invert(replaced)), marks, files


def _stamp_added(prepared: Prepared, stamp: Stamp, next_row_id: int) -> tuple[Entries, int]:
    """Return the root entries of everything new, with their tracking, and the rows they number."""
    new = concat([prepared.in_root, *(leaf.entry for leaf in prepared.leaves)])
    rows = _rows_to_number(prepared)
    starts = pc.add(pc.subtract(pc.cumulative_sum(rows), rows), next_row_id)
    takes = pc.and_(
        is_content(new, Content.DATA, Content.DATA_MANIFEST),
        pc.and_(pc.is_null(new["first_row_id"]), pc.greater(rows, _MINUS_ONE)),
    )
    seq = pa.scalar(stamp.sequence_number, _LONG)
    oldest = pc.min_element_wise(new["min_sequence_number"], seq)
    new = with_columns(
        new,
        snapshot_id=stamp.snapshot_id,
        sequence_number=pc.fill_null(new["sequence_number"], seq),
        file_sequence_number=stamp.sequence_number,
        first_row_id=pc.if_else(takes, starts, new["first_row_id"]),
        min_sequence_number=pc.if_else(
            is_content(new, *MANIFESTS), oldest, new["min_sequence_number"]
        ),
    )
    return new, pc.sum(rows).as_py() or 0


def _rows_to_number(prepared: Prepared) -> pa.Array:
    """Return, for each new root entry, how many rows take their ids from it."""
    own = prepared.in_root
    takes = pc.and_(is_data_file(own), pc.is_null(own["first_row_id"]))
    rows = pc.if_else(takes, own["record_count"], pa.scalar(0, _LONG)).combine_chunks()
    in_leaves = pa.array([leaf.rows_without_ids for leaf in prepared.leaves], _LONG)
    return pa.concat_arrays([rows, in_leaves])


def _told_of_leaves(before: Carried, after: Reshaped, processed: int) -> dict[str, int]:
    old, new = (
        set(root["location"].filter(is_content(root, *MANIFESTS)).to_pylist())
        for root in (before.root, after.root)
    )
    processed += sum(leaf.entries.num_rows for leaf in after.leaves)
    counts = (len(new - old), len(new & old), len(old - new), processed)
    return dict(zip(TOLD_OF_LEAVES, counts, strict=True))


def _summary(
    head: Head,
    prepared: Prepared,
    located: Located,
    live: Entries,
    shape: Shape,
    manifests: dict[str, int],
    *,
    outside: bool | None,
) -> dict[str, str]:
    return summarise(
        prepared.changes.operation,
        prepared.changes.added,
        located.facts,
        head.summary,
        manifests=manifests,
        outside=outside,
        # Entries removed from leaves are not read, so their partitions are not known.
        changed_partitions=None
        if located.in_leaves
        else changed_partitions(
            concat([prepared.changes.added, only(live, located.in_root)]), shape
        ),
    )
