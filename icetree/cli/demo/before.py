"""What the same commits would write in a v3 table: counted, not measured.

An append writes a manifest and a manifest list. A removal rewrites each manifest that tracks a
removed file, and the list. Manifests are not merged. metadata.json, which every commit writes in
v3 and v4 alike, is left out on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icetree.cli.demo.table import Commit
from icetree.spec.entry import Content

_TRACKED = pa.schema([pa.field("location", pa.string()), pa.field("manifest", pa.int64())])


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Metadata files written over all commits, and those a scan of the last snapshot opens."""

    written: int
    opened: int


def v3(commits: Iterable[Commit]) -> Count:
    """Count for a v3 table."""
    tracked, live = _TRACKED.empty_table(), _TRACKED.empty_table()["location"]
    written = made = 0
    for commit in commits:
        now = commit.live["location"].combine_chunks()
        gone = live.filter(pc.invert(pc.is_in(live, value_set=now)))
        holds = pc.is_in(tracked["location"], value_set=gone.combine_chunks())
        rewritten = len(pc.unique(tracked["manifest"].filter(holds)))
        tracked = tracked.filter(pc.invert(holds))
        fresh = commit.live.filter(
            pc.invert(pc.is_in(commit.live["location"], value_set=live.combine_chunks()))
        )
        is_data = pc.equal(fresh["content_type"], int(Content.DATA))
        new = 0
        for part in (fresh.filter(is_data), fresh.filter(pc.invert(is_data))):
            if part.num_rows:
                new += 1
                number = pa.repeat(pa.scalar(made + new, pa.int64()), part.num_rows)
                rows = pa.table([part["location"], number], schema=_TRACKED)
                tracked = pa.concat_tables([tracked, rows])
        made += new
        written += new + rewritten + 1
        live = commit.live["location"]
    return Count(written=written, opened=1 + len(pc.unique(tracked["manifest"])))


def v4(commits: Iterable[Commit], *, leaves: int) -> Count:
    """Count what was written, and what a scan of a root with so many leaves opens."""
    return Count(written=sum(len(commit.written) for commit in commits), opened=1 + leaves)
