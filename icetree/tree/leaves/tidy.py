"""Rewriting leaves that are worn or small, a bounded amount as part of a commit.

Only leaves that the commit itself does not touch are rewritten, and the results are EXISTING
with EXISTING entries only: the table does not change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import pyarrow.compute as pc
from pyroaring import BitMap

from icetree.spec.entry.entry import (
    MANIFESTS,
    Content,
    Entries,
    Status,
    concat,
    has_format,
    is_content,
    only,
)
from icetree.spec.schema.shape import Shape
from icetree.tree.draft import Stamp
from icetree.tree.leaf import Reshaped, entries_per_leaf, make_leaf
from icetree.tree.leaves.cluster import clustered
from icetree.tree.leaves.exchange import exchanged, existing_in
from icetree.tree.leaves.flush import existing_entry
from icetree.tree.policy import Policy
from icetree.tree.reading import Leaf, Reader, leaves_in

#: A leaf is small when it holds less than this share of what it could.
_SMALL = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A leaf that may be rewritten."""

    leaf: Leaf
    live: int
    removed: BitMap | None


def compact(
    root: Entries,
    manifest_dvs: Mapping[str, BitMap],
    touched: Collection[str],
    stamp: Stamp,
    shape: Shape,
    policy: Policy,
    reader: Reader,
) -> Reshaped:
    """Return the root with worn and small leaves rewritten, within the policy's budget.

    `manifest_dvs` are the manifest DVs as they were before the commit, `touched` the leaves whose
    manifest DV the commit changes.
    """
    tree = Reshaped(root=root)
    budget = policy.compact_max_entries
    for content in MANIFESTS:
        # Data manifests first: delete manifests follow the ones they are affiliated with.
        candidates = _candidates(tree, content, manifest_dvs, touched, shape, policy)
        for group in _groups(candidates, entries_per_leaf(root, policy), policy):
            budget -= sum(each.live for each in group)
            if budget < 0:
                return tree
            tree = _rewrite(tree, group, stamp, shape, policy, reader)
    return tree


def _candidates(
    tree: Reshaped,
    content: Content,
    manifest_dvs: Mapping[str, BitMap],
    touched: Collection[str],
    shape: Shape,
    policy: Policy,
) -> list[_Candidate]:
    """Return the leaves that may be rewritten, so that those close to each other merge."""
    root = tree.root
    fresh = {leaf.file.location for leaf in tree.leaves}
    # Avro leaves wait for maintenance: they may hold what a columnar leaf may not.
    columnar = has_format(root, "parquet")
    mask = pc.and_(is_content(root, content), columnar)
    # Most commits have nothing to rewrite, and should not pay for putting leaves in order.
    names = root["location"].filter(mask).to_pylist()
    if len(names) < _least(policy) and manifest_dvs.keys().isdisjoint(names):
        return []
    rows = clustered(only(root, mask), shape)
    alive = pc.add(rows["added_files_count"], rows["existing_files_count"]).to_pylist()
    return [
        _Candidate(leaf=leaf, live=_at_most(leaf, count, gone), removed=gone)
        for leaf, count in zip(leaves_in(rows), alive, strict=True)
        if leaf.location not in touched and leaf.location not in fresh
        for gone in [manifest_dvs.get(leaf.location)]
        # One that others emptied while it was made anew is left to the next commit, which drops it.
        if _at_most(leaf, count, gone)
    ]


def _at_most(leaf: Leaf, alive: int, gone: BitMap | None) -> int:
    """Return how many live entries a leaf can have left.

    One that was DELETED already may be among those that its manifest DV names, or not.
    """
    return min(alive, leaf.record_count - len(gone or ()))


def _groups(candidates: list[_Candidate], most: int, policy: Policy) -> Iterator[list[_Candidate]]:
    """Yield leaves to be rewritten into one, each group within what a leaf may hold."""
    by_owner: dict[str | None, list[_Candidate]] = {}
    for each in candidates:
        by_owner.setdefault(each.leaf.referenced_file, []).append(each)
    for peers in by_owner.values():
        small = [each for each in peers if each.live < _SMALL * most]
        merge = len(small) >= _least(policy)
        chosen = [each for each in peers if _is_worn(each, policy) or (merge and each in small)]
        group: list[_Candidate] = []
        for each in chosen:
            if group and sum(one.live for one in group) + each.live > most:
                yield from _worth(group, policy)
                group = []
            group.append(each)
        yield from _worth(group, policy)


def _least(policy: Policy) -> int:
    """Return how many small leaves are worth merging."""
    return max(2, policy.compact_min_leaves)


def _worth(group: list[_Candidate], policy: Policy) -> Iterator[list[_Candidate]]:
    if len(group) > 1 or any(_is_worn(each, policy) for each in group):
        yield group


def _is_worn(candidate: _Candidate, policy: Policy) -> bool:
    removed = len(candidate.removed or ())
    return removed * 100 > policy.compact_removed_percent * (candidate.live + removed)


def _rewrite(
    tree: Reshaped,
    group: list[_Candidate],
    stamp: Stamp,
    shape: Shape,
    policy: Policy,
    reader: Reader,
) -> Reshaped:
    entries = concat(existing_in(each.leaf, each.removed, reader) for each in group)
    first = group[0].leaf
    location = stamp.name("c", len(tree.leaves)) + ".parquet"
    made = make_leaf(
        clustered(entries, shape),
        Content(first.content_type),
        location,
        shape,
        status=Status.EXISTING,
        referenced_file=first.referenced_file,
        key_bytes=policy.key_bytes,
    )
    heirs = {each.leaf.location: location for each in group}
    return tree.then(exchanged(tree.root, heirs, [existing_entry(made.entry, stamp)]), made)
