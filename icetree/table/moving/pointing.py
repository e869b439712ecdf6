"""Having a name stand for other metadata than before, which no commit made of it.

Ids only grow as long as each head follows the one before. Who goes back to a former state takes the
highest along: a column that got an id again would show what writers of before still bring under it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from icetree.catalog.base import Catalog, Outcome, Stale, Swapped, TableName, Unknown
from icetree.errors import (
    AlreadyExists,
    CommitConflict,
    CommitUnknown,
    CorruptTable,
    IcetreeError,
    InvalidInput,
    NotFound,
    Unsupported,
)
from icetree.files.table_files import read_metadata
from icetree.spec.location import absolute, stored_form
from icetree.spec.metadata.metadata import TableMetadata, with_previous
from icetree.store.base import Store
from icetree.surroundings import now_ms
from icetree.table.commit.attempt import metadata_file
from icetree.table.naming import discard
from icetree.table.state import State

Stores = Callable[[str], Store]

#: How often a name is looked at that comes or goes just then.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Next:
    """What a name is to stand for, and its metadata where that is not written yet."""

    state: State
    content: bytes | None = None


def point(catalog: Catalog, wanted: State, stores: Stores) -> State:
    """Have a name stand for a state, whatever it stood for, if for anything; return what it is then.

    Of another state of the same table it keeps the highest ids, in metadata that is written anew where
    that takes it. One that is lost or damaged tells none, so that such a table can be had back.
    CommitConflict where another commit comes first, CommitUnknown, AlreadyExists for a view's name,
    NotFound for a namespace that is not there.
    """
    for _ in range(_TRIES - 1):
        # It came or went between the look and the change.
        with suppress(AlreadyExists, NotFound):
            return _pointed(catalog, wanted, stores)
    return _pointed(catalog, wanted, stores)


def pointed(catalog: Catalog, wanted: State, stores: Stores) -> State:
    """Return what a name would stand for; nothing is written."""
    try:
        return _next(wanted, catalog.load(wanted.name), stores).state
    except NotFound:
        return wanted


def _pointed(catalog: Catalog, wanted: State, stores: Stores) -> State:
    table = wanted.name
    try:
        before = catalog.load(table)
    except NotFound:
        catalog.create(table, wanted.metadata_location)
        return wanted
    made = _next(wanted, before, stores)
    to = made.state.metadata_location
    if to == before:
        return made.state
    if made.content is not None:
        stores(to).write_new(to, made.content)
    match _swapped(catalog, table, before, made, stores):
        case Swapped():
            return made.state
        case Stale(metadata_location=newest):
            _forget(made, stores)
            now = _next(wanted, newest, stores).state
            if now.metadata_location == newest:
                return now
            raise CommitConflict(
                f"table {table}: another commit came first; look whether "
                f"{wanted.metadata_location!r} is to take its place, too, and register it again"
            )
        case Unknown(reason=reason):
            raise CommitUnknown(
                f"table {table} may or may not stand for {wanted.metadata_location!r} now "
                f"({reason}); look at it before trying again"
            )


def _swapped(
    catalog: Catalog, table: TableName, before: str, made: _Next, stores: Stores
) -> Outcome:
    """Swap; where that raises and nothing happened, nothing stays of what was written for it."""
    to = made.state.metadata_location
    try:
        outcome = catalog.swap(table, expected=before, to=to)
    except CommitUnknown:
        raise
    except IcetreeError:
        _forget(made, stores)
        raise
    if isinstance(outcome, Stale) and outcome.metadata_location == to:
        # It was asked twice on the way, the answer to the first being lost.
        return Swapped()
    return outcome


def _forget(made: _Next, stores: Stores) -> None:
    """Delete metadata that was written for a name which will never stand for it."""
    if made.content is not None:
        discard(stores(made.state.metadata_location), made.state.metadata_location)


def _next(wanted: State, before: str, stores: Stores) -> _Next:
    """Return the state that is wanted as it may follow another, or that one where it says the same."""
    known = None
    with suppress(CorruptTable, InvalidInput, NotFound, Unsupported):
        known = read_metadata(stores(before), before)
    if known is None or known.table_uuid != wanted.metadata.table_uuid:
        return _Next(state=wanted)
    metadata = _above(wanted.metadata, known)
    if _says_the_same(metadata, known):
        return _Next(state=_at(wanted, known, before))
    place = metadata.location
    log = {absolute(each.metadata_file, place) for each in metadata.metadata_log}
    if before in log and metadata == wanted.metadata:
        return _Next(state=wanted)
    if metadata.format_version > 1:
        # It counts as a commit, for those who rely on there having been none.
        metadata = replace(metadata, last_sequence_number=metadata.last_sequence_number + 1)
    at_ms = max(now_ms(), known.last_updated_ms, metadata.last_updated_ms)
    previous = stored_form(wanted.metadata_location, place)
    metadata = with_previous(metadata, previous, wanted.metadata)
    metadata = replace(metadata, last_updated_ms=at_ms)
    file = metadata_file(metadata, after=before)
    return _Next(state=_at(wanted, metadata, absolute(file.location, place)), content=file.content)


def _above(metadata: TableMetadata, other: TableMetadata) -> TableMetadata:
    """Return metadata by which nothing that another state has given out is given out again."""
    raised = replace(
        metadata,
        last_column_id=max(metadata.last_column_id, other.last_column_id),
        last_partition_id=max(metadata.last_partition_id, other.last_partition_id),
    )
    if metadata.format_version > 1:
        last = max(metadata.last_sequence_number, other.last_sequence_number)
        raised = replace(raised, last_sequence_number=last)
    if metadata.next_row_id is not None:
        raised = replace(raised, next_row_id=max(metadata.next_row_id, other.next_row_id or 0))
    return raised


def _says_the_same(metadata: TableMetadata, other: TableMetadata) -> bool:
    """Tell metadata that differ, if at all, in when they were written and what came before."""
    return metadata == replace(
        other, last_updated_ms=metadata.last_updated_ms, metadata_log=metadata.metadata_log
    )


def _at(state: State, metadata: TableMetadata, metadata_location: str) -> State:
    return State(name=state.name, metadata=metadata, metadata_location=metadata_location)
