"""What each commit of a line wrote, beside what v3 would have written for the same changes."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import IcetreeError
from icetree.explore.cost import Cost
from icetree.explore.history import line_of
from icetree.explore.v3 import V3
from icetree.explore.v3_sizes import sizes
from icetree.spec.entry import (
    MANIFESTS,
    Content,
    Status,
    has_status,
    is_content,
    is_live,
    only,
)
from icetree.spec.location import absolute
from icetree.spec.snapshot import MAIN, Snapshot
from icetree.table.table import Table
from icetree.tree.diff import Diff
from icetree.tree.live import live_files

#: Commits that are told, the newest.
_COMMITS: Final = 400
#: v3 is worked out while commits have changed so many files at most.
_FILES: Final = 50_000


def costs(table: Table, *, branch: str | None = None) -> dict[str, Any]:
    """Return the metadata files and bytes of each commit, the oldest first.

    A metadata.json that is not there any more is taken to have been as large as the next that is
    (`is_exact` is false). v3's part is an estimate, in favour of v3; where there is none,
    `v3_left` says why.
    """
    line = line_of(table, MAIN if branch is None else branch)[-_COMMITS:]
    own, exact = _own(table, line)
    estimated, left = _as_v3(table, line)
    return {
        "commits": [
            {
                "snapshot_id": str(each.snapshot_id),
                "files": cost.files,
                "size_bytes": cost.size_bytes,
                "is_exact": is_exact,
                "v3_files": None if then is None else then.files,
                "v3_size_bytes": None if then is None else then.size_bytes,
            }
            for each, cost, is_exact, then in zip(line, own, exact, estimated, strict=True)
        ],
        "v3_left": left,
    }


def _own(table: Table, line: list[Snapshot]) -> tuple[list[Cost], list[bool]]:
    versions = _versions(table, line)
    found = []
    for snapshot, (size, _) in zip(line, versions, strict=True):
        # Metadata.json, the root, and what the root says is new: leaves, and bitmaps of their own.
        root = table.files.bare_root(snapshot, table.metadata.shape())
        live = only(root, is_live(root))
        made = only(live, pc.equal(live["snapshot_id"], pa.scalar(snapshot.snapshot_id)))
        leaves = only(made, is_content(made, *MANIFESTS))
        vectors = only(live, is_content(live, Content.MANIFEST_DV))
        vectors = only(vectors, has_status(vectors, Status.ADDED))
        bitmaps = len(pc.unique(vectors["location"]).drop_null())
        found.append(
            Cost(
                files=2 + leaves.num_rows + bitmaps,
                size_bytes=size
                + table.files.root_size_bytes(snapshot)
                + (pc.sum(leaves["file_size_in_bytes"]).as_py() or 0)
                + (pc.sum(vectors["dv_size_in_bytes"]).as_py() or 0),
            )
        )
    return found, [is_exact for _, is_exact in versions]


def _versions(table: Table, line: list[Snapshot]) -> list[tuple[int, bool]]:
    """Return how large the metadata.json of each commit was, and whether that is known."""
    files = {each.timestamp_ms: each.metadata_file for each in table.metadata.metadata_log}
    files[table.metadata.last_updated_ms] = table.state.metadata_location
    known: list[tuple[int, bool]] = []
    last = 0
    for snapshot in reversed(line):
        at = files.get(snapshot.timestamp_ms)
        size = None if at is None else _size(table, at)
        last = last if size is None else size
        known.append((last, size is not None))
    known.reverse()
    first = next((size for size, is_exact in known if is_exact), 0)
    return [(size or first, is_exact) for size, is_exact in known]


def _size(table: Table, file: str) -> int | None:
    try:
        return table.files.store.size(absolute(file, table.location))
    except IcetreeError:
        return None


def _as_v3(table: Table, line: list[Snapshot]) -> tuple[list[Cost | None], str | None]:
    nothing: list[Cost | None] = [None] * len(line)
    if not line:
        return nothing, None
    changed = sum(map(_changed_files, line))
    if changed > _FILES:
        return nothing, f"these commits changed {changed:,} files: v3 is told up to {_FILES:,}"
    shape, then = table.metadata.shape(), V3()
    measured = sizes(table)
    found: list[Cost | None] = []
    for snapshot in line:
        if not found and snapshot.parent_snapshot_id is not None:
            # What was before is not there any more: v3 begins with all of it, in few manifests.
            root = table.files.root(snapshot, shape)
            then.commit(Diff(added=live_files(root, table.files.reader(shape))), merges=True)
            then.snapshots = 1
            found.append(None)
            continue
        found.append(then.cost(table.files.changed(snapshot, shape), measured, merges=True))
    return found, None


def _changed_files(snapshot: Snapshot) -> int:
    names = ("added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files")
    told = [(snapshot.summary or {}).get(name, "0") for name in names]
    return sum(int(each) for each in told if each.isascii() and each.isdigit() and len(each) < 16)
