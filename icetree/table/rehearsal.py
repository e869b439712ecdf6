"""Rehearsals: what a verb would do, done in memory; nobody sees it, and nothing is stored."""

from __future__ import annotations

from dataclasses import replace

from icetree.catalog.base import Catalog
from icetree.catalog.memory import AsideCatalog
from icetree.files.table_files import TableFiles
from icetree.store.aside import AsideStore
from icetree.table.state import State


def catalog_of(state: State, *, stores_heads: bool = True) -> Catalog:
    """Return a catalog of one table, which others know nothing of."""
    catalog = AsideCatalog("rehearsal")
    catalog.stores_heads = stores_heads
    catalog.create_namespace(state.name.namespace, {})
    catalog.create(state.name, state.metadata_location)
    return catalog


def files_of(files: TableFiles) -> TableFiles:
    """Return the files of a table, with room beside them for what is never stored."""
    return replace(files, store=AsideStore(files.store))
