"""Several commits to one table with one swap: each has a snapshot and a root, all one metadata file.

They are made one after the other in memory, each on what the one before came to. Then their files are
stored side by side, and one swap makes them all visible. A commit that is refused leaves the others as
they are; when another writer came first, all are made anew on what that one did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from msgspec import structs

from icetree.catalog.base import Catalog
from icetree.errors import CommitExhausted, CommitUnknown, IcetreeError
from icetree.files.table_files import TableFiles
from icetree.spec.location import absolute, stored_form
from icetree.spec.metadata.metadata import TableMetadata, with_previous
from icetree.spec.metadata.snapshot import LogEntry
from icetree.store.aside import AsideStore
from icetree.table.commit.attempt import metadata_file, with_pages
from icetree.table.commit.turn import Turn
from icetree.table.state import State
from icetree.table.table import Table
from icetree.table.together import Aside, aside, land

#: How often a group is made anew when others were faster.
_TRIES: Final = 100

#: What commits to the table it is given, and may be asked to do so again on a newer state.
GroupCommit = Callable[[Table], object]


def commit_group(
    table: Table, commits: Sequence[GroupCommit], *, look: Callable[[Table], object] | None = None
) -> list[Exception | None]:
    """Carry out commits with one swap, and return what each was refused with, if it was.

    Each try begins with a `look` at what they rely on beside the table, on the state that they start
    from: it is theirs by then, so that what was seen is not older than the wait for it.
    The table's handle sees all of them then. What is raised befell the whole group: none of it
    happened, but with `CommitUnknown`, when that could not be learnt.
    """
    with Turn(table.catalog, table.name) as turn:
        turn.wait_with_others()
        for _ in range(_TRIES):
            group = _Group(table.refresh())
            if look is not None:
                look(table)
            refusals = [group.add(each) for each in commits]
            state = group.land(table.catalog)
            if state is not None:
                # Not asked for: whatever fails from here on, the group has landed.
                table.state = state
                return refusals
            turn.wait_after_losing(lambda: None)
    raise CommitExhausted(f"table {table.name}: {_TRIES} tries lost to other commits")


class _Group:
    """Commits in memory, from where a table is."""

    def __init__(self, table: Table) -> None:
        self._files = table.files
        self._kept = AsideStore(table.files.store)
        # Pages never change: what of the history is nobody's must not get there.
        self._side = aside(_with_store(table, self._kept), stores_heads=False)

    def add(self, commit: GroupCommit) -> Exception | None:
        """Make one more commit; return what it was refused with, and be as without it then."""
        before = self._side.table
        state = before.state
        try:
            commit(before)
        except Exception as error:
            # One that nobody foresaw may have come after its swap.
            before.state = state
            again = aside(before, stores_heads=False)
            self._side = replace(self._side, table=again.table)
            return error
        return None

    def land(self, catalog: Catalog) -> State | None:
        """Store what was made, swap it in and return it; None when another came first."""
        if not self._side.is_changed:
            return self._side.start
        state, new = self._head()
        try:
            self._files.store.write_many(new.items())
            done = Table(catalog=catalog, files=self._files, state=state)
            land(catalog, [Aside(table=done, start=self._side.start)])
        except CommitUnknown:
            raise
        except CommitExhausted:
            self._discard(new)
            return None
        except IcetreeError:
            # Nothing was swapped: a swap whose answer is lost says so.
            self._discard(new)
            raise
        return state

    def _head(self) -> tuple[State, dict[str, bytes]]:
        """Return the one head that all commits come to, and the files that it needs.

        Heads in between are nobody's: neither they nor pages of history that only they name are kept.
        """
        start, made = self._side.start, self._side.table.state
        assert start is not None
        location = made.metadata.location
        previous = stored_form(start.metadata_location, location)
        metadata = structs.replace(
            made.metadata,
            metadata_log=start.metadata.metadata_log,
            snapshot_log=_log(start.metadata, made.metadata),
        )
        paged = with_pages(metadata, self._side.table.files)
        metadata = with_previous(paged.metadata, previous, start.metadata)
        file = metadata_file(metadata, after=start.metadata_location)
        at = absolute(file.location, location)
        pages = {absolute(each.location, location) for each in metadata.snapshot_pages}
        new = {
            each: content
            for each, content in self._kept.new.items()
            if not each.endswith(".page.json.gz") or each in pages
        }
        new |= {absolute(each, location): page for each, page in paged.files.items()}
        new[at] = file.content
        return State(name=made.name, metadata=metadata, metadata_location=at), new

    def _discard(self, new: dict[str, bytes]) -> None:
        """Remove files that no head can name; leaving one behind does no harm but space."""
        with suppress(Exception):
            self._files.store.delete(new)


def _log(start: TableMetadata, made: TableMetadata) -> tuple[LogEntry, ...]:
    """Return which snapshot was current when: of all that a group made only the last, and from its end.

    A moment shows nothing before that, since nobody could have seen it.
    """
    known = [each for each in made.snapshot_log if each in start.snapshot_log]
    new = [each for each in made.snapshot_log if each not in start.snapshot_log]
    last = [structs.replace(each, timestamp_ms=made.last_updated_ms) for each in new[-1:]]
    return (*known, *last)


def _with_store(table: Table, store: AsideStore) -> Table:
    files: TableFiles = replace(table.files, store=store)
    return Table(catalog=table.catalog, files=files, state=table.state)
