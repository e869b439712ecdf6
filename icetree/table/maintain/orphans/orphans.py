"""Removing orphan files: what lies in a table's folder and nothing of the table names.

The folder is listed first and the table's head read after it, so that whatever was committed up to
then keeps its files; before each batch of deletes the catalog is asked once more, of this table and of
the others, which may have come meanwhile. A commit that is still under way has files that nothing
names yet: these are told by their age, which the store's own clock gives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, get_args

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import CommitConflict, CorruptTable, InvalidInput, NotFound
from icetree.spec.arrays import one_chunk
from icetree.spec.location import absolute, leads_up, no_name
from icetree.spec.locations import absolute_array
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.pages import history
from icetree.spec.short import short
from icetree.spec.texts import text
from icetree.store.local import TEMPORARY
from icetree.surroundings import now_ms
from icetree.table.maintain.deleting import BATCH, delete, require_own_files, shares_files
from icetree.table.maintain.exports import less_exports
from icetree.table.maintain.newest import has_gone_on
from icetree.table.maintain.orphans.links import comparable
from icetree.table.maintain.orphans.names import (
    Place,
    listed,
    mismatched,
    same_authorities,
    same_schemes,
    spelled,
)
from icetree.table.maintain.orphans.neighbours import WRITE_PATHS, neighbours, require_apart
from icetree.table.maintain.orphans.theirs import Theirs
from icetree.table.maintain.reach import Reach, less, named, named_by, needed_below
from icetree.table.point import milliseconds
from icetree.table.progress import Progress

if TYPE_CHECKING:
    from icetree.table.table import Table

Mismatch: TypeAlias = Literal["error", "ignore", "delete"]

_HOUR_MS: Final = 3_600_000
_THREE_DAYS_MS: Final = 3 * 24 * _HOUR_MS
#: How often the table is looked at anew when others expire what was being looked at.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphans:
    """What went, or with `dry_run` would go."""

    orphan_file_location: tuple[str, ...]
    dry_run: bool
    #: Files that could not be deleted.
    left_behind: tuple[str, ...] = ()

    __repr__ = short

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return asdict(self)

    def __str__(self) -> str:
        verb = "would remove" if self.dry_run else "removed"
        gone = len(self.orphan_file_location) - len(self.left_behind)
        left = f"; {len(self.left_behind):,} stay behind" if self.left_behind else ""
        return f"{verb} {gone:,} orphan files{left}"


class Listed(Protocol):
    """The files that lie in a folder, and may be orphans: in this process, or in many."""

    def less(
        self, needed: pa.Table, reach: Reach, table: Table, *, but: Collection[str]
    ) -> tuple[pa.Table, pa.Array]:
        """Return those that are neither needed nor below a leaf, but for leaves known before.

        And of what is needed the files outside the table that one of those may be.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """A listing in this process."""

    found: pa.Table
    place: Place

    def less(
        self, needed: pa.Table, reach: Reach, table: Table, *, but: Collection[str]
    ) -> tuple[pa.Table, pa.Array]:
        """Look leaf by leaf, so that memory follows what was listed and not what the table holds."""
        found, outside = self.found, [pa.array([], pa.string())]
        below = needed_below(reach, table.files.reader(table.metadata.shape()), but=but)
        for some in chain((needed, reach.settle()), below):
            names, far = spelled(some, self.place)
            found = less(found, named(names))
            outside.append(far)
        return found, pa.concat_arrays(outside)


#: Lists a folder, for as long as it takes to tell orphans.
Lister: TypeAlias = "Callable[[Table, Place, Progress], AbstractContextManager[Listed]]"


def list_here(table: Table, place: Place, tell: Progress) -> AbstractContextManager[Listed]:
    """List a folder in this process."""
    parts = [named(each) for each in listed(table.files.store, place, tell)]
    return nullcontext(Here(found=pa.concat_tables(parts), place=place))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """What is looked for."""

    table: Table
    place: Place
    mode: Mismatch
    tell: Progress


def remove_orphan_files(
    table: Table,
    *,
    older_than: datetime | str | None = None,
    location: str | None = None,
    prefix_mismatch_mode: str = "error",
    equal_schemes: Mapping[str, str] | None = None,
    equal_authorities: Mapping[str, str] | None = None,
    force: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
    list_folder: Lister = list_here,
) -> Orphans:
    """Delete what lies in the table's folder and is neither needed nor young."""
    metadata = table.refresh().metadata
    require_own_files(metadata, table.name)
    folder = _folder(metadata, location)
    others = neighbours(table, folder=folder)
    search = _Search(
        table=table,
        place=Place(
            location=metadata.location,
            folder=folder,
            older_than_ms=_guard(older_than, force=force),
            ours=_ours(metadata),
            others=tuple({each.folder for each in others}),
            equal=(*_schemes(equal_schemes), *_authorities(equal_authorities)),
        ),
        mode=_mode(prefix_mismatch_mode),
        tell=progress or (lambda *_: None),
    )
    require_apart(table, comparable(folder, metadata.location), others)
    known = _Known(search=search)
    with list_folder(table, search.place, search.tell) as there:
        # Read only now, so that whatever was committed while the listing went on is known.
        table.refresh()
        found = known.less_needed(there)
    theirs = Theirs(table=table, place=search.place)
    found = theirs.less(found)
    if dry_run:
        return Orphans(orphan_file_location=_told(found, search), dry_run=True)
    return _delete(found, known, theirs)


