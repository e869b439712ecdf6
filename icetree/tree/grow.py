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

from icetree.codec import bitmap, manifest, puffin
from icetree.spec import stats
from icetree.spec.entry import (
    BASE_SCHEMA,
    MANIFESTS,
    ROOT,
    Content,
    Entries,
    Status,
    complete,
    concat,
    empty,
    has_format,
    is_content,
    is_data_file,
    is_live,
    only,
    with_columns,
)
from icetree.spec.equality import without_loose_stats
from icetree.spec.shape import Shape
from icetree.tree.changes import Changes
from icetree.tree.cluster import clustered
from icetree.tree.compact import compact
from icetree.tree.draft import Draft, Head, Prepared, Stamp
from icetree.tree.flush import flush
from icetree.tree.leaf import NewFile, NewLeaf, Reshaped, make_leaf, split
from icetree.tree.live import live_in_leaf
from icetree.tree.locate import Located, locate
from icetree.tree.manifest_dvs import loosened, read_manifest_dvs
from icetree.tree.policy import Policy
from icetree.tree.reading import LEAF_COLUMNS, Leaf, Reader, leaves_in
from icetree.tree.summary import TOLD_OF_LEAVES, changed_partitions, summarise
from icetree.tree.targets import require_addable, require_new, require_targets

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
            leaves.append(make_leaf(part, content, location, shape, status=Status.ADDED))
    return Prepared(changes=changes, in_root=concat(in_root), leaves=tuple(leaves))


def grow(
    head: Head,
    prepared: Prepared,
    stamp: Stamp,
    shape: Shape,
    policy: Policy,
    reader: Reader,
    *,
    encode: Encode = manifest.encode,
) -> Draft:
    """Return the root that follows `head` when the change is applied to it.

    `encode` makes the root's bytes; a caller may pass one that also keeps the time.
    """
    manifest_dvs = read_manifest_dvs(head.root, reader, root_file=head.root_file)
    live, manifest_dvs = _carry_over(head.root, manifest_dvs, reader)
    live = without_loose_stats(live, shape)
    live, legacy_rows = _number_legacy_rows(live, head.next_row_id)
    leaves = leaves_in(live)
    located = locate(live, leaves, manifest_dvs, prepared.changes, reader)
    require_new(prepared.changes, live, leaves, manifest_dvs, located, shape, reader)
    require_targets(prepared.changes, live, leaves, manifest_dvs, located, reader)
    kept, new_manifest_dvs, files = _remove(live, located, manifest_dvs, stamp, shape, policy)
    added, added_rows = _stamp_added(prepared, stamp, head.next_row_id + legacy_rows)

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
        files=(*files, *(leaf.file for leaf in flushed.leaves)),
        summary=_summary(head, prepared, located, live, flushed, shape),
        first_row_id=head.next_row_id,
        added_rows=legacy_rows + added_rows,
    )


def _carry_over(
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
    rows: list[dict[str, object]] = []
    files: list[NewFile] = []
    for leaf, gone in located.in_leaves.items():
        row, file = _manifest_dv(
            leaf, gone, manifest_dvs.get(leaf), stamp, shape, policy, len(files)
        )
        rows.append(row)
        files += file
    table = pa.Table.from_pylist(rows, schema=BASE_SCHEMA)
    return only(live, pc.invert(replaced)), table, files


def _manifest_dv(
    leaf: str,
    gone: BitMap,
    before: BitMap | None,
    stamp: Stamp,
    shape: Shape,
    policy: Policy,
    number: int,
) -> tuple[dict[str, object], list[NewFile]]:
    full = gone if before is None else before | gone
    row: dict[str, object] = {
        "content_type": int(Content.MANIFEST_DV),
        "file_format": "puffin",
        "status": int(Status.ADDED),
        "snapshot_id": stamp.snapshot_id,
        "sequence_number": stamp.sequence_number,
        "file_sequence_number": stamp.sequence_number,
        "partition_spec_id": shape.default_spec_id,
        "record_count": len(full),
        "referenced_file": leaf,
        "dv_added_positions": bitmap.encode(gone),
    }
    inline = bitmap.encode(full)
    if len(inline) <= policy.inline_max_bytes:
        return row | {"dv_inline_content": inline}, []
    location = stamp.name("dv", number) + ".puffin"
    stored = puffin.write([puffin.dv_blob(full, referenced_data_file=leaf)])
    row |= {
        "location": location,
        "file_size_in_bytes": len(stored.data),
        "dv_offset": stored.blobs[0].offset,
        "dv_size_in_bytes": stored.blobs[0].length,
    }
    return row, [NewFile(location=location, content=stored.data)]


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


def _summary(
    head: Head,
    prepared: Prepared,
    located: Located,
    live: Entries,
    after: Reshaped,
    shape: Shape,
) -> dict[str, str]:
    old, new = (
        set(root["location"].filter(is_content(root, *MANIFESTS)).to_pylist())
        for root in (live, after.root)
    )
    processed = sum(leaf.entries.num_rows for leaf in after.leaves)
    counts = (len(new - old), len(new & old), len(old - new), processed)
    return summarise(
        prepared.changes.operation,
        prepared.changes.added,
        located.facts,
        head.summary,
        manifests=dict(zip(TOLD_OF_LEAVES, counts, strict=True)),
        # Entries removed from leaves are not read, so their partitions are not known.
        changed_partitions=None
        if located.in_leaves
        else changed_partitions(
            concat([prepared.changes.added, only(live, located.in_root)]), shape
        ),
    )
