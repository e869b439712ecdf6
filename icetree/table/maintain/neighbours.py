"""Other tables of the catalog that lie where a table lies: their files are not its to delete."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from icetree.catalog.base import TableName, every_table
from icetree.errors import CorruptTable, InvalidInput, NotFound, Unsupported
from icetree.files.parallel import in_order
from icetree.files.table_files import read_metadata
from icetree.spec.location import absolute, canonical, prefix_of

if TYPE_CHECKING:
    from icetree.table.table import Table

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


def neighbours(table: Table) -> tuple[Neighbour, ...]:
    """Return every other table of the catalog, once for each folder that it has."""
    names = [each for each in every_table(table.catalog) if each != table.name]
    found = in_order(lambda name: _folders(table, name), names)
    return tuple(
        Neighbour(name=name, folder=folder)
        for name, folders in zip(names, found, strict=True)
        for folder in folders
    )


def require_apart(table: Table, folder: str, others: tuple[Neighbour, ...]) -> None:
    """Refuse a folder (in the spelling to compare) that another table has, or lies above."""
    for other in others:
        if folder.startswith(other.folder):
            raise InvalidInput(
                f"table {other.name} lies at {other.folder}, where files of table {table.name} are "
                "too: which are whose cannot be told, so none is deleted"
            )


def comparable(folder: str, table_location: str) -> str:
    """Return a folder in the one spelling that is compared, with a slash."""
    return prefix_of(canonical(folder, table_location))


def _folders(table: Table, name: TableName) -> set[str]:
    """Return where a table is: around its metadata, where that says, and where it writes to."""
    try:
        at = table.catalog.load(name)
    except NotFound:
        return set()
    folder, slash, _ = at.rpartition("/metadata/")
    found = {folder if slash else at.rpartition("/")[0]}
    # One that is damaged, or in a store that this one may not open, is known by its name alone.
    with suppress(CorruptTable, NotFound, InvalidInput, Unsupported):
        metadata = read_metadata(table.files.store, at)
        found.add(metadata.location)
        paths = (metadata.properties.get(each) for each in WRITE_PATHS)
        found |= {absolute(each, metadata.location) for each in paths if each}
    return {comparable(each, table.location) for each in found}
