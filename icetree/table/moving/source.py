"""Where a table is that is to come to the lake: a name, a metadata file, or a folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from icetree.errors import InvalidInput
from icetree.files.table_files import read_metadata
from icetree.spec.location import leads_up, no_name, scheme_of
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.texts import text
from icetree.store.base import Store
from icetree.store.places import local_folder
from icetree.table.moving.hadoop import Version, moved_to, newest_version, require_newest

_METADATA: Final = (".metadata.json", ".metadata.json.gz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A table as it is where it comes from."""

    metadata: TableMetadata
    #: Absolute.
    metadata_location: str
    #: Of a table that is a folder: its newest version, where the table has not left it yet.
    version: Version | None = None
    #: Of a table that is a folder: it was upgraded before, and may have got no name.
    has_moved: bool = False


def is_place(source: str) -> bool:
    """Tell a place from the name of a table, which has no slash."""
    return "/" in source


def place_of(source: str) -> str:
    """Return a place that a user names, in full; one without a scheme is on this machine's disk."""
    given = text(source, what="source").rstrip("/")
    if leads_up(given):
        raise InvalidInput(no_name(source))
    return given if scheme_of(given) else f"file://{local_folder(given)}"


def folder_of(location: str) -> str:
    """Return a folder that a user names for a table; one without a scheme is on this machine's disk."""
    given = text(location, what="location").rstrip("/")
    return given if scheme_of(given) else local_folder(given)


def table_at(place: str, store: Store) -> Source:
    """Return the table that a metadata file, or a folder of numbered ones, is of."""
    if place.endswith(_METADATA):
        return Source(metadata=read_metadata(store, place), metadata_location=place)
    version = newest_version(place, store)
    moved = moved_to(version, place, store)
    if moved is not None:
        require_newest(moved, store)
        metadata = read_metadata(store, moved)
        return Source(metadata=metadata, metadata_location=moved, has_moved=True)
    metadata = read_metadata(store, version.location)
    return Source(metadata=metadata, metadata_location=version.location, version=version)
