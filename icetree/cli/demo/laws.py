"""What must hold of any table, shown to hold of the demo's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from icetree.cli.demo.table import DAY_LOWER, FIRST_DAY, SHAPE, DemoTable, live_keys, root_file
from icetree.filters.filter import parse_filter
from icetree.spec.entry.entry import is_data_file
from icetree.tree.check.check import check
from icetree.tree.diff.diff import diff
from icetree.tree.live import live_files
from icetree.tree.plan.plan import plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """A sentence, whether it holds, and what was looked at to say so."""

    says: str
    seen: str
    holds: bool


def laws(table: DemoTable) -> Iterator[Law]:
    """Try every law on the table, from its files."""
    yield _sound(table)
    yield _lasting(table)
    yield _told_by_the_root(table)
    yield _light(table)
    yield _pruned(table)


def _sound(table: DemoTable) -> Law:
    findings, entries = 0, 0
    for commit in table.commits:
        root = table.root(commit.number)
        findings += len(
            check(
                root,
                table.reader,
                SHAPE,
                root_file=root_file(commit.number),
                snapshot_id=commit.number,
                sequence_number=commit.number,
                next_row_id=commit.head.next_row_id,
            )
        )
        entries += root.num_rows
    return Law(
        says="Every snapshot keeps every rule of the format.",
        seen=f"{len(table.commits)} trees, {entries} root entries: {findings} findings",
        holds=findings == 0,
    )


def _lasting(table: DemoTable) -> Law:
    same = sum(
        live_keys(live_files(table.root(commit.number), table.reader)).equals(commit.live)
        for commit in table.commits
    )
    return Law(
        says="Every old snapshot still reads as on the day it was made.",
        seen=f"{same} of {len(table.commits)} equal, read again from disk",
        holds=same == len(table.commits),
    )


def _told_by_the_root(table: DemoTable) -> Law:
    """Compare what a root says of its change with what the whole trees before and after say."""
    told, files = 0, 0
    before = live_keys(live_files(pa.Table.from_batches([], table.head.root.schema), table.reader))
    for commit in table.commits:
        found = diff(table.root(commit.number), table.reader)
        added, removed = live_keys(found.added), live_keys(found.removed)
        told += added.equals(_minus(commit.live, before)) and removed.equals(
            _minus(before, commit.live)
        )
        files += added.num_rows + removed.num_rows
        before = commit.live
    return Law(
        says="The root alone tells what its snapshot changed.",
        seen=f"{told} of {len(table.commits)} diffs equal before against after, {files} files",
        holds=told == len(table.commits),
    )


def _minus(these: pa.Table, those: pa.Table) -> pa.Table:
    gone = pc.is_in(these["location"], value_set=those["location"].combine_chunks())
    return these.filter(pc.invert(gone)).combine_chunks()


def _light(table: DemoTable) -> Law:
    """Removing files writes a root and nothing else, however large the leaves are."""
    removals = [
        commit
        for commit in table.commits
        if commit.changes.removed.num_rows and not commit.changes.added.num_rows
    ]
    written = sum(len(commit.written) for commit in removals)
    gone = sum(commit.changes.removed.num_rows for commit in removals)
    return Law(
        says="Removing files rewrites no leaf.",
        seen=f"{gone} files gone in {len(removals)} commits, which wrote {written} roots only",
        holds=written == len(removals) > 0,
    )


def _pruned(table: DemoTable) -> Law:
    first, last = FIRST_DAY + timedelta(days=21), FIRST_DAY + timedelta(days=23)
    days = parse_filter(f"ts >= '{first}T00:00:00' and ts < '{last}T00:00:00'")
    found = plan(table.root(len(table.commits)), table.reader, SHAPE, days)
    files = live_files(table.head.root, table.reader)
    data = files.filter(is_data_file(files))
    day = data[DAY_LOWER]
    inside = pc.and_(pc.greater_equal(day, pa.scalar(first)), pc.less(day, pa.scalar(last)))
    wanted = data["location"].filter(inside).to_pylist()
    metrics = found.metrics
    return Law(
        says="A filter on two days reads only the leaves that have them.",
        seen=f"{metrics.data_leaves_read} of {metrics.data_leaves_total} data leaves read, "
        f"{found.tasks.num_rows} of {data.num_rows} files planned, {len(wanted)} have them",
        holds=sorted(found.tasks["location"].to_pylist()) == sorted(wanted)
        and metrics.data_leaves_read < metrics.data_leaves_total,
    )
