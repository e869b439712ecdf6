"""One entry as it stands in its manifest, with nothing put in other words."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import NotFound
from icetree.explore.named import leaf_named, stored, told
from icetree.explore.plain import plain
from icetree.spec.entry import stats
from icetree.spec.entry.entry import (
    BASE_COLUMNS,
    POSITION,
    Content,
    Entries,
    Status,
    is_named,
    only,
)
from icetree.table.table import Table
from icetree.table.told import KEYS

#: All that an entry says, but for the key of its file.
_SHOWN: Final = tuple(name for name in (*BASE_COLUMNS, POSITION) if name not in KEYS)


def entry(
    table: Table, *, file_path: str, at: str | None = None, leaf: str | None = None
) -> dict[str, Any]:
    """Return the entries of a file: in the root of a snapshot, or in the leaf that is named."""
    snapshot, shape = table.snapshot(at), table.metadata.shape()
    within = table.files.root(snapshot, shape, keep=True)
    if leaf is not None:
        within = table.files.reader(shape).leaf(leaf_named(table, within, leaf))
    name = stored(table, file_path)
    refers = pc.fill_null(pc.equal(within["referenced_file"], pa.scalar(name)), False)
    found = only(within, pc.or_(is_named(within, name), refers))
    if not found.num_rows:
        raise NotFound(f"nothing here is named {file_path}")
    return {
        "within": told(table, leaf or (snapshot.root_file if snapshot else "root")),
        "entries": [
            _as_it_stands(each, found, shape.names) for each in found.slice(0, 20).to_pylist()
        ],
    }


def _as_it_stands(row: dict[str, Any], entries: Entries, names: Any) -> dict[str, Any]:
    """Return what an entry says: fields that are null are left out, stats stand by their column."""
    found: dict[str, Any] = {name: row[name] for name in _SHOWN if row.get(name) is not None}
    found["content_type"] = f"{row['content_type']} ({Content(row['content_type']).name})"
    found["status"] = f"{row['status']} ({Status(row['status']).name})"
    by_column = {}
    for id in stats.fields_in(entries):
        known = {stat: row.get(stats.column(id, stat)) for stat in stats.STATS}
        known = {stat: value for stat, value in known.items() if value is not None}
        if known:
            by_column[f"{names.get(id, '?')} (field {id})"] = known
    shown: dict[str, Any] = plain(found | {"stats": by_column})
    return shown
