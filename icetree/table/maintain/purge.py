"""Purging a table: its name goes, then every file that it named, those of old snapshots too.

Data goes before the manifests that name it, and the newest metadata file last: whoever is cut off
can register that file, and purge again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import CommitExhausted, CorruptTable, NotFound
from icetree.spec.entry import FILES, MANIFESTS, Content, is_content
from icetree.spec.location import prefix_of, stored_form
from icetree.spec.snapshot import Snapshot
from icetree.table.maintain.deleting import counts_of, delete, require_own_files
from icetree.table.maintain.neighbours import comparable, neighbours, require_apart
from icetree.table.maintain.reach import Reach, less, named, named_by, names_in, once, tops_of
from icetree.table.progress import Progress

if TYPE_CHECKING:
    from icetree.table.table import Table

log = logging.getLogger(__name__)

#: How often it is looked anew what there is, when others commit meanwhile.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """What went with a table; counts are named as Iceberg's action names them."""

    deleted_data_files_count: int
    deleted_position_delete_files_count: int
    deleted_equality_delete_files_count: int
    deleted_manifest_files_count: int
    deleted_manifest_lists_count: int
    deleted_other_files_count: int
    #: Files that could not be deleted: nothing names them any more.
    left_behind: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{sum(v for v in asdict(self).values() if isinstance(v, int)):,} files"


def purge(table: Table, *, progress: Progress | None = None) -> Purged:
    """Drop a table and delete its files; nothing is changed where they may be another's."""
    tell = progress or (lambda *_: None)
    require_own_files(table.refresh().metadata, table.name)
    require_apart(table, comparable(table.location, table.location), neighbours(table))
    found = _every_file(table, tell)
    newest = stored_form(table.state.metadata_location, table.location)
    log.info(
        "dropping %s with its files; if that is cut off, register %s and drop it again",
        table.name,
        table.state.metadata_location,
    )
    # When its answer is lost this raises, and every file stays.
    table.catalog.drop(table.name)
    former = _former(table, newest)
    others = less(once([named_by(table.state), former]), once([found, named([newest])]))
    rest = others["location"].to_pylist()
    names = [*found["location"].to_pylist(), *rest, newest]
    left = delete(table.files, names, tell)
    counts = counts_of(found)
    return Purged(**counts, deleted_other_files_count=len(rest) + 1, left_behind=left)


def _every_file(table: Table, tell: Progress) -> pa.Table:
    """Return all that trees name, in the order in which it can go, as of the newest head."""
    for _ in range(_TRIES):
        state = table.state
        found = _named_in_trees(table, tell)
        if table.refresh().state is state:
            return found
    raise CommitExhausted(
        f"table {table.name}: others commit to it all the time; stop them, then drop it"
    )


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


def _former(table: Table, newest: str) -> pa.Table:
    """Return what lies in the table's metadata folder: of former metadata and of lost tries."""
    folder = f"{prefix_of(table.location)}metadata"
    listed = [stored_form(each.location, table.location) for each in table.files.store.list(folder)]
    return named(each for each in listed if each != newest)