def _delete(found: pa.Table, known: _Known, theirs: Theirs) -> Orphans:
    search, table = known.search, known.search.table
    gone: list[str] = []
    left: list[str] = []
    while found.num_rows:
        before = table.state
        if table.refresh().state is not before:
            require_own_files(table.metadata, table.name)
            found = known.less_needed(Here(found=found, place=search.place))
        found = theirs.less(found)
        some, found = found.slice(0, BATCH), found.slice(BATCH)
        left += delete(table.metadata, table.files, some["location"].to_pylist(), lambda *_: None)
        gone += _told(some, search)
        search.tell("files deleted", len(gone), len(gone) + found.num_rows)
    return Orphans(
        orphan_file_location=tuple(gone),
        dry_run=False,
        left_behind=tuple(absolute(each, search.place.location) for each in left),
    )


def _told(found: pa.Table, search: _Search) -> tuple[str, ...]:
    return tuple(absolute_array(found["location"], search.place.location).to_pylist())


# --- what was asked ----------------------------------------------------------------------------


def _guard(older_than: datetime | str | None, *, force: bool) -> int:
    """Return the time before which a file must be from."""
    at_ms = now_ms()
    if older_than is None:
        return at_ms - _THREE_DAYS_MS
    given = milliseconds(older_than, what="older_than")
    if given > at_ms - _HOUR_MS and not force:
        raise InvalidInput(
            f"older_than={older_than} is less than an hour ago, and a commit that is under way may "
            "have written such files: give an earlier time, or force=True while nobody writes"
        )
    return given


def _mode(given: str) -> Mismatch:
    for each in get_args(Mismatch):
        if text(given, what="prefix_mismatch_mode").lower() == each:
            return each  # type: ignore[no-any-return]
    allowed = ", ".join(map(repr, get_args(Mismatch)))
    raise InvalidInput(f"prefix_mismatch_mode={given!r}: allowed are {allowed}")


def _folder(metadata: TableMetadata, location: str | None) -> str:
    """Return the folder to look in, which must be one of the table's."""
    if location is None:
        return metadata.location
    folder = absolute(text(location, what="location"), metadata.location)
    if leads_up(folder):
        raise InvalidInput(no_name(location))
    own = [metadata.properties.get(each) for each in WRITE_PATHS]
    own = [] if shares_files(metadata) else own
    places = [metadata.location, *(absolute(each, metadata.location) for each in own if each)]
    asked = comparable(folder, metadata.location)
    if not any(asked.startswith(comparable(each, metadata.location)) for each in places):
        raise InvalidInput(
            f"location={location!r} is no folder of the table: give one at or below {places[0]}"
        )
    return folder


def _schemes(equal: Mapping[str, str] | None) -> Iterator[tuple[str, str]]:
    for given, same in (equal or {}).items():
        for each in given.split(","):
            yield same_schemes(each.strip(), same)


def _authorities(equal: Mapping[str, str] | None) -> Iterator[tuple[str, str]]:
    for given, same in (equal or {}).items():
        for each in given.split(","):
            yield same_authorities(each.strip(), same)


def _ours(metadata: TableMetadata) -> tuple[str, ...]:
    """Return patterns of hidden names: temporary files of the local store, and partitions' columns."""
    expressions, _ = metadata.partitioning
    return (
        rf"{re.escape(TEMPORARY)}[^/]*$",
        *(f"{re.escape(each.name)}=" for each in expressions),
    )


# --- what is needed ----------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Known:
    """What the table is known to need; as its head moves on, only what is new is looked at."""

    search: _Search
    snapshot_ids: set[int] = field(default_factory=set)
    leaves: set[str] = field(default_factory=set)

    def less_needed(self, there: Listed) -> pa.Table:
        """Return the files that the table, as its handle sees it now, does not need."""
        table = self.search.table
        for _ in range(_TRIES - 1):
            state = table.state
            try:
                return self._less_needed(there)
            except (CorruptTable, NotFound):
                if not has_gone_on(table, state):
                    raise
        return self._less_needed(there)

    def _less_needed(self, there: Listed) -> pa.Table:
        table = self.search.table
        if table.location != self.search.place.location:
            raise CommitConflict(
                f"table {table.name} was moved to {table.location} meanwhile: start again there"
            )
        files, shape = table.files, table.metadata.shape()
        every = history(table.metadata, files.page)
        new = [each for each in every if each.snapshot_id not in self.snapshot_ids]
        reach = Reach()
        reach.gather(new, files, shape, what="trees", tell=self.search.tell)
        found, outside = there.less(named_by(table.state), reach, table, but=self.leaves)
        found = less_exports(found, reach, files.reader(shape), table.state)
        self.snapshot_ids |= {each.snapshot_id for each in new}
        self.leaves |= reach.leaves.keys()
        if not (found.num_rows and len(outside)) or self.search.mode == "delete":
            return found
        alike = mismatched(
            one_chunk(found["location"]),
            outside,
            refuses=self.search.mode == "error",
            location=table.location,
        )
        return found.filter(pc.invert(alike))
