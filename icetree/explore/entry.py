"""One entry as it stands in its manifest, with nothing put in other words."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import NotFound
from icetree.explore.plain import plain
from icetree.spec.entry import stats
from icetree.spec.entry.entry import (
    BASE_COLUMNS,
    POSITION,
    Content,
    Entries,
    Status,
    is_live,
    is_named,
    only,
)
from icetree.table.table import Table
from icetree.table.told import KEYS
from icetree.tree.reading import leaves_in

#: All that an entry says, but for the key of its file.
_SHOWN: Final = tuple(name for name in (*BASE_COLUMNS, POSITION) if name not in KEYS)


def entry(
    table: Table, *, file_path: str, at: str | None = None, leaf: str | None = None
) -> dict[str, Any]:
    """Return the entries of a file: in the root of a snapshot, or in the leaf that is named."""
    snapshot, shape = table.snapshot(at), table.metadata.shape()
    root = table.files.root(snapshot, shape, keep=True)
    within = root if leaf is None else _leaf(table, root, leaf)
    refers = pc.fill_null(pc.equal(within["referenced_file"], pa.scalar(file_path)), False)
    found = only(within, pc.or_(is_named(within, file_path), refers))
    if not found.num_rows:
        raise NotFound(f"nothing here is named {file_path}")
    return {
        "within": leaf or (snapshot.root_file if snapshot else "root"),
        "entries": [_told(each, found, shape.names) for each in found.slice(0, 20).to_pylist()],
    }


def _leaf(table: Table, root: Entries, leaf: str) -> Entries:
    named = only(root, is_named(root, leaf))
    found = leaves_in(only(named, is_live(named)))
    if not found:
        raise NotFound(f"{leaf} is no leaf of this snapshot")
    return table.files.reader(table.metadata.shape()).leaf(found[0])


def _told(row: dict[str, Any], entries: Entries, names: Any) -> dict[str, Any]:
    """Return what an entry says: fields that are null are left out, stats stand by their column."""
    told: dict[str, Any] = {name: row[name] for name in _SHOWN if row.get(name) is not None}
    told["content_type"] = f"{row['content_type']} ({Content(row['content_type']).name})"
    told["status"] = f"{row['status']} ({Status(row['status']).name})"
    by_column = {}
    for id in stats.fields_in(entries):
        known = {stat: row.get(stats.column(id, stat)) for stat in stats.STATS}
        known = {stat: value for stat, value in known.items() if value is not None}
        if known:
            by_column[f"{names.get(id, '?')} (field {id})"] = known
    found: dict[str, Any] = plain(told | {"stats": by_column})
    return found
