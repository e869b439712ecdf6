"""What one v1-v3 snapshot changed, read from only those manifests that it wrote."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.entry.entry import Entries, Status, concat, has_status, only
from icetree.tree.diff.diff import Diff
from icetree.tree.live import placed
from icetree.tree.reading import Reader, leaves_in


def legacy_diff(root: Entries, reader: Reader, *, snapshot_id: int) -> Diff:
    """Return the files that a snapshot with a manifest list added and removed.

    `root` is the list as root entries. Manifests that an earlier snapshot wrote say nothing of
    this one; in lists of v1 that do not say who wrote a manifest, its entries tell.
    """
    nothing = Diff()
    added, removed = [nothing.added], [nothing.removed]
    for leaf in leaves_in(root):
        if leaf.snapshot_id not in (snapshot_id, None):
            continue
        entries = placed(reader.leaf(leaf), leaf=leaf.location)
        # A manifest may carry over what others did before it.
        own = pc.equal(entries["snapshot_id"], pa.scalar(snapshot_id, pa.int64()))
        for status, found in ((Status.ADDED, added), (Status.DELETED, removed)):
            found.append(only(entries, pc.and_(own, has_status(entries, status))))
    return Diff(
        added=concat([added[0], *(each for each in added[1:] if each.num_rows)]),
        removed=concat([removed[0], *(each for each in removed[1:] if each.num_rows)]),
    )
