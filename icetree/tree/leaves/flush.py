"""Moving entries from the root to new leaves, when the root has more than it should.

Only EXISTING entries move, to leaves that are EXISTING too: the table does not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from icetree.spec.entry.entry import (
    DELETE_FILES,
    Content,
    Entries,
    Status,
    concat,
    has_status,
    is_content,
    is_data_file,
    is_live,
    only,
    with_columns,
)
from icetree.spec.schema.shape import Shape
from icetree.tree.draft import Stamp
from icetree.tree.leaf import NewLeaf, Reshaped, make_leaf, split
from icetree.tree.leaves.cluster import clustered
from icetree.tree.live import live_in_leaf
from icetree.tree.policy import Policy
from icetree.tree.reading import Reader, leaves_in

#: A root over its size is relieved only when at least this share of its entries can move:
#: otherwise it is leaves that fill it, and one more small leaf a commit would not help.
_WORTH_MOVING = 0.1


def flush(
    tree: Reshaped,
    removed: Mapping[str, BitMap],
    stamp: Stamp,
    shape: Shape,
    policy: Policy,
    reader: Reader,
    *,
    by_size: bool = False,
) -> Reshaped:
    """Return the tree with a lighter root, or the same tree when nothing should move.

    `removed` are the positions that manifest DVs, those of this commit too, remove from leaves.
    Data files and deletes have thresholds of their own; `by_size` moves both, whatever their
    number, because the encoded root was found too large.
    """
    root = tree.root
    existing = has_status(root, Status.EXISTING)
    data = pc.and_(existing, is_data_file(root))
    deletes = pc.and_(existing, is_content(root, *DELETE_FILES))
    if by_size:
        movable = pc.or_(data, deletes)
        if (pc.sum(movable).as_py() or 0) < max(1, _WORTH_MOVING * root.num_rows):
            return tree
    else:
        data = _if_over(root, data, policy.root_max_data_entries, Content.DATA)
        deletes = _if_over(root, deletes, policy.root_max_delete_entries, *DELETE_FILES)
    moving = pc.or_(data, deletes)
    if not pc.any(moving).as_py():
        return tree

    made: list[NewLeaf] = []

    def make(entries: Entries, content: Content, owner: str | None = None) -> None:
        for part in split(clustered(entries, shape), policy):
            location = stamp.name("f", len(tree.leaves) + len(made)) + ".parquet"
            made.append(
                make_leaf(
                    part,
                    content,
                    location,
                    shape,
                    status=Status.EXISTING,
                    referenced_file=owner,
                    key_bytes=policy.key_bytes,
                )
            )

    make(only(root, data), Content.DATA_MANIFEST)
    remaining = only(root, deletes)
    known = {leaf.file.location: leaf.entries for leaf in (*tree.leaves, *made)}
    for owner, owned in _by_owner(remaining, root, known, removed, policy, reader):
        make(owned, Content.DELETE_MANIFEST, owner)
    entries = [existing_entry(leaf.entry, stamp) for leaf in made]
    return tree.then(concat([only(root, pc.invert(moving)), *entries]), *made)


def existing_entry(leaf: Entries, stamp: Stamp) -> Entries:
    """Return the root entry of a leaf that only rearranges what the table had."""
    return with_columns(
        leaf,
        snapshot_id=stamp.snapshot_id,
        sequence_number=stamp.sequence_number,
        file_sequence_number=stamp.sequence_number,
    )


def _if_over(root: Entries, movable: pa.ChunkedArray, most: int, *contents: Content) -> pa.Array:
    live = pc.and_(is_live(root), is_content(root, *contents))
    over = (pc.sum(live).as_py() or 0) > most
    return movable if over else pa.repeat(pa.scalar(False), root.num_rows)


def _by_owner(
    deletes: Entries,
    root: Entries,
    unstored: dict[str, Entries],
    removed: Mapping[str, BitMap],
    policy: Policy,
    reader: Reader,
) -> list[tuple[str | None, Entries]]:
    """Part deletes by the data manifest that tracks their data files, None for the rest.

    Only DVs have an owner. A data manifest with few of them does not get a delete manifest of
    its own: its DVs join the unaffiliated ones.
    """
    groups: list[tuple[str | None, Entries]] = []
    rest = deletes
    for owner, locations in _data_leaves(root, unstored, removed, policy, reader):
        if rest.num_rows < max(1, policy.affinity_min_entries):
            break
        owned = pc.and_(
            is_content(rest, Content.POSITION_DELETES),
            pc.is_in(rest["referenced_file"], locations),
        )
        if (pc.sum(owned).as_py() or 0) >= max(1, policy.affinity_min_entries):
            groups.append((owner, only(rest, owned)))
            rest = only(rest, pc.invert(owned))
    if rest.num_rows:
        groups.append((None, rest))
    return groups


def _data_leaves(
    root: Entries,
    unstored: dict[str, Entries],
    removed: Mapping[str, BitMap],
    policy: Policy,
    reader: Reader,
) -> Iterator[tuple[str, pa.Array]]:
    """Yield each data manifest with the locations of its live entries, new ones first.

    A file may have gone from one manifest and come again in another: only there are its DVs at
    home.
    """
    for location, entries in unstored.items():
        if entries["content_type"][0].as_py() == Content.DATA:
            yield location, entries["location"].combine_chunks()
    stored = [
        leaf
        for leaf in leaves_in(only(root, has_status(root, Status.EXISTING)))
        if leaf.content_type == Content.DATA_MANIFEST and leaf.location not in unstored
    ]
    if len(stored) <= policy.affinity_max_leaves:
        for leaf in stored:
            entries = live_in_leaf(leaf, removed.get(leaf.location), reader, {"location"})
            yield leaf.location, entries["location"].combine_chunks()
