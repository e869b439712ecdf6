"""A table with leaves, deletes of every kind, branches and a past, and lakes that see only what is stored."""

from __future__ import annotations

from functools import cache

from icetree.catalog.memory import MemoryCatalog
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.table.changing import delete_equal
from tests.table.maintain.history import Past


def lake_of(table: Table) -> Lake:
    """A lake that sees nothing but what is stored."""
    return Lake(catalog=table.catalog, store=table.files.store, warehouse="memory://lake")


@cache
def _kept() -> tuple[dict[str, tuple[bytes, int]], str]:
    past = Past(3)
    past.live(16)
    delete_equal(past.table, [1])
    assert past.table.metadata.snapshot_pages or len([*past.table.history()]) > 8
    return dict(past.table.files.store._files), past.table.state.metadata_location  # type: ignore[attr-defined]


def old_table() -> Table:
    """A table with leaves, DVs, equality deletes, branches and a past."""
    files, newest = _kept()
    lake = Lake(catalog=MemoryCatalog("m"), store=MemoryStore(), warehouse="memory://lake")
    lake.store._files.update(files)  # type: ignore[attr-defined]
    lake.create_namespace("db")
    return lake.register_table("db.rows", newest)
