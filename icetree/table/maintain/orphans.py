"""Removing orphan files: what lies in a table's folder and nothing of the table names.

The folder is listed first and the table's head read after it, so that whatever was committed up to
then keeps its files; before each batch of deletes the catalog is asked once more. A commit that is
still under way has files that nothing names yet: these are told by their age, which the store's own
clock gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import CommitConflict, CorruptTable, InvalidInput, NotFound
from icetree.spec.location import absolute, leads_up, no_name
from icetree.spec.locations import absolute_array, is_uri, stored_form_array
from icetree.spec.metadata import TableMetadata
from icetree.spec.pages import history
from icetree.spec.texts import text
from icetree.store.local import TEMPORARY
from icetree.surroundings import now_ms
from icetree.table.maintain.deleting import BATCH, delete, require_own_files, shares_files
from icetree.table.maintain.exports import less_exports
from icetree.table.maintain.neighbours import (
    WRITE_PATHS,
    Neighbour,
    comparable,
    neighbours,
    require_apart,
)
from icetree.table.maintain.reach import Reach, less, named, named_by, needed_below, none_named
from icetree.table.point import milliseconds
from icetree.table.progress import Progress

if TYPE_CHECKING:
    from icetree.table.table import Table

Mismatch: TypeAlias = Literal["error", "ignore", "delete"]

_HOUR_MS: Final = 3_600_000
_THREE_DAYS_MS: Final = 3 * 24 * _HOUR_MS
#: How often the table is looked at anew when others expire what was being looked at.
_TRIES: Final = 5
#: Listed names become Arrow so many at a time.
_PORTION: Final = 50_000
#: A part of a name that readers of folders pass over.
_HIDDEN: Final = r"(?:^|/)[_.][^/]*"
#: Versions of a table that is, or was, a folder: found by their numbers, and not by name.
_NUMBERED: Final = r"(?:^|/)metadata/v\d+\.(?:gz\.)?metadata\.json(?:\.gz)?$"


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphans:
    """What went, or with `dry_run` would go."""

    orphan_file_location: tuple[str, ...]
    dry_run: bool
    #: Files that could not be deleted.
    left_behind: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return asdict(self)

    def __str__(self) -> str:
        verb = "would remove" if self.dry_run else "removed"
        gone = len(self.orphan_file_location) - len(self.left_behind)
        left = f"; {len(self.left_behind):,} stay behind" if self.left_behind else ""
        return f"{verb} {gone:,} orphan files{left}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """What is looked for, and how names are told apart."""

    table: Table
    #: The table's location and the folder to look in.
    location: str
    folder: str
    older_than_ms: int
    mode: Mismatch
    #: Patterns at the start of names, and what is the same.
    equal: tuple[tuple[str, str], ...]
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
) -> Orphans:
    """Delete what lies in the table's folder and is neither needed nor young."""
    metadata = table.refresh().metadata
    require_own_files(metadata, table.name)
    search = _Search(
        table=table,
        location=metadata.location,
        folder=_folder(metadata, location),
        older_than_ms=_guard(older_than, force=force),
        mode=_mode(prefix_mismatch_mode),
        equal=(*_schemes(equal_schemes), *_authorities(equal_authorities)),
        tell=progress or (lambda *_: None),
    )
    others = neighbours(table)
    require_apart(table, comparable(search.folder, search.location), others)
    found = _less_others(_listed(search), search, others)
    # Read only now, so that whatever was committed while the listing went on is known.
    known = _Known(search=search)
    table.refresh()
    found = known.less_needed(found)
    if dry_run:
        return Orphans(orphan_file_location=_told(found, search), dry_run=True)
    return _delete(found, known)


def _delete(found: pa.Table, known: _Known) -> Orphans:
    search, table = known.search, known.search.table
    gone: list[str] = []
    left: list[str] = []
    while found.num_rows:
        before = table.state
        if table.refresh().state is not before:
            require_own_files(table.metadata, table.name)
            found = known.less_needed(found)
        some, found = found.slice(0, BATCH), found.slice(BATCH)
        left += delete(table.metadata, table.files, some["location"].to_pylist(), lambda *_: None)
        gone += _told(some, search)
        search.tell("files deleted", len(gone), len(gone) + found.num_rows)
    return Orphans(
        orphan_file_location=tuple(gone),
        dry_run=False,
        left_behind=tuple(absolute(each, search.location) for each in left),
    )


def _told(found: pa.Table, search: _Search) -> tuple[str, ...]:
    return tuple(absolute_array(found["location"], search.location).to_pylist())


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
            yield f"^{re.escape(each.strip())}://", f"{same}://"


def _authorities(equal: Mapping[str, str] | None) -> Iterator[tuple[str, str]]:
    for given, same in (equal or {}).items():
        for each in given.split(","):
            yield rf"^([^:/]+://){re.escape(each.strip())}/", rf"\1{same}/"


# --- what is there -----------------------------------------------------------------------------


def _listed(search: _Search) -> pa.Table:
    """Return the files in the folder that are old enough, by their stored names."""
    parts = [none_named()]
    names: list[str] = []

    def settle() -> None:
        stored = _visible(pa.array(names, pa.string()), search)
        parts.append(named(stored_form_array(stored, search.location)))
        names.clear()

    listing = search.table.files.store.list(search.folder)
    for seen, each in enumerate(listing, start=1):
        if each.modified_at_ms < search.older_than_ms:
            names.append(each.location)
        if seen % _PORTION == 0:
            settle()
            search.tell("files listed", seen, seen)
    settle()
    return pa.concat_tables(parts)


