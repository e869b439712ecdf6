"""Where a new table goes: into a folder that is no other table's.

A table that was renamed, or dropped without its files, lies where its first name says. Two tables in
one folder could not be told apart: neither could be purged, nor could orphans be looked for.
"""

from __future__ import annotations

from typing import Final

from icetree.store.base import Store
from icetree.surroundings import new_uuid

#: What the metadata files of tables end in.
_METADATA: Final = (".metadata.json", ".metadata.json.gz")


def own_place(store: Store, named: str) -> str:
    """Return a folder for a new table: the one named, with something added where a table lies."""
    return named if is_free(store, named) else f"{named}-{new_uuid()}"


def is_free(store: Store, folder: str) -> bool:
    """Tell whether no table has its folder there, or anywhere below."""
    return not is_table(store, folder) and not any(
        each.location.endswith(_METADATA) for each in store.list(folder)
    )


def is_table(store: Store, folder: str) -> bool:
    """Tell whether a table has its metadata in a folder, itself."""
    metadata = f"{folder}/metadata"
    return any(
        each.location.endswith(_METADATA)
        # Not one of a table whose name is `metadata`, or of a namespace of that name.
        and _path(each.location).rpartition("/")[0].endswith(_path(metadata))
        for each in store.list(metadata)
    )


def _path(location: str) -> str:
    """Return a location without its scheme, which a store may write in another way."""
    return location.partition("://")[2] or location
