"""Files that other tables of the catalog name in a table's folder, where no folder of theirs is.

A table may have written there until a property was changed, or had files added by their names, or
share those of another. What any snapshot that it retains names is its own, wherever that lies.

Most tables name nothing outside their location, which the summaries of their snapshots tell: then
nothing but their metadata is read, with the pages of its history. Of the others each root that does not
tell is read, and each leaf below once, for names alone.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.catalog.base import TableName, every_table
from icetree.errors import CorruptTable, InvalidInput, NotFound, Unsupported
from icetree.files.parallel import in_order
from icetree.files.table_files import TableFiles
from icetree.spec.arrays import one_chunk
from icetree.spec.locations import absolute_array, is_uri, stored_form_array
from icetree.spec.metadata import TableMetadata
from icetree.spec.pages import history
from icetree.spec.snapshot import Snapshot
from icetree.table.maintain.deleting import shares_files
from icetree.table.maintain.orphan_names import Place, spelled
from icetree.table.maintain.reach import Reach, less, named, named_by, needed_below, tops_of
from icetree.table.state import State, read_newest
from icetree.tree.summary import FILES_OUTSIDE

if TYPE_CHECKING:
    from icetree.table.table import Table

#: How often a table is looked at anew when it expires what was being looked at.
_TRIES: Final = 5


def less_theirs(found: pa.Table, table: Table, place: Place) -> pa.Table:
    """Return the files that no other table of the catalog names.

    InvalidInput where one cannot be read that may: then nothing is known of its files.
    """
    if not found.num_rows:
        return found
    others = [each for each in every_table(table.catalog) if each != table.name]
    listed = one_chunk(found["location"])
    theirs = in_order(lambda name: _named_by(table, name, place, listed), others)
    return less(found, named(pa.concat_arrays([pa.array([], pa.string()), *theirs])))


def _named_by(table: Table, name: TableName, place: Place, listed: pa.Array) -> pa.Array:
    """Return which of the listed files another table names."""
    seen: State | None = None
    for _ in range(_TRIES):
        before, seen = seen, _newest(table, name)
        if seen is None:
            return pa.array([], pa.string())
        if before is not None and before.metadata_location == seen.metadata_location:
            break
        # Another may have expired what was being looked at.
        with suppress(CorruptTable, NotFound, InvalidInput, Unsupported):
            return _among(seen, table, place, listed)
    raise _unreadable(table, name)


def _newest(table: Table, name: TableName) -> State | None:
    """Return another table as it is now; None for one that is gone; InvalidInput for a damaged one."""
    store = table.files.store
    try:
        newest = read_newest(lambda: table.catalog.load(name), lambda _: store)
    except NotFound:
        return None
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
