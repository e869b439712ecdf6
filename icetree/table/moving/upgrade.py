"""Upgrading a table to v4: what will happen, what is gained, what stands against it, and doing it.

One metadata file is written. Manifests stay as they are, as leaves of the tree, and so do all data
files, snapshots, branches and tags: no manifest is read for it, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from icetree.codec import metadata as metadata_codec
from icetree.errors import CommitExhausted, IcetreeError, InvalidInput, Unsupported
from icetree.files.table_files import TableFiles
from icetree.keys.base import Keeper
from icetree.keys.ring import ring_of
from icetree.spec.apply.apply import apply
from icetree.spec.entry.entry import Content, Entries, is_content
from icetree.spec.fields import FORMAT_VERSION
from icetree.spec.location import absolute, stored_form
from icetree.spec.metadata.metadata import TableMetadata, with_previous
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.short import short
from icetree.store.base import Store
from icetree.surroundings import now_ms
from icetree.table.commit.attempt import next_metadata_location
from icetree.table.evolve.evolve import upgrading
from icetree.table.moving.hadoop import mark_moved
from icetree.table.moving.source import Source, table_at
from icetree.visible import visible

if TYPE_CHECKING:
    from icetree.table.table import Table

#: How often it is begun anew, when others write to a folder meanwhile.
_TRIES: Final = 5
_LIVE: Final = ("added_files_count", "existing_files_count")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgraded:
    """What was done to a table, or with `dry_run` would be."""

    table: str
    #: The metadata that the table had before.
    metadata_location: str
    format_version: int
    #: How many there are; of files those of the current snapshot, None where its list counts none.
    snapshots: int
    leaves: int
    data_files: int | None
    delete_files: int | None
    #: What happens, and what is gained by it, a sentence each.
    does: tuple[str, ...]
    gains: tuple[str, ...]
    #: Why it cannot be; then nothing happens.
    reason: str | None
    dry_run: bool

    __repr__ = short

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return asdict(self)

    def __str__(self) -> str:
        if self.reason is not None:
            return visible(f"table {self.table} cannot become v{FORMAT_VERSION}: {self.reason}")
        verb = "would become" if self.dry_run else "is now"
        was = f"table {self.table} {verb} v{FORMAT_VERSION}; it was v{self.format_version}"
        lines = (was, *(f"- {each}" for each in (*self.does, *self.gains)))
        return "\n".join(map(visible, lines))


def upgrade(table: Table, *, dry_run: bool) -> Upgraded:
    """Upgrade a table of the lake."""
    table.refresh()
    told = described(str(table.name), _of(table), table.files, dry_run=dry_run)
    _require(told)
    if not dry_run:
        table.upgrade()
    return told


def upgrade_elsewhere(
    name: str, source: Source, place: str, store: Store, *, keeper: Keeper | None, dry_run: bool
) -> tuple[Upgraded, str]:
    """Upgrade a table that is in no catalog of ours, and return where its metadata is then.

    A table that is a folder goes no further there: other writers of the folder lose the race, or
    win it, and then it is begun anew on what they wrote.
    """
    for _ in range(_TRIES):
        ring = ring_of(source.metadata, keeper)
        files = TableFiles(store=store, location=source.metadata.location, ring=ring)
        told = described(name, source, files, dry_run=dry_run)
        _require(told)
        if dry_run or source.has_moved:
            return told, source.metadata_location
        at = _written(source, store)
        if source.version is None or mark_moved(source.version, place, at, store):
            return told, at
        with suppress(IcetreeError):
            store.delete([at])
        source = table_at(place, store)
    raise CommitExhausted(f"{place}: others write to it all the time; stop them, then upgrade it")


def described(name: str, source: Source, files: TableFiles, *, dry_run: bool) -> Upgraded:
    """Tell what an upgrade does; only the list of the current snapshot's manifests is read."""
    metadata = source.metadata
    if source.has_moved:
        return _resumed(name, source, dry_run=dry_run)
    reason = _reason(metadata)
    root = None
    current = metadata.current_snapshot()
    if reason is None and current is not None:
        root = files.root(current, metadata.shape())
    counts = _Counts() if root is None else _counted(root)
    return Upgraded(
        table=name,
        metadata_location=source.metadata_location,
        format_version=metadata.format_version,
        snapshots=len(metadata.snapshots) + sum(each.count for each in metadata.snapshot_pages),
        leaves=counts.leaves,
        data_files=counts.data_files,
        delete_files=counts.delete_files,
        does=() if reason else tuple(_does(source, counts)),
        gains=() if reason else tuple(_gains(metadata, current, counts)),
        reason=reason,
        dry_run=dry_run,
    )


