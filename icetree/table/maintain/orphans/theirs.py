"""Files that other tables of the catalog name in a table's folder, where no folder of theirs is.

A table may have written there until a property was changed, or had files added by their names, or
share those of another. What any snapshot that it retains names is its own, wherever that lies.

Most tables name nothing outside their location, which the summaries of their snapshots tell: then
nothing but their metadata is read, with the pages of its history. Of the others each root that does not
tell is read, and each leaf below once, for names alone.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.catalog.base import TableName
from icetree.errors import CorruptTable, InvalidInput, NotFound, Unsupported
from icetree.files.table_files import TableFiles
from icetree.spec.arrays import one_chunk
from icetree.spec.locations import absolute_array, is_uri, stored_form_array
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.pages import history
from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.maintain.deleting import shares_files
from icetree.table.maintain.orphans.links import comparable
from icetree.table.maintain.orphans.names import Place, less_others, spelled
from icetree.table.maintain.orphans.neighbours import neighbours_of, of_others, require_apart
from icetree.table.maintain.reach import Reach, less, named, named_by, needed_below, tops_of
from icetree.table.state import State, read_newest
from icetree.tree.summary import FILES_OUTSIDE

if TYPE_CHECKING:
    from icetree.table.table import Table

#: How often a table is looked at anew when it expires what was being looked at.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Theirs:
    """What other tables of the catalog are known to have; asked again, only what is new is looked at."""

    table: Table
    place: Place
    #: The metadata of each, as it was looked at.
    seen: dict[TableName, str] = field(default_factory=dict)

    def less(self, found: pa.Table) -> pa.Table:
        """Return the files that no other table names or has in a folder of its own, as of now.

        InvalidInput where one cannot be read that may: then nothing is known of its files.
        """
        if not found.num_rows:
            return found
        listed = one_chunk(found["location"])
        looked = of_others(self.table, lambda name: self._of(name, listed))
        new = {name: theirs for name, theirs in looked.items() if theirs is not None}
        self.seen.update({name: theirs.metadata_location for name, theirs in new.items()})
        files = [pa.array([], pa.string()), *(theirs.files for theirs in new.values())]
        return less(found, named(pa.concat_arrays(files)))

    def _of(self, name: TableName, listed: pa.Array) -> _Found | None:
        """Return which of the listed files are another table's; None where that is known, or it is gone."""
        if name in self.seen and self.seen[name] == _place(self.table, name):
            return None
        seen: State | None = None
        for _ in range(_TRIES):
            before, seen = seen, _newest(self.table, name)
            if seen is None:
                return None
            if before is not None and before.metadata_location == seen.metadata_location:
                break
            below = self._below(seen, listed)
            # Another may have expired what was being looked at.
            with suppress(CorruptTable, NotFound, InvalidInput, Unsupported):
                files = [below, _among(seen, self.table, self.place, listed)]
                return _Found(
                    files=pa.concat_arrays(files), metadata_location=seen.metadata_location
                )
        raise _unreadable(self.table, name)

    def _below(self, state: State, listed: pa.Array) -> pa.Array:
        """Return the listed files that lie in folders of another table, which may have come just now.

        InvalidInput for one that lies where this one does, or around it.
        """
        near = neighbours_of(state, self.table, folder=self.place.folder)
        require_apart(self.table, comparable(self.place.folder, self.place.location), near)
        place = replace(self.place, others=tuple({each.folder for each in near}))
        ours = less_others(listed, place)
        return listed.filter(pc.invert(pc.is_in(listed, value_set=ours)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What a table has of what was listed, by its metadata at a place."""

    files: pa.Array
    metadata_location: str


def _place(table: Table, name: TableName) -> str | None:
    """Return where another table's metadata is now; None for one that is gone."""
    try:
        return table.catalog.load(name)
    except NotFound:
        return None


def _newest(table: Table, name: TableName) -> State | None:
    """Return another table as it is now; None for one that is gone.

    InvalidInput for a damaged one, and for one whose metadata is lost while the catalog names it.
    """
    store = table.files.store
    try:
        newest = read_newest(lambda: table.catalog.load(name), lambda _: store)
    except NotFound as error:
        if _place(table, name) is None:
            return None
        raise _unreadable(table, name) from error
    except (CorruptTable, InvalidInput, Unsupported) as error:
        raise _unreadable(table, name) from error
    if newest is None:
        return None
    return State(name=name, metadata=newest[0], metadata_location=newest[1])


def _unreadable(table: Table, name: TableName) -> InvalidInput:
    return InvalidInput(
        f"table {name} may name files in the folder of table {table.name}, and cannot be read: see "
        "what verify tells of it, and repair or drop it; until then nothing is deleted that may be its"
    )


def _among(state: State, table: Table, place: Place, listed: pa.Array) -> pa.Array:
    metadata = state.metadata
    files = TableFiles(
        store=table.files.store,
        location=metadata.location,
        ring=table.files.ring.beside(metadata),
    )
    shape, reach = metadata.shape(), Reach()
    every = [*history(metadata, files.page)]
    reach.gather(
        [each for each in every if _may_name_outside(each, metadata)],
        files,
        shape,
        what="trees",
        tell=lambda *_: None,
    )
    tops = [top for each in every for top in tops_of(each, metadata.location)]
    parts = [
        named_by(state),
        named(tops),
        reach.settle(),
        *needed_below(reach, files.reader(shape)),
    ]
    found = [pa.array([], pa.string())]
    for part in parts:
        names = stored_form_array(part["location"], metadata.location)
        outside = absolute_array(names.filter(is_uri(names)), metadata.location)
        ours, _ = spelled(named(outside), place)
        found.append(ours.filter(pc.is_in(ours, value_set=listed)))
    return pa.concat_arrays(found)


def _may_name_outside(snapshot: Snapshot, metadata: TableMetadata) -> bool:
    """Tell a tree that may name files outside its table's location; what is not told may be so."""
    told = (snapshot.summary or {}).get(FILES_OUTSIDE)
    return told != "false" or snapshot.root_manifest is None or shares_files(metadata)
