"""Keeping a table apart from the one whose files it shares: what lies in a table's folder is its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import InvalidInput
from icetree.files.table_files import TableFiles
from icetree.keys.base import Keeper
from icetree.keys.ring import ring_of
from icetree.spec.location import (
    absolute,
    canonical,
    leads_up,
    no_name,
    prefix_of,
    scheme_of,
)
from icetree.spec.locations import is_uri, stored_form_array
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.pages import history
from icetree.store.base import Store
from icetree.table.maintain.orphans.neighbours import WRITE_PATHS
from icetree.table.maintain.reach import Reach, needed_below


def require_beside(place: str, source: str) -> None:
    """Refuse a place in the source's folder or around it, or in another kind of store."""
    if leads_up(place):
        raise InvalidInput(no_name(place))
    _require_apart(place, source)
    if scheme_of(canonical(place, place)) != scheme_of(canonical(source, place)):
        raise InvalidInput(
            f"{place} is in another kind of store than {source}, whose files are shared: choose a "
            "location there"
        )


def require_beside_table(
    place: str, source: TableMetadata, store: Store, keeper: Keeper | None = None
) -> None:
    """Refuse a place where a table lies, writes to, or has a file."""
    require_beside(place, source.location)
    for name in WRITE_PATHS:
        if (path := source.properties.get(name)) is not None:
            _require_apart(place, absolute(path, source.location))
    # It may have written elsewhere before. As a rule nothing is there, and no tree has to be read.
    if any(True for _ in islice(store.list(place), 1)):
        for names in _named_by(source, store, keeper):
            require_none_inside(
                place, (absolute(name, source.location) for name in names.to_pylist())
            )


def require_all_inside(place: str, files: Iterable[str]) -> None:
    """Refuse files outside the folder of a table that is to own them."""
    for file in _parted(place, files, inside=False):
        raise InvalidInput(
            f"{file} is outside {place}, so it may be another table's too: make a table that leaves "
            "files alone with snapshot_table"
        )


def require_none_inside(place: str, files: Iterable[str]) -> None:
    """Refuse files in the folder of a table that is to share them."""
    for file in _parted(place, files, inside=True):
        raise InvalidInput(
            f"{file} is a file of the other table, and would be one of the new table's own: choose "
            f"another location than {place}"
        )


def _require_apart(place: str, other: str) -> None:
    here, there = (prefix_of(canonical(each, place)) for each in (place, other))
    if here.startswith(there) or there.startswith(here):
        raise InvalidInput(
            f"{place} and {other} lie one in the other: choose another location for the new table"
        )


def _parted(place: str, files: Iterable[str], *, inside: bool) -> list[str]:
    """Return the first of files that are inside a folder, or outside, as a list of one or none."""
    given = pa.array([*files], pa.string())
    is_outside = is_uri(stored_form_array(given, place))
    found: list[str] = given.filter(pc.not_equal(is_outside, inside))[:1].to_pylist()
    return found


def _named_by(
    source: TableMetadata, store: Store, keeper: Keeper | None
) -> Iterator[pa.ChunkedArray]:
    """Yield the locations, as stored, of all files that a table's snapshots name."""
    ring = ring_of(source, keeper)
    files = TableFiles(store=store, location=source.location, ring=ring)
    shape = source.shape()
    reach = Reach()
    for each in history(source, files.page):
        reach.add(each, files, shape)
    yield reach.settle()["location"]
    yield from (each["location"] for each in needed_below(reach, files.reader(shape)))