def _resumed(name: str, source: Source, *, dry_run: bool) -> Upgraded:
    """Tell of a table that was upgraded in its folder and then got no name."""
    return Upgraded(
        table=name,
        metadata_location=source.metadata_location,
        format_version=source.metadata.format_version,
        snapshots=len(source.metadata.snapshots),
        leaves=0,
        data_files=None,
        delete_files=None,
        does=("the folder was upgraded before: the table gets its name",),
        gains=(),
        reason=None,
        dry_run=dry_run,
    )


def _of(table: Table) -> Source:
    return Source(metadata=table.metadata, metadata_location=table.state.metadata_location)


def _require(told: Upgraded) -> None:
    if told.reason is not None and not told.dry_run:
        raise Unsupported(str(told))


def _reason(metadata: TableMetadata) -> str | None:
    """Return why v4 cannot keep what the table has, None when it can."""
    if metadata.format_version >= FORMAT_VERSION:
        return f"it is v{metadata.format_version} already"
    try:
        apply(metadata, upgrading(metadata), at_ms=metadata.last_updated_ms)
    except (InvalidInput, Unsupported) as error:
        return str(error)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    leaves: int = 0
    data_files: int | None = 0
    delete_files: int | None = 0


def _counted(root: Entries) -> _Counts:
    def live(content: Content) -> int | None:
        some = root.filter(is_content(root, content))
        columns = [some[name] for name in _LIVE]
        if any(each.null_count for each in columns):
            return None
        return sum(int(pc.sum(each, min_count=0).as_py()) for each in columns)

    return _Counts(
        leaves=root.num_rows,
        data_files=live(Content.DATA_MANIFEST),
        delete_files=live(Content.DELETE_MANIFEST),
    )


def _does(source: Source, counts: _Counts) -> Iterator[str]:
    metadata = source.metadata
    yield "one metadata file is written; data files, snapshots, branches and tags stay as they are"
    if counts.leaves:
        yield f"{counts.leaves:,} Avro manifests stay, as leaves of the tree, until they are rewritten"
    if metadata.expressions or any(spec.fields for spec in metadata.partition_specs):
        yield "partition fields become expressions of the table, under the same names"
    if metadata.table_uuid is None:
        yield "the table gets an id, which it lacks"
    if source.version is not None:
        yield (
            "the folder gets a mark as its next version: who opens the table by its folder is "
            "refused from then on"
        )
    yield (
        "other engines read it through a server or an export from then on; downgrade_table goes "
        "back to v3"
    )


def _gains(metadata: TableMetadata, current: Snapshot | None, counts: _Counts) -> Iterator[str]:
    if counts.leaves and current is not None:
        yield (
            f"a commit writes a small root in place of a list of {counts.leaves:,} manifests and a "
            "manifest more"
        )
    else:
        yield "a commit writes one small root in place of a manifest and a list of manifests"
    yield "a plan reads the root, and of the leaves only those that may hold a match"
    if counts.leaves:
        yield "rewrite_manifests makes the leaves columnar, with typed bounds"
    if counts.delete_files:
        yield (
            f"{counts.delete_files:,} delete files can become deletion vectors, one at most for a "
            "data file: rewrite_position_delete_files"
        )
    if metadata.format_version < 3:
        yield "rows get ids, and tell when they were last changed, from the next commit on"
    yield "new files are named relative to the table, so that it can be copied and moved"


def _written(source: Source, store: Store) -> str:
    """Write the upgraded metadata beside the old, and return where."""
    before = source.metadata
    at_ms = max(now_ms(), before.last_updated_ms)
    after = apply(before, upgrading(before), at_ms=at_ms)
    previous = stored_form(source.metadata_location, before.location)
    after = with_previous(after, previous, before)
    name = next_metadata_location(source.metadata_location, compress=True)
    at = absolute(name, before.location)
    store.write_new(at, metadata_codec.encode(after))
    return at
