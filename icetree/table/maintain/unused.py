"""Forgetting schemas, partition specs, sort orders and expressions that only expired snapshots used."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from icetree.errors import CommitConflict
from icetree.spec.edit.unused import Used, unused
from icetree.spec.entry.entry import Entries, is_live
from icetree.spec.metadata.pages import history
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.metadata.update import Update
from icetree.tree.reading import leaves_in

if TYPE_CHECKING:
    from icetree.table.table import Table

#: How often it is looked anew what is in use, when others commit meanwhile.
_TRIES: Final = 5
_COLUMNS: Final = ("partition_spec_id", "sort_order_id", "equality_ids")


def forget_unused(table: Table) -> tuple[str, ...]:
    """Take away what nothing needs, and return its names; nothing where others commit all the time."""
    for attempt in range(_TRIES):
        every = [*history(table.refresh().metadata, table.files.page)]
        updates = unused(table.metadata, used_by(table, every))
        if not updates:
            return ()
        transaction = table.transaction()
        transaction.update_metadata(*updates)
        transaction.rely_on(*facts_of_unused(table))
        try:
            table.state = transaction.commit().state
        except CommitConflict:
            if attempt == _TRIES - 1:
                return ()
        else:
            return names_of(updates)
    return ()


def facts_of_unused(table: Table) -> tuple[str, ...]:
    """Return what it depends on that something is unused: a snapshot that comes in between may use it."""
    refs = (f"ref {name}" for name in table.refs)
    layout = ("current schema", "default partition spec", "default sort order")
    return ("last sequence number", *layout, *refs)


def names_of(updates: Collection[Update]) -> tuple[str, ...]:
    """Return what updates take away, in words."""
    words = {
        "spec_ids": "partition spec",
        "expr_ids": "expression",
        "sort_order_ids": "sort order",
        "schema_ids": "schema",
    }
    return tuple(
        f"{word} {id}"
        for each in updates
        for name, word in words.items()
        for id in getattr(each, name, ())
    )


def used_by(table: Table, snapshots: Collection[Snapshot]) -> Used:
    """Return what snapshots speak of, with the files in their trees whatever their status."""
    files, shape = table.files, table.metadata.shape()
    reader = files.reader(shape)
    found: dict[str, set[int]] = {name: set() for name in _COLUMNS}
    seen: set[str] = set()
    for each in snapshots:
        root = files.bare_root(each, shape)
        _add(root, found)
        for leaf in leaves_in(root.filter(is_live(root))):
            if leaf.location not in seen:
                seen.add(leaf.location)
                _add(reader.leaf(leaf, columns=_COLUMNS), found)
    return Used(
        schema_ids={each.schema_id for each in snapshots},
        spec_ids=found["partition_spec_id"],
        sort_order_ids=found["sort_order_id"],
        column_ids=found["equality_ids"],
    )


def _add(entries: Entries, found: dict[str, set[int]]) -> None:
    for name in _COLUMNS:
        values = entries[name]
        values = pc.list_flatten(values) if name == "equality_ids" else values
        found[name] |= set(pc.unique(values.drop_null()).to_pylist())
