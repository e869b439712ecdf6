"""A name for a metadata file that was just written: without one it goes again."""

from __future__ import annotations

from contextlib import suppress

from icetree.catalog.base import Catalog, TableName
from icetree.errors import CommitUnknown, IcetreeError
from icetree.store.base import Store
from icetree.table.nearest import namespaces_told


def give_name(catalog: Catalog, name: TableName, at: str, store: Store) -> None:
    """Make a table or a view of a metadata file, which is deleted where for certain it was not made.

    AlreadyExists, NotFound for the namespace; after CommitUnknown the file stays.
    """
    try:
        with namespaces_told(name.namespace, catalog):
            catalog.create(name, at)
    except CommitUnknown:
        raise
    except IcetreeError:
        # The name is another's, or nobody's: nothing will ever point to the file.
        discard(store, at)
        raise


def discard(store: Store, location: str) -> None:
    """Delete a file that nothing names; that it stays does no harm."""
    with suppress(IcetreeError, OSError):
        store.delete([location])
