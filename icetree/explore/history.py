"""A table's snapshots and what names them: the line of a branch, and the graph of all."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from icetree.explore.axis import axes, axis_of
from icetree.explore.plain import moment, plain
from icetree.spec.edit.refs import ancestors
from icetree.spec.metadata.snapshot import MAIN, Snapshot
from icetree.table.table import Table

#: Snapshots of a line, and of the graph, that are told: the newest.
MOST: Final = 1_000


def history(table: Table, *, at: str | None = None) -> dict[str, Any]:
    """Return what a page needs first: the table, its snapshots, branches and tags, and its axes.

    `line` are the snapshots up to a point, such as a branch, the oldest first; `snapshots` are those
    of all of them.
    """
    metadata, shape = table.metadata, table.metadata.shape()
    last = table.snapshot(at)
    line = [] if last is None else line_upto(table, last.snapshot_id, MOST)
    every = list(islice(table.history(), MOST))
    known = {each.snapshot_id for each in every}
    every += [each for each in line if each.snapshot_id not in known]
    default = axis_of(shape, None)
    return {
        "table": str(table.name),
        "location": table.location,
        "format_version": metadata.format_version,
        "partition_by": list(table.spec),
        "order_by": list(table.sort_order),
        "columns": [
            {"name": field.name, "type": str(field.field_type)} for field in shape.schema.fields
        ],
        "axes": [{"name": each.name, "kind": each.kind} for each in axes(shape)],
        "axis": None if default is None else default.name,
        "at": MAIN if at is None else at,
        "refs": [
            {"name": name, "type": ref.type, "snapshot_id": str(ref.snapshot_id)}
            for name, ref in sorted(metadata.refs.items())
        ],
        "line": [str(each.snapshot_id) for each in line],
        "snapshots": [told(each) for each in every],
        "snapshot_count": len(metadata.snapshots) + sum(p.count for p in metadata.snapshot_pages),
    }


def line_upto(table: Table, snapshot_id: int, most: int) -> list[Snapshot]:
    """Return a snapshot and so many in all of those before it, the oldest first."""
    found = ancestors(table.metadata, snapshot_id, table.files.page)
    return list(islice(found, most))[::-1]


def told(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot as a page shows it."""
    parent = snapshot.parent_snapshot_id
    summary = {name: text for name, text in (snapshot.summary or {}).items() if name != "operation"}
    return {
        "snapshot_id": str(snapshot.snapshot_id),
        "parent_id": None if parent is None else str(parent),
        "sequence_number": snapshot.sequence_number,
        "committed_at": moment(snapshot.timestamp_ms),
        "operation": snapshot.operation,
        "summary": plain(summary),
    }
