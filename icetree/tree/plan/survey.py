"""What the root alone tells of a scan: which files, leaves and deletes may matter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icetree.spec.entry.entry import BASE_COLUMNS, DELETE_FILES, Content, Entries, is_live, only
from icetree.spec.schema.shape import Shape
from icetree.tree.plan.delete_stats import judged
from icetree.tree.plan.tasks import Metrics
from icetree.tree.prune.predicates import Predicate
from icetree.tree.prune.prune import may_match
from icetree.tree.reading import LEAF_COLUMNS, Leaf, leaves_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What the root alone tells: files and leaves that may match, and every delete in it."""

    files: Entries
    deletes: Entries
    data_leaves: list[Leaf]
    delete_leaves: list[Leaf]
    metrics: Metrics


def survey(root: Entries, predicate: Predicate, shape: Shape, *, every_row: bool) -> Survey:
    """Return what may matter to rows that match; with `every_row`, every delete may."""
    content = np.where(is_live(root).to_numpy(), root["content_type"].to_numpy(), -1)
    matches = may_match(root, predicate).to_numpy(zero_copy_only=False)
    if every_row:
        matches = matches | np.isin(content, (*DELETE_FILES, Content.DELETE_MANIFEST))
    elif predicate.conjuncts:
        matches = matches | _may_delete(root, content, predicate, shape)
    counts = np.bincount(content[content >= 0], minlength=len(Content))
    found = np.where(matches, content, -1)

    def matching(entries: Entries, *contents: Content) -> Entries:
        wanted = np.logical_or.reduce([found == each for each in contents])
        return only(entries, pa.array(wanted))

    files, deletes = matching(root, Content.DATA), matching(root, *DELETE_FILES)
    # What a root tells of a leaf, its stats aside: few columns are filtered faster than many.
    leaves = root.select(LEAF_COLUMNS)
    data_leaves = leaves_in(matching(leaves, Content.DATA_MANIFEST))
    delete_leaves = leaves_in(matching(leaves, Content.DELETE_MANIFEST))
    if files.num_rows or data_leaves:
        delete_leaves = _relevant(delete_leaves, data_leaves)
    else:
        delete_leaves, deletes = [], deletes.slice(0, 0)
    data_total = int(counts[Content.DATA_MANIFEST])
    delete_total = int(counts[Content.DELETE_MANIFEST])
    kept = files.num_rows + deletes.num_rows + len(data_leaves) + len(delete_leaves)
    return Survey(
        files=files,
        deletes=deletes,
        data_leaves=data_leaves,
        delete_leaves=delete_leaves,
        metrics=Metrics(
            data_leaves_total=data_total,
            data_leaves_read=len(data_leaves),
            data_leaves_skipped=data_total - len(data_leaves),
            delete_leaves_total=delete_total,
            delete_leaves_read=len(delete_leaves),
            delete_leaves_skipped=delete_total - len(delete_leaves),
            root_entries_scanned=int(counts.sum()),
            root_entries_skipped=int(counts.sum() - counts[Content.MANIFEST_DV]) - kept,
        ),
    )


def _may_delete(
    root: Entries, content: npt.NDArray[np.int32], predicate: Predicate, shape: Shape
) -> npt.NDArray[np.bool_]:
    """Tell which entries may delete rows that match, though their stats seem to say otherwise."""
    found = np.zeros(len(content), np.bool_)
    at = np.flatnonzero(np.isin(content, (Content.EQUALITY_DELETES, Content.DELETE_MANIFEST)))
    if len(at):
        few = root.select([*BASE_COLUMNS, *(predicate.columns & set(root.column_names))])
        found[at] = may_match(judged(few.take(pa.array(at)), shape), predicate)
    return found


def _relevant(delete_leaves: list[Leaf], data_leaves: list[Leaf]) -> list[Leaf]:
    """Return the delete manifests that are affiliated with no leaf, or with one of these."""
    read = {leaf.location for leaf in data_leaves}
    return [
        leaf
        for leaf in delete_leaves
        if leaf.referenced_file is None or leaf.referenced_file in read
    ]