def _visible(names: pa.Array, search: _Search) -> pa.Array:
    """Leave out what readers of folders pass over: others keep notes there, such as checkpoints.

    Temporary files of the local store are ours, and a partition's column may have such a name.
    """
    below = pc.utf8_slice_codeunits(names, len(search.folder.rstrip("/")) + 1)
    expressions, _ = search.table.metadata.partitioning
    ours = "|".join(
        [rf"{re.escape(TEMPORARY)}[^/]*$"] + [f"{re.escape(e.name)}=" for e in expressions]
    )
    below = pc.replace_substring_regex(below, rf"(^|/)(?:{ours})", r"\1ours")
    kept = pc.match_substring_regex(below, f"{_HIDDEN}|{_NUMBERED}")
    return names.filter(pc.invert(kept))


def _less_others(found: pa.Table, search: _Search, others: tuple[Neighbour, ...]) -> pa.Table:
    """Leave out what lies in folders of other tables."""
    own = comparable(search.location, search.location)
    asked = comparable(search.folder, search.location)
    for folder in {each.folder for each in others}:
        if folder.startswith(asked):
            theirs = pc.starts_with(found["location"], folder.removeprefix(own))
            found = found.filter(pc.invert(theirs))
    return found


# --- what is needed ----------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Known:
    """What the table is known to need; as its head moves on, only what is new is looked at."""

    search: _Search
    snapshot_ids: set[int] = field(default_factory=set)
    leaves: set[str] = field(default_factory=set)

    def less_needed(self, found: pa.Table) -> pa.Table:
        """Return the files that the table, as its handle sees it now, does not need."""
        table = self.search.table
        for _ in range(_TRIES - 1):
            state = table.state
            try:
                return self._less_needed(found)
            except (CorruptTable, NotFound):
                # Another may have expired what was being looked at.
                if table.refresh().state is state:
                    raise
        return self._less_needed(found)

    def _less_needed(self, found: pa.Table) -> pa.Table:
        table = self.search.table
        if table.location != self.search.location:
            raise CommitConflict(
                f"table {table.name} was moved to {table.location} meanwhile: start again there"
            )
        files, shape = table.files, table.metadata.shape()
        every = history(table.metadata, files.page)
        new = [each for each in every if each.snapshot_id not in self.snapshot_ids]
        reach = Reach()
        reach.gather(new, files, shape, what="trees", tell=self.search.tell)
        below = needed_below(reach, files.reader(shape), but=self.leaves)
        outside = []
        for needed in (named_by(table.state), reach.settle(), *below):
            # Whatever named it, and however: by the name that the listing has for it.
            names = stored_form_array(needed["location"], self.search.location)
            found = less(found, named(names))
            far = _elsewhere(names, self.search)
            if far is not None:
                found = less(found, named(far))
                outside.append(far.filter(is_uri(far)))
        found = less_exports(found, reach, table.state)
        self.snapshot_ids |= {each.snapshot_id for each in new}
        self.leaves |= reach.leaves.keys()
        return _less_mismatched(found, outside, self.search)


def _elsewhere(names: pa.Array, search: _Search) -> pa.Array | None:
    """Return needed files outside the table, in the spelling that the caller calls equal."""
    names = names.filter(is_uri(names))
    if not len(names):
        return None
    own = pa.array([comparable(search.location, search.location)])
    for pattern, same in search.equal:
        names, own = (pc.replace_substring_regex(each, pattern, same) for each in (names, own))
    return stored_form_array(names, own[0].as_py())


def _less_mismatched(found: pa.Table, outside: list[pa.Array], search: _Search) -> pa.Table:
    """Leave out, or refuse, files whose name the table has too, but in another place."""
    if not outside or search.mode == "delete":
        return found
    far = pa.concat_arrays(outside)
    below = pc.replace_substring_regex(found["location"].combine_chunks(), r"^[^:/]+://[^/]*/", "")
    depths = pc.count_substring(below, "/")
    alike = pa.repeat(False, len(below))
    for depth in pc.unique(depths).to_pylist():
        pattern = rf"(?s)/(?P<end>(?:[^/]+/){{{depth}}}[^/]+)$"
        ends = pc.struct_field(pc.extract_regex(far, pattern), "end")
        same = pc.and_(pc.equal(depths, depth), pc.is_in(below, value_set=ends.drop_null()))
        alike = pc.or_(alike, same)
    if search.mode == "error" and pc.any(alike).as_py():
        name = below.filter(alike)[0].as_py()
        other = far.filter(pc.ends_with(far, f"/{name}"))[0].as_py()
        raise InvalidInput(
            f"{alike.true_count} files, such as {absolute(name, search.location)}, seem to be "
            f"orphans, but the table names {other}, which may be the same file: say which schemes or "
            "authorities are the same with equal_schemes or equal_authorities, or choose by "
            "prefix_mismatch_mode: 'ignore' leaves such files where they are, 'delete' deletes them"
        )
    return found.filter(pc.invert(alike))
