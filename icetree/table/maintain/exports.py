"""Which files of exports go: an export lives as long as its snapshot.

They are known by their names. No other file names them but the lists of exports themselves. What
stands for data DVs in v2 lives as long as the Puffin file that they are in.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from icetree.files.table_files import TableFiles
from icetree.spec.entry.entry import Content, is_content
from icetree.spec.location import absolute, stored_form
from icetree.table.export.parts import Part
from icetree.table.export.places import EXPORTS, read_name, stand_in_folder, vectors_in
from icetree.table.maintain.reach import Reach, less, named, needed_below, none_named
from icetree.table.state import State
from icetree.tree.reading import Reader


def exports_only_of(gone: Reach, kept: Reach, files: TableFiles) -> pa.Table:
    """Return the files of exports that snapshots have, and those that stay do not.

    Trees of those that stay may name some all the same: where a table went back to v3 and came again.
    """
    names = (
        stored_form(each.location, files.location)
        for each in files.store.list(absolute(EXPORTS, files.location))
    )
    return named(
        name
        for name in names
        if _is_of(name, gone, files.location) and not _is_needed(name, kept, gone, files.location)
    )


def stand_ins_of(going: pa.Table, files: TableFiles) -> pa.Table:
    """Return what stands for the data DVs in files that go."""
    gone = _vectors(going)
    if not gone:
        return none_named()
    there = files.store.list(absolute(stand_in_folder(files.location), files.location))
    names = (stored_form(each.location, files.location) for each in there)
    return named(each for each in names if read_name(each, files.location) in gone)


def less_exports(found: pa.Table, reach: Reach, reader: Reader, state: State) -> pa.Table:
    """Return files without those of exports of snapshots, and of the metadata that shows them."""
    names = found["location"]
    exports = names.filter(pc.starts_with(names, EXPORTS)).to_pylist()
    shown = _shown(state)
    location = state.metadata.location
    needed = [
        each
        for each in exports
        if _may_be_of(each, reach, location) or _shows(each, shown, location)
    ]
    needed += _needed_stand_ins(exports, reach, reader, location)
    return less(found, named(needed)) if needed else found


def _needed_stand_ins(
    exports: Sequence[str], reach: Reach, reader: Reader, location: str
) -> list[str]:
    """Return those that stand for data DVs of snapshots; trees are looked at where there are any."""
    found = [each for each in exports if each.startswith(stand_in_folder(location))]
    if not found:
        return []
    others = [
        each.location
        for each in reach.leaves.values()
        if each.content_type != Content.DELETE_MANIFEST
    ]
    below = needed_below(reach, reader, but=frozenset(others))
    live = set().union(*(_vectors(each) for each in chain([reach.settle()], below)))
    return [each for each in found if read_name(each, location) in live]


def _vectors(files: pa.Table) -> set[tuple[str, str]]:
    """Return what the names of files say that stand for data DVs in some of these."""
    is_delete = pc.fill_null(is_content(files, Content.POSITION_DELETES), False)
    names = files["location"].filter(is_delete).unique().to_pylist()
    return {("rows", vectors_in(each)) for each in names}


def _is_of(name: str, reach: Reach, location: str) -> bool:
    match read_name(name, location):
        case Part() as part:
            return part in reach.twins
        case ("snapshot", export):
            return export in reach.exports
    return False


def _is_needed(name: str, kept: Reach, gone: Reach, location: str) -> bool:
    """Tell whether a file of exports that go is one of what stays, or of a commit that just lands."""
    match read_name(name, location):
        case Part() as part:
            return kept.twins.may_need(part, gone.twins)
    return _is_of(name, kept, location)


def _may_be_of(name: str, reach: Reach, location: str) -> bool:
    """Tell whether a file may be of an export of snapshots, or of one that just lands.

    Nothing tells which entries are gone from a twin that no snapshot has: it goes with its leaf.
    """
    match read_name(name, location):
        case Part(gone=gone) as part if gone:
            return reach.twins.has_leaf(part)
    return _is_of(name, reach, location)


def _shown(state: State) -> tuple[str, ...]:
    """Return how the names of metadata start that shows the table's metadata files."""
    former = (each.metadata_file for each in state.metadata.metadata_log)
    names = (each.rpartition("/")[2] for each in (state.metadata_location, *former))
    return tuple(each.removesuffix(".metadata.json").removesuffix(".gz") for each in names)


def _shows(name: str, shown: tuple[str, ...], location: str) -> bool:
    match read_name(name, location):
        case ("metadata", stem):
            return stem.startswith(shown)
    return False
