"""Purging a table: its name goes, then the files in its folder that it named, of old snapshots too.

What goes is settled before the name does, for the next table may take name and folder at once.
Files elsewhere, or in a folder of another table below, may be another's: they stay. Data goes
before the manifests that name it, and the newest metadata file last: whoever is cut off can
register that file, and purge again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import CommitConflict, CommitExhausted, CorruptTable, InvalidInput, NotFound
from icetree.spec.entry.entry import FILES, MANIFESTS, Content, is_content
from icetree.spec.location import prefix_of, stored_form
from icetree.spec.locations import is_uri
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.short import short
from icetree.table.maintain.deleting import counts_of, delete, require_own_files
from icetree.table.maintain.orphans.links import comparable
from icetree.table.maintain.orphans.names import Place
from icetree.table.maintain.orphans.neighbours import Neighbour, neighbours, require_apart
from icetree.table.maintain.orphans.theirs import Theirs
from icetree.table.maintain.reach import (
    VERSION_HINT,
    Reach,
    less,
    named,
    named_by,
    names_in,
    none_named,
    once,
    tops_of,
)
from icetree.table.progress import Progress
from icetree.visible import log_of

if TYPE_CHECKING:
    from icetree.table.table import Table

log = log_of(__name__)

#: How often it is looked anew what there is, when others commit meanwhile.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """What went with a table, or with `dry_run` would; counts are named as Iceberg's action does."""

    deleted_data_files_count: int
    deleted_position_delete_files_count: int
    deleted_equality_delete_files_count: int
    deleted_manifest_files_count: int
    deleted_manifest_lists_count: int
    deleted_other_files_count: int
    dry_run: bool = False
    #: Files that could not be deleted: nothing names them any more.
    left_behind: tuple[str, ...] = ()

    __repr__ = short

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return asdict(self)

    def __str__(self) -> str:
        counts = (count for name, count in asdict(self).items() if name.endswith("_count"))
        return f"{sum(counts):,} files"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Going:
    """All that can go of a table as one metadata file has it, in that order."""

    in_trees: pa.Table
    beside: pa.Table
    newest: pa.Table

    def told(self, *, dry_run: bool = False, left: tuple[str, ...] = ()) -> Purged:
        """Tell what went, or would."""
        every = (self.in_trees, self.beside, self.newest)
        in_trees, *others = (less(each, named(left)) for each in every)
        return Purged(
            **counts_of(in_trees),
            deleted_other_files_count=sum(each.num_rows for each in others),
            dry_run=dry_run,
            left_behind=left,
        )

    def locations(self) -> list[str]:
        """Return the files, in the order in which they go."""
        parts = pa.concat_tables([self.in_trees, self.beside, self.newest])
        found: list[str] = parts["location"].to_pylist()
        return found


def purge(table: Table, *, dry_run: bool = False, progress: Progress | None = None) -> Purged:
    """Drop a table and delete the files in its own folder; those outside of it stay.

    Nothing is changed where another table has the same folder. What lies in a folder of another
    table below stays too.
    """
    tell = progress or (lambda *_: None)
    for _ in range(_TRIES):
        going = _settled(table.refresh(), tell)
        if dry_run:
            return going.told(dry_run=True)
        newest = table.state.metadata_location
        log.info(
            "dropping %s with its files; if that is cut off, register %s and drop it again",
            table.name,
            newest,
        )
        # Only as it was looked at. When the answer is lost this raises, and every file stays.
        try:
            table.catalog.drop(table.name, expected=newest)
        except CommitConflict:
            continue
        left = delete(table.metadata, table.files, going.locations(), tell)
        return going.told(left=left)
    raise CommitExhausted(
        f"table {table.name}: others commit to it all the time; stop them, then drop it"
    )


def _settled(table: Table, tell: Progress) -> _Going:
    """Return all that can go of a table as its handle has it."""
    state = table.state
    require_own_files(state.metadata, table.name)
    newest = named([stored_form(state.metadata_location, table.location)])
    found, beside, strays = _named_in_trees(table, tell), _beside(table), _listed(table)
    # Asked only now, so that a table that came below while files were listed keeps its own.
    near = neighbours(table)
    require_apart(table, comparable(table.location, table.location), near)
    strays = _less_theirs(less(strays, once([found, beside])), table)
    others = less(once([beside, strays]), once([found, newest]))
    mine = (_own(each, table.location, near) for each in (found, others, newest))
    return _Going(in_trees=next(mine), beside=next(mine), newest=next(mine))


def _own(found: pa.Table, location: str, others: tuple[Neighbour, ...]) -> pa.Table:
    """Return the files that lie in the table's folder, and in no other table's below."""
    own = comparable(location, location)
    foreign = is_uri(found["location"])
    for folder in {each.folder for each in others if each.folder.startswith(own)}:
        theirs = pc.starts_with(found["location"], folder.removeprefix(own))
        foreign = pc.or_(foreign, theirs)
    kept = found.filter(pc.invert(foreign))
    if count := found.num_rows - kept.num_rows:
        log.warning("files that stay, being outside of %s or in another table: %d", own, count)
    return kept


def _named_in_trees(table: Table, tell: Progress) -> pa.Table:
    reach, files, shape = Reach(), table.files, table.metadata.shape()
    every = [*_readable_history(table)]
    for done, each in enumerate(every, start=1):
        _attempt(reach.add, each, files, shape)
        tell("trees", done, len(every))
    reader = files.reader(shape)
    parts = [_attempt(names_in, leaf, reader) for leaf in reach.leaves.values()]
    tops = [top for each in every for top in tops_of(each, table.location)]
    found = once([reach.settle(), named(tops), *(each for each in parts if each is not None)])
    by_level = (FILES, (*MANIFESTS, Content.MANIFEST_DV))
    levels = [found.filter(_of(found, *contents)) for contents in by_level]
    return pa.concat_tables([*levels, found.filter(pc.is_null(found["content_type"]))])


def _of(found: pa.Table, *contents: Content) -> Any:
    return pc.fill_null(is_content(found, *contents), False)


def _readable_history(table: Table) -> Iterator[Snapshot]:
    yield from table.metadata.snapshots
    for page in table.metadata.snapshot_pages:
        held = _attempt(table.files.page, page)
        yield from () if held is None else held.snapshots


def _attempt(read: Any, *args: Any) -> Any:
    """Read what may be gone since an earlier purge was cut off, or be damaged: then it stays so."""
    try:
        return read(*args)
    except (CorruptTable, NotFound) as error:
        log.warning("files that only this names stay behind: %s", error)
        return None


def _beside(table: Table) -> pa.Table:
    """Return what is named beside trees; of the hint it is not known whether it is there."""
    return less(named_by(table.state), named([VERSION_HINT]))


def _listed(table: Table) -> pa.Table:
    """Return what lies in the metadata folder: of lost tries too."""
    folder = f"{prefix_of(table.location)}metadata"
    listed = table.files.store.list(folder)
    return named(stored_form(each.location, table.location) for each in listed)


def _less_theirs(strays: pa.Table, table: Table) -> pa.Table:
    """Return what the table does not name, but for what others do; none where that is not known."""
    place = Place(location=table.location, folder=table.location)
    try:
        return Theirs(table=table, place=place).less(strays)
    except InvalidInput as error:
        log.warning("files that nothing of the table names stay behind: %s", error)
        return none_named()
