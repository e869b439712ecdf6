"""What each commit of a line wrote, beside what v3 would have written for the same changes."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import IcetreeError
from icetree.explore.cost import Cost
from icetree.explore.history import line_upto
from icetree.explore.v3 import V3
from icetree.explore.v3_sizes import sizes
from icetree.spec.entry.entry import (
    MANIFESTS,
    Content,
    Status,
    has_status,
    is_content,
    is_live,
    only,
)
from icetree.spec.location import absolute
from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.table import Table
from icetree.tree.diff.diff import Diff
from icetree.tree.live import live_files

#: Commits that are told, the newest.
_COMMITS: Final = 400
#: v3 is worked out while commits have changed so many files at most.
_FILES: Final = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    """What a commit has of metadata.json: a file or none, and how large."""

    files: int
    size_bytes: int
    is_exact: bool


def costs(table: Table, *, at: str | None = None) -> dict[str, Any]:
    """Return the metadata files and bytes of each commit up to a snapshot, the oldest first.

    Commits that came in one metadata.json have it together: it is told with the last of them. A metadata.json that is not there any more is taken to have been as large as the next that is
    (`is_exact` is false). v3's part is an estimate, in favour of v3; where there is none,
    `v3_left` says why.
    """
    last = table.snapshot(at)
    line = [] if last is None else line_upto(table, last.snapshot_id, _COMMITS)
    versions = _versions(table, line)
    own = _own(table, line, versions)
    estimated, left = _as_v3(table, line, versions)
    return {
        "commits": [
            {
                "snapshot_id": str(each.snapshot_id),
                "files": cost.files,
                "size_bytes": cost.size_bytes,
                "is_exact": version.is_exact,
                "v3_files": None if then is None else then.files,
                "v3_size_bytes": None if then is None else then.size_bytes,
            }
            for each, cost, version, then in zip(line, own, versions, estimated, strict=True)
        ],
        "v3_left": left,
    }


def _own(table: Table, line: list[Snapshot], versions: list[_Version]) -> list[Cost]:
    found = []
    for snapshot, version in zip(line, versions, strict=True):
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
                files=version.files + 1 + leaves.num_rows + bitmaps,
                size_bytes=version.size_bytes
                + table.files.root_size_bytes(snapshot)
                + (pc.sum(leaves["file_size_in_bytes"]).as_py() or 0)
                + (pc.sum(vectors["dv_size_in_bytes"]).as_py() or 0),
            )
        )
    return found


def _versions(table: Table, line: list[Snapshot]) -> list[_Version]:
    """Return what each commit has of metadata.json.

    A version of the table holds what was committed since the one before. Where the log of versions
    does not reach, each commit is taken to have made one.
    """
    files = {each.timestamp_ms: each.metadata_file for each in table.metadata.metadata_log}
    files[table.metadata.last_updated_ms] = table.state.metadata_location
    times = sorted(files)
    known: list[_Version] = []
    last, told = 0, None
    for snapshot in reversed(line):
        at = bisect_left(times, snapshot.timestamp_ms)
        is_logged = at < len(times) and (at > 0 or times[at] == snapshot.timestamp_ms)
        if is_logged and at == told:
            known.append(_Version(files=0, size_bytes=0, is_exact=True))
            continue
        told = at if is_logged else None
        size = _size(table, files[times[at]]) if is_logged else None
        last = last if size is None else size
        known.append(_Version(files=1, size_bytes=last, is_exact=size is not None))
    known.reverse()
    first = next((each.size_bytes for each in known if each.files and each.is_exact), 0)
    return [replace(each, size_bytes=each.size_bytes or each.files * first) for each in known]


def _size(table: Table, file: str) -> int | None:
    try:
        return table.files.store.size(absolute(file, table.location))
    except IcetreeError:
        return None


def _as_v3(
    table: Table, line: list[Snapshot], versions: list[_Version]
) -> tuple[list[Cost | None], str | None]:
    nothing: list[Cost | None] = [None] * len(line)
    if not line:
        return nothing, None
    files = sum(map(_changed_files, line))
    if files > _FILES:
        return nothing, f"these commits changed {files:,} files: v3 is told up to {_FILES:,}"
    shape, then = table.metadata.shape(), V3()
    measured = sizes(table)
    found: list[Cost | None] = []
    for snapshot, version in zip(line, versions, strict=True):
        if not found and snapshot.parent_snapshot_id is not None:
            # What was before is not there any more: v3 begins with all of it, in few manifests.
            root = table.files.root(snapshot, shape)
            then.commit(Diff(added=live_files(root, table.files.reader(shape))), merges=True)
            then.snapshots = 1
            found.append(None)
            continue
        changed = table.files.changed(snapshot, shape)
        found.append(then.cost(changed, measured, merges=True, versions=version.files))
    return found, None


def _changed_files(snapshot: Snapshot) -> int:
    names = ("added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files")
    told = [(snapshot.summary or {}).get(name, "0") for name in names]
    return sum(int(each) for each in told if each.isascii() and each.isdigit() and len(each) < 16)
