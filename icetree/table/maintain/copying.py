"""Copying a whole table elsewhere, history and all, while writers go on.

Names in a v4 table are relative, so a copy of its files is a table. Files never change: one that is
there is not copied again, which makes a second backup a short one. The newest metadata file comes
last, so that the place always holds whole tables only.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from icetree.codec import metadata as metadata_codec
from icetree.errors import AlreadyExists, CommitExhausted, InvalidInput, NotFound
from icetree.files.parallel import in_order
from icetree.files.table_files import TableFiles, read_metadata
from icetree.spec.location import absolute, leads_up, no_name, prefix_of, stored_form
from icetree.spec.locations import is_uri, stored_form_array
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.pages import history
from icetree.spec.short import short
from icetree.store.base import Store
from icetree.table.maintain.newest import has_gone_on
from icetree.table.maintain.orphans.links import comparable
from icetree.table.maintain.orphans.neighbours import neighbours, require_apart
from icetree.table.maintain.reach import (
    VERSION_HINT,
    Reach,
    less,
    named,
    named_by,
    needed_below,
    once,
)
from icetree.table.movable import require_movable
from icetree.table.progress import Progress
from icetree.table.state import State
from icetree.visible import visible

if TYPE_CHECKING:
    from icetree.table.table import Table

#: How often it is begun anew, when files expire while they are copied.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """What copying a table would come to."""

    #: Where the copy's metadata would be.
    metadata_location: str
    #: Files that are copied, its newest metadata among them, and those that are there already.
    copied_files_count: int
    kept_files_count: int
    dry_run: bool = True

    __repr__ = short

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return asdict(self)

    def __str__(self) -> str:
        kept = f"; {self.kept_files_count:,} are there" if self.kept_files_count else ""
        return visible(
            f"would copy {self.copied_files_count:,} files, for {self.metadata_location}{kept}"
        )


def would_copy(
    table: Table, location: str, store: Store, *, progress: Progress | None = None
) -> Copied:
    """Tell what `copy` would do: what manifests of Avro name in full, only the copy itself finds."""
    require_place(table, location)
    state = table.refresh().state
    every = _every_file(table, progress or (lambda *_: None))
    missing = len(_missing(every, location, store))
    at = _newest_at(state, location)
    is_there = store.exists(at)
    return Copied(
        metadata_location=at,
        copied_files_count=missing + (not is_there),
        kept_files_count=len(every) - missing + is_there,
    )


def copy(
    table: Table,
    location: str,
    store: Store,
    *,
    uuid: str | None = None,
    progress: Progress | None = None,
) -> str:
    """Copy a table's files elsewhere, and return where the copy's metadata is.

    With a `uuid` the copy is a table of its own. `store` has both places.
    """
    tell = progress or (lambda *_: None)
    require_place(table, location)
    for _ in range(_TRIES):
        state = table.refresh().state
        try:
            _copy(table, _missing(_every_file(table, tell), location, store), location, store, tell)
        except NotFound:
            if not has_gone_on(table, state):
                raise
        else:
            # What is named in full would stay the file of the table that was copied.
            require_movable(state.metadata, _there(table, location, store))
            return _write_metadata(state, location, store, uuid)
    raise CommitExhausted(
        f"table {table.name}: files expire faster than they are copied; copy it again, which goes "
        "on where this one stopped"
    )


def _there(table: Table, location: str, store: Store) -> TableFiles:
    """Return the files of the copy."""
    return TableFiles(store=store, location=location, ring=table.files.ring)


def is_begun(table: Table, location: str, store: Store) -> bool:
    """Tell whether a table lies at a place that `copy` made of this one, and that has its id alone."""
    at = _newest_at(table.state, location)
    if not store.exists(at):
        return False
    there = read_metadata(store, at)
    is_own = there.table_uuid != table.metadata.table_uuid
    return is_own and _is_alike(there, _metadata_of(table.state, location))


def _newest_at(state: State, location: str) -> str:
    return f"{prefix_of(location)}metadata/{state.metadata_location.rpartition('/')[2]}"


def _metadata_of(state: State, location: str, uuid: str | None = None) -> TableMetadata:
    return replace(
        state.metadata,
        location=location,
        table_uuid=uuid or state.metadata.table_uuid,
        # Former metadata files stay where they are.
        metadata_log=(),
    )


def _write_metadata(state: State, location: str, store: Store, uuid: str | None) -> str:
    metadata, at = _metadata_of(state, location, uuid), _newest_at(state, location)
    compress = at.endswith(".gz.metadata.json")
    try:
        store.write_new(at, metadata_codec.encode(metadata, compress=compress))
    except AlreadyExists:
        # A backup of the same state may be there already, or be made at this very moment; so may a
        # table of its own that got no name, which is taken up. Neither is taken for the other.
        there = read_metadata(store, at)
        is_backup = there.table_uuid == state.metadata.table_uuid
        if not (is_backup if uuid is None else not is_backup and _is_alike(there, metadata)):
            raise
    return at


def _is_alike(one: TableMetadata, other: TableMetadata) -> bool:
    """Tell whether two tables differ in nothing but their id."""
    other = replace(other, table_uuid=one.table_uuid)
    encoded = [metadata_codec.encode(each, compress=False) for each in (one, other)]
    return encoded[0] == encoded[1]


def require_place(table: Table, location: str) -> None:
    """Refuse a place that is no place for a copy, and a table that none can be made of."""
    if leads_up(location):
        raise InvalidInput(no_name(location))
    if table.metadata.format_version < 4:
        raise InvalidInput(
            f"table {table.name} is of v{table.metadata.format_version}, where files are named in "
            "full: upgrade it, then copy it"
        )
    # A path without a scheme is one on this machine, wherever the table is.
    there = comparable(location, location if location.startswith("/") else table.location)
    here = comparable(table.location, table.location)
    if there.startswith(here) or here.startswith(there):
        raise InvalidInput(
            f"{location} and the table's own place {table.location} lie one in the other: choose "
            "another place for the copy"
        )
    require_apart(table, there, neighbours(table))


def _every_file(table: Table, tell: Progress) -> pa.Array:
    """Return what the table needs, but for its newest metadata."""
    files, shape, reach = table.files, table.metadata.shape(), Reach()
    reach.gather([*history(table.metadata, files.page)], files, shape, what="trees", tell=tell)
    below = needed_below(reach, files.reader(shape))
    found = once([named_by(table.state), reach.settle(), *below])
    newest = stored_form(table.state.metadata_location, table.location)
    former = [each.metadata_file for each in table.metadata.metadata_log]
    unwanted = named(stored_form(each, table.location) for each in former)
    found = less(less(found, unwanted), named([newest, VERSION_HINT]))
    names = found["location"].combine_chunks()
    for name in names.filter(is_uri(names))[:1].to_pylist():
        raise InvalidInput(
            f"{name} lies outside the table's folder, so a copy would share it: rewrite the table's "
            "data files, expire the snapshots before, then copy it"
        )
    return names


def _missing(names: pa.Array, location: str, store: Store) -> pa.Array:
    there = pa.array([each.location for each in store.list(location)], pa.string())
    known = stored_form_array(there, location)
    return names.filter(pc.invert(pc.is_in(names, value_set=known)))


def _copy(table: Table, names: pa.Array, location: str, store: Store, tell: Progress) -> None:
    def copy_one(name: str) -> None:
        content = store.read(absolute(name, table.location))
        with suppress(AlreadyExists):
            store.write_new(prefix_of(location) + name, content)

    for done, _ in enumerate(in_order(copy_one, names.to_pylist()), start=1):
        tell("files copied", done, len(names))
