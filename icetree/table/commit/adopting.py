"""Parquet files that are there already, made ready for a commit as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from os import PathLike, fspath
from typing import Final, TypeAlias

import pyarrow as pa
from pyiceberg.table.name_mapping import create_mapping_from_schema

from icetree.errors import InvalidInput, NotFound
from icetree.files.parallel import in_order
from icetree.rows.adopt import adopt
from icetree.rows.formats.formats import FORMATS
from icetree.rows.read.files import NAME_MAPPING, name_mapping
from icetree.rows.write.layout import entries_of
from icetree.spec.entry.entry import Entries
from icetree.spec.location import LOCAL, absolute, scheme_of
from icetree.spec.metadata.encryption import require_plain_target
from icetree.spec.metadata.metadata import TableMetadata
from icetree.store.base import Store
from icetree.store.places import local_folder

#: Files, or folders whose names end with a slash: one, or several.
Paths: TypeAlias = "str | PathLike[str] | Iterable[str | PathLike[str]]"
#: Told how many files have been looked at, and of how many.
Progress: TypeAlias = Callable[[int, int], None]

#: What engines leave in folders beside data files.
_HIDDEN: Final = ("_", ".")
#: How names of data files end.
_ENDS: Final = tuple(f".{name}" for name in FORMATS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Files as entries, and properties that the table needs for them."""

    entries: Entries
    properties: dict[str, str]


def found_files(
    paths: Paths, *, metadata: TableMetadata, store: Store, progress: Progress | None = None
) -> Found:
    """Return files as entries; of Parquet only footers are read, a few at a time.

    Columns of files without field ids are found by their names: then the table gets a name
    mapping, where it has none.
    """
    places = dict.fromkeys(files_at(paths, metadata, store))
    return known_files(places, metadata=metadata, store=store, progress=progress)


def known_files(
    files: Mapping[str, Mapping[str, pa.Scalar] | None],
    *,
    metadata: TableMetadata,
    store: Store,
    progress: Progress | None = None,
) -> Found:
    """Do `found_files` for absolute locations; each has values for columns that it leaves out.

    With None for them, its path tells.
    """
    require_plain_target(metadata)
    given = name_mapping(metadata.properties)
    mapping = given or create_mapping_from_schema(metadata.schema())
    look_at = partial(
        adopt,
        store=store,
        metadata=metadata,
        shape=metadata.shape(),
        mapping=mapping,
        modes=dict(metadata.metrics()),
    )
    made, needs_mapping = [], False
    for file, has_ids in in_order(lambda each: look_at(each[0], values=each[1]), files.items()):
        made.append(file)
        needs_mapping |= not has_ids
        if progress is not None:
            progress(len(made), len(files))
    needs_mapping &= given is None
    return Found(
        entries=entries_of(made, metadata.shape()),
        properties={NAME_MAPPING: mapping.model_dump_json()} if needs_mapping else {},
    )


def files_at(paths: Paths, metadata: TableMetadata, store: Store) -> list[str]:
    """Return the absolute locations of all files; one that is given twice is refused."""
    if not isinstance(paths, str | PathLike | Iterable):
        raise InvalidInput(f"paths={paths!r}: give the paths of Parquet, ORC or Avro files")
    given = [paths] if isinstance(paths, str | PathLike) else list(paths)
    found: dict[str, None] = {}
    for path in given:
        if not isinstance(path, str | PathLike):
            raise InvalidInput(f"{path!r} is no path: give files, or folders that end with a slash")
        for place in _below(_absolute(path, metadata), store):
            if place in found:
                raise InvalidInput(f"{place} is given twice: a file is in a table once")
            found[place] = None
    if not found:
        raise InvalidInput("there is no file to add: give the paths of Parquet, ORC or Avro files")
    return [*found]


def _absolute(path: str | PathLike[str], metadata: TableMetadata) -> str:
    text = fspath(path)
    if scheme_of(text):
        return text
    if scheme_of(metadata.location) in LOCAL:
        # As one means it at a prompt: from where one is.
        return f"file://{local_folder(text)}{'/' if text.endswith('/') else ''}"
    return absolute(text, metadata.location)


def is_hidden(name: str) -> bool:
    """Tell what engines leave in folders beside data files, by its path below a folder."""
    return any(part.startswith(_HIDDEN) and "=" not in part for part in name.split("/"))


def _below(place: str, store: Store) -> list[str]:
    if not place.endswith("/"):
        return [place]
    found = sorted(
        info.location
        for info in store.list(place)
        if info.location.endswith(_ENDS) and not is_hidden(info.location[len(place) :])
    )
    if not found:
        raise NotFound(f"{place} has no Parquet files, and none in ORC or Avro")
    return found
