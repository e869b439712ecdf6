"""Making a table of files that are there: all of it is written before it gets its name."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import pyarrow as pa
from msgspec.structs import replace as replaced

from icetree.catalog.base import TableName
from icetree.errors import IcetreeError
from icetree.files.table_files import TableFiles
from icetree.rows.write.deletes import store_vectors
from icetree.spec.edit.create import table_metadata
from icetree.spec.entry.entry import Entries, concat
from icetree.spec.locations import stored_form_array
from icetree.spec.metadata.metadata import TableMetadata
from icetree.store.base import Store
from icetree.surroundings import new_uuid, now_ms
from icetree.table.commit.adding import stored_entries
from icetree.table.commit.adopting import Found, Progress, known_files
from icetree.table.commit.commit import draft
from icetree.table.moving.contents import Contents
from icetree.table.properties import check_properties
from icetree.table.state import State, Work
from icetree.tree.changes import Changes, Intent


def make(
    name: TableName,
    foreign: Contents,
    place: str,
    store: Store,
    *,
    properties: Mapping[str, str],
    progress: Progress | None,
) -> str:
    """Write a table of some files, one snapshot, at a place; return where its metadata is.

    Nothing is written before every file is known to fit. The metadata file comes last: cut off
    before, there is no table, and after it a whole one that has no name.
    """
    metadata = table_metadata(
        foreign.schema,
        location=place,
        partition_by=foreign.partition_by,
        properties=properties,
        at_ms=now_ms(),
        uuid=new_uuid(),
    )
    check_properties(metadata.properties, metadata)
    found = known_files(foreign.files, metadata=metadata, store=store, progress=progress)
    metadata = replaced(metadata, properties={**metadata.properties, **found.properties})
    files = TableFiles(store=store, location=place)
    written: list[str] = []
    try:
        changes = [_changes(name, found, foreign, metadata, store, written)]
        base = State(name=name, metadata=metadata, metadata_location="")
        work = Work(base=base, changes=tuple(changes if foreign.files else ()))
        state, new = draft(work, files)
        written += [each.location for each in new]
        files.write(new[:-1])
        files.write(new[-1:])
    except BaseException:
        # Nothing names these files, whatever became of writing them.
        with suppress(IcetreeError):
            files.delete(written)
        raise
    return state.metadata_location


def _changes(
    name: TableName,
    found: Found,
    foreign: Contents,
    metadata: TableMetadata,
    store: Store,
    written: list[str],
) -> Changes:
    added = stored_entries(found.entries, metadata, metadata.shape(), name)
    if not any(foreign.vectors.values()):
        return Changes(intent=Intent.APPEND, added=added)
    hidden = _vectors(added, foreign, metadata, store)
    written += hidden["location"].to_pylist()[:1]
    shape = metadata.shape()
    return Changes(
        intent=Intent.ROW_DELTA,
        added=concat([added, stored_entries(hidden, metadata, shape, name)]),
    )


def _vectors(added: Entries, foreign: Contents, metadata: TableMetadata, store: Store) -> Entries:
    """Write the rows that are gone as data DVs, one file of them."""
    order = {location: number for number, location in enumerate(added["location"].to_pylist())}
    names = stored_form_array(pa.array([*foreign.vectors], pa.string()), metadata.location)
    rows = zip(names.to_pylist(), foreign.vectors.values(), strict=True)
    return store_vectors({order[name]: gone for name, gone in rows if gone}, added, metadata, store)
