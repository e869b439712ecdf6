"""What a snapshot changed, by the names that the proposal's scenarios use."""

from __future__ import annotations

from typing import Any

from icetree.tree.plan.row_changes import CHANGE_TYPE, DELETE, INSERT
from tests.golden.drawing import Snapshot


def added(snapshot: Snapshot) -> list[str]:
    """Name the files that the snapshot added."""
    return snapshot.diff().added["location"].to_pylist()


def removed(snapshot: Snapshot) -> list[str]:
    """Name the files that the snapshot removed."""
    return snapshot.diff().removed["location"].to_pylist()


def removed_rows(snapshot: Snapshot) -> list[tuple[str, str | None, str | None]]:
    """Name (data file, its DV, the DV before) where rows went."""
    columns = ("location", "within_dv_location", "dv_location")
    return [tuple(row[name] for name in columns) for row in row_changes(snapshot, DELETE)]


def added_rows(snapshot: Snapshot) -> list[str]:
    """Name the data files whose live rows are new."""
    return [row["location"] for row in row_changes(snapshot, INSERT)]


def row_changes(snapshot: Snapshot, change_type: str) -> list[dict[str, Any]]:
    tasks = snapshot.row_tasks().tasks.to_pylist()
    return [row for row in tasks if row[CHANGE_TYPE] == change_type]


def leaves_read(snapshot: Snapshot) -> list[str]:
    """Name the leaves that finding the changes of the snapshot reads."""
    snapshot.reader.reads.clear()
    snapshot.diff()
    return snapshot.reader.reads
