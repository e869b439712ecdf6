"""Having a name stand for another metadata file than before: the one change that no commit makes."""

from __future__ import annotations

from icetree.catalog.base import Catalog, Stale, Swapped, TableName, Unknown
from icetree.errors import CommitConflict, CommitUnknown, NotFound


def point(catalog: Catalog, table: TableName, to: str) -> None:
    """Have a name stand for a metadata file, whatever it stood for, if for anything.

    The file that it stood for is not read, so that a table whose newest one is lost can be had back.
    CommitConflict where another commit comes first, CommitUnknown, AlreadyExists for a view's name.
    """
    try:
        before = catalog.load(table)
    except NotFound:
        catalog.create(table, to)
        return
    if before == to:
        return
    match catalog.swap(table, expected=before, to=to):
        case Swapped():
            return
        case Stale(metadata_location=newest) if newest == to:
            return
        case Stale():
            raise CommitConflict(
                f"table {table}: another commit came first; look whether {to!r} is to take its "
                "place, too, and register it again"
            )
        case Unknown(reason=reason):
            raise CommitUnknown(
                f"table {table} may or may not stand for {to!r} now ({reason}); look at it before "
                "trying again"
            )
