"""What one snapshot changed: the files that came and went, and the first of its rows."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from icetree.errors import IcetreeError, NotFound
from icetree.explore.plain import first_plain, plain
from icetree.explore.rows import first_rows
from icetree.table.changes.changes import ChangeRange
from icetree.table.table import Table
from icetree.table.told import told

#: Files, and rows, that are told one by one.
MOST: Final = 100
_FACTS: Final = (
    *("content_type", "location", "file_format", "referenced_file", "record_count"),
    *("file_size_in_bytes", "leaf", "position"),
)


def feed(table: Table, *, at: str, rows: str | None = None) -> dict[str, Any]:
    """Return the changes of the snapshot at a point; with `rows`, its first changed rows too.

    Rows are not told where the parent has expired, or a file is gone: `rows_left` says why.
    """
    snapshot = table.snapshot(at)
    if snapshot is None:
        raise NotFound(f"table {table.name} has no snapshot yet")
    changed = table.files.changed(snapshot, table.metadata.shape())
    found: dict[str, Any] = {
        "snapshot_id": str(snapshot.snapshot_id),
        "added_count": changed.added.num_rows,
        "removed_count": changed.removed.num_rows,
        "files": [
            {"change": change, **plain(each)}
            for change, entries in (("added", changed.added), ("removed", changed.removed))
            for each in told(entries.slice(0, MOST), _FACTS, table.location).to_pylist()
        ],
        "rows": [],
        "columns": [],
        "rows_left": None,
    }
    if rows:
        try:
            first = _first_rows(table, snapshot.parent_snapshot_id, snapshot.snapshot_id)
        except (IcetreeError, pa.ArrowException) as error:
            found["rows_left"] = str(error)
        else:
            found["columns"] = first.column_names
            found["rows"] = first_plain(first)
    return found


def _first_rows(table: Table, since: int | None, upto: int) -> pa.Table:
    range_ = ChangeRange(table, since=since, upto=upto)
    return pa.Table.from_batches(first_rows(range_.to_batches(), MOST), range_.arrow_schema)
