"""Other tables of the catalog that lie where a table lies: their files are not its to delete."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from icetree.catalog.base import TableName, every_table
from icetree.errors import CorruptTable, InvalidInput, NotFound, Unsupported
from icetree.files.parallel import in_order
from icetree.files.table_files import read_metadata
from icetree.spec.location import absolute
from icetree.spec.metadata.metadata import TableMetadata
from icetree.store.places import folder_behind
from icetree.table.maintain.orphans.links import comparable, seen_below
from icetree.table.state import State

if TYPE_CHECKING:
    from icetree.table.table import Table

T = TypeVar("T")

#: Properties of a table that have files of it lie elsewhere.
WRITE_PATHS: Final = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """Another table, and a folder that is its own; with a slash, in the spelling to compare."""

    name: TableName
    folder: str


def neighbours(table: Table, *, folder: str | None = None) -> tuple[Neighbour, ...]:
    """Return every other table of the catalog, once for each folder that it has.

    As names of files in our folders begin, and of those in another one that is looked at.
    """
    own = _own(table, folder)
    found = of_others(table, lambda name: _folders(table, name))
    return tuple(each for name in sorted(found) for each in _near(name, found[name], own))


def of_others(table: Table, look: Callable[[TableName], T]) -> dict[TableName, T]:
    """Look at every other table of the catalog.

    One that is given another name meanwhile is gone under the first: names are asked for until
    none is new.
    """
    found: dict[TableName, T] = {}
    while new := [
        each for each in every_table(table.catalog) if each != table.name and each not in found
    ]:
        found |= zip(new, in_order(look, new), strict=True)
    return found


def neighbours_of(state: State, table: Table, *, folder: str) -> tuple[Neighbour, ...]:
    """Return another table as `neighbours` does, as its metadata says."""
    places = {_around(state.metadata_location, table), *_places(state.metadata, table.location)}
    return tuple(_near(state.name, places, _own(table, folder)))


def require_apart(table: Table, folder: str, others: tuple[Neighbour, ...]) -> None:
    """Refuse a folder (in the spelling to compare) that another table has, or lies above."""
    for other in others:
        if folder.startswith(other.folder):
            raise InvalidInput(
                f"table {other.name} lies at {other.folder}, where files of table {table.name} are "
                "too: which are whose cannot be told, so none is deleted"
            )


def _own(table: Table, folder: str | None) -> list[tuple[str, str | None]]:
    """Return the table's own folders, and what is behind links on the way to each."""
    places = _places(table.metadata, table.location)
    places |= {comparable(folder, table.location)} if folder else set()
    return [(each, folder_behind(each)) for each in places]


def _near(
    name: TableName, folders: set[str], own: Sequence[tuple[str, str | None]]
) -> Iterator[Neighbour]:
    for folder in {seen for each in folders for seen in _names(each, own)}:
        yield Neighbour(name=name, folder=folder)


def _names(folder: str, own: Sequence[tuple[str, str | None]]) -> Iterator[str]:
    """Yield the names that a folder has: its own, and where it is seen below or around ours.

    Links on the way to a folder have it lie at several places. Those of a listing begin as ours do.
    """
    yield folder
    there = folder_behind(folder)
    for name, here in own:
        if here is None or there is None:
            continue
        if seen := seen_below(there, name, here):
            yield seen
        elif here.startswith(there):
            yield name


def _places(metadata: TableMetadata, location: str) -> set[str]:
    """Return where a table is, and where it writes to, in the spelling to compare."""
    paths = (metadata.properties.get(each) for each in WRITE_PATHS)
    found = {metadata.location, *(absolute(each, metadata.location) for each in paths if each)}
    return {comparable(each, location) for each in found}


def _folders(table: Table, name: TableName) -> set[str]:
    """Return where a table is: around its metadata, where that says, and where it writes to."""
    try:
        at = table.catalog.load(name)
    except NotFound:
        return set()
    found = {_around(at, table)}
    # One that is damaged, or in a store that this one may not open, is known by its name alone.
    with suppress(CorruptTable, NotFound, InvalidInput, Unsupported):
        found |= _places(read_metadata(table.files.store, at), table.location)
    return found


def _around(metadata_location: str, table: Table) -> str:
    """Return the folder of a table whose metadata is there."""
    folder, slash, _ = metadata_location.rpartition("/metadata/")
    return comparable(folder if slash else metadata_location.rpartition("/")[0], table.location)
