"""Which places a client may name: inside the table, and a new table inside its namespace's folder."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from icetree.catalog.base import TableName, ViewName
from icetree.errors import InvalidInput
from icetree.spec.location import canonical, is_relative, leads_up, prefix_of, stored_form
from icetree.surroundings import new_uuid
from icetree.table import place
from icetree.table.lake import Lake

#: Properties that say where files go.
_PATHS: Final = frozenset(
    {
        "write.data.path",
        "write.folder-storage.path",
        "write.metadata.path",
        "write.object-storage.path",
    }
)


def inside(location: str, table_location: str, *, what: str) -> str:
    """Return a location as the table stores it; InvalidInput where it leads out of the table."""
    found = stored_form(location, table_location)
    if not is_relative(found):
        raise InvalidInput(f"{what} {location!r} is outside the table, {table_location!r}")
    return found


def is_same(location: str, table_location: str) -> bool:
    """Tell whether two spellings of a folder are one."""
    one, other = (canonical(each, table_location) for each in (location, table_location))
    return prefix_of(one) == prefix_of(other)


def require_confined(properties: Iterable[tuple[str, str]], table_location: str) -> None:
    """Refuse properties that would have files written elsewhere."""
    for name, value in properties:
        if name in _PATHS and not is_same(value, table_location):
            inside(value, table_location, what=name)


def place_of_new(lake: Lake, table: TableName, asked: str | None) -> str:
    """Return where a new table goes: a folder of its namespace's folder, which is no other table's.

    A client may name one; without, it has the table's name, with something added where files of a
    former table lie.
    """
    if lake.warehouse is None:
        raise InvalidInput("the server has no warehouse, so there is no place for new tables")
    folder = "/".join((lake.warehouse, *table.namespace))
    if asked is None:
        named = f"{folder}/{table.name}"
        return named if is_free(lake, named) else f"{named}-{new_uuid()}"
    require_place(lake, table, asked)
    found = asked.rstrip("/")
    if not is_free(lake, found):
        raise InvalidInput(
            f"there is a table at {found!r} already: leave the location to the server"
        )
    return found


def place_of_new_view(lake: Lake, view: ViewName, asked: str | None) -> str:
    """Return where a new view goes: a folder of its namespace's folder, which is nobody else's."""
    if asked is not None:
        return place_of_new(lake, view, asked)
    return place_of_new(lake, ViewName(view.namespace, f"{view.name}-{new_uuid()}"), None)


def require_place(lake: Lake, table: TableName, asked: str) -> None:
    """Refuse a place for a new table that is no folder of its namespace's folder."""
    folder = "/".join((lake.warehouse or "", *table.namespace))
    rest = "" if leads_up(asked) else stored_form(asked.rstrip("/") or "/", folder)
    if not rest or "/" in rest or not rest.isprintable() or not is_relative(rest):
        raise InvalidInput(
            f"a {table.kind} of namespace {'.'.join(table.namespace)} goes into a folder of {folder!r}, "
            f"not to {asked!r}: leave its location to the server"
        )


def is_free(lake: Lake, folder: str) -> bool:
    """Tell whether no table has its folder there, or anywhere below.

    InvalidInput where the folder lies in that of a table: whoever may read one would read the other,
    and a purge of the one would delete the other.
    """
    within = (lake.warehouse or "").rstrip("/")
    above = folder.rpartition("/")[0]
    while len(above) > len(within):
        if place.is_table(lake.store, above):
            raise InvalidInput(
                f"no table goes to {folder!r}: it lies in the folder of another, {above!r}; take "
                "another namespace"
            )
        above = above.rpartition("/")[0]
    return place.is_free(lake.store, folder)
