"""Several tables, or several commits to one, that are seen at once or not at all.

Commits are made aside, on a catalog of their own that starts where the table is; then one swap of
all heads makes what they came to visible. Files that are lost when it is refused are orphans, as
those of any writer that ended too early.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from icetree.catalog.base import Catalog, Outcome, Stale, Swap, Swapped, TableName, Unknown
from icetree.errors import CommitExhausted, CommitUnknown, IcetreeError, NotFound, Unavailable
from icetree.files.table_files import TableFiles
from icetree.spec.location import absolute
from icetree.table.commit.backoff import between_questions
from icetree.table.commit.landed import after_landing
from icetree.table.rehearsal import catalog_of
from icetree.table.state import State
from icetree.table.table import Table

#: How often a swap is asked for whose answer was lost.
_ASKS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """A table whose commits nobody sees before they land."""

    table: Table
    #: The head that it starts from; None of a table that is to be made.
    start: State | None

    @property
    def before(self) -> str | None:
        """Where the metadata is that it starts from."""
        return None if self.start is None else self.start.metadata_location

    @property
    def is_changed(self) -> bool:
        """Whether there is something to land."""
        return self.table.state.metadata_location != self.before


def aside(table: Table, *, stores_heads: bool = True) -> Aside:
    """Return a table to commit to that starts where another is; heads in between may stay in memory."""
    made = _alone(table.state, table.files, stores_heads=stores_heads)
    return Aside(table=made, start=table.state)


def new_aside(staged: Table) -> Aside:
    """Return a table that is to be made, of which the first metadata file is written already."""
    return Aside(table=_alone(staged.state, staged.files), start=None)


def _alone(state: State, files: TableFiles, *, stores_heads: bool = True) -> Table:
    catalog = catalog_of(state, stores_heads=stores_heads)
    return Table(catalog=catalog, files=files, state=state)


def land(catalog: Catalog, sides: Sequence[Aside]) -> None:
    """Make what was committed aside the heads of the tables, all of them or none.

    CommitExhausted, when another came first; AlreadyExists, for a table that was to be made;
    CommitUnknown, when it could not be learnt what became of it.
    """
    swaps = [
        Swap(table=each.table.name, expected=each.before, to=each.table.state.metadata_location)
        for each in sides
        if each.is_changed
    ]
    if not swaps:
        return
    match _asked(catalog, swaps, sides[0].table):
        case Stale(metadata_location=head):
            names = ", ".join(str(each.table) for each in swaps)
            raise CommitExhausted(f"{names}: another commit came first ({head}); read again")
        case Unknown(reason=reason):
            names = ", ".join(str(each.table) for each in swaps)
            raise CommitUnknown(
                f"{names}: the commit may or may not have happened ({reason}); look at the tables "
                "before trying again"
            )
    for each in sides:
        if each.is_changed:
            after_landing(each.start, each.table.state, None, each.table.files)


def discard(catalog: Catalog, sides: Sequence[Aside]) -> None:
    """Delete the metadata files of tables that were to be made, and for certain were not.

    Nobody else knows of them, and their place is free again without. What a head names stays.
    """
    for each in sides:
        if each.start is not None:
            continue
        state, files = each.table.state, each.table.files
        log = (entry.metadata_file for entry in state.metadata.metadata_log)
        made = {absolute(at, files.location) for at in (state.metadata_location, *log)}
        with suppress(IcetreeError):
            if _head(catalog, state.name) not in made:
                files.delete(made)


def _asked(catalog: Catalog, swaps: Sequence[Swap], table: Table) -> Outcome:
    """Swap; where the answer was lost, find out by asking for the heads."""
    outcome = _swapped(catalog, swaps)
    if not isinstance(outcome, Unknown):
        return outcome
    for pause in islice(between_questions(table.properties), _ASKS):
        pause()
        try:
            heads = {each.table: _head(catalog, each.table) for each in swaps}
        except Unavailable:
            continue
        except IcetreeError as error:
            # Nothing is learnt by asking: what was swapped in may be there all the same.
            return Unknown(reason=f"{outcome.reason}; then {error}")
        if all(heads[each.table] == each.to for each in swaps):
            return Swapped()
        # Others may have committed on top of what was swapped in, or instead of it.
        return outcome
    return outcome


def _swapped(catalog: Catalog, swaps: Sequence[Swap]) -> Outcome:
    only = swaps[0]
    if len(swaps) > 1 or only.expected is None:
        return catalog.swap_all(swaps)
    return catalog.swap(only.table, expected=only.expected, to=only.to)


def _head(catalog: Catalog, table: TableName) -> str | None:
    try:
        return catalog.load(table)
    except NotFound:
        return None
