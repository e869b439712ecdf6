"""Registering a table that was copied elsewhere: relative locations make it enough to say so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

import pyarrow.compute as pc
from msgspec.structs import replace

from icetree.codec import metadata as metadata_codec
from icetree.errors import CorruptTable, InvalidInput, NotFound
from icetree.files.parallel import in_order
from icetree.files.table_files import TableFiles
from icetree.keys.base import Keeper
from icetree.keys.ring import ring_of
from icetree.spec.arrays import one_chunk
from icetree.spec.entry.entry import FILES, MANIFESTS, Entries, has_format, is_content, is_live
from icetree.spec.location import (
    absolute,
    canonical,
    is_relative,
    leads_up,
    no_name,
    prefix_of,
)
from icetree.spec.locations import stored_form_array
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import Snapshot
from icetree.store.base import Store
from icetree.surroundings import now_ms
from icetree.table.commit.attempt import next_metadata_location
from icetree.table.state import State
from icetree.tree.reading import leaves_in

#: The columns in which an entry names a file: its own, and the one that it is about.
_NAMES: Final = ("location", "referenced_file")


def settle(
    state: State, store: Store, keeper: Keeper | None = None, *, dry_run: bool = False
) -> State:
    """Return the state with the table where its metadata file is, writing new metadata if moved.

    Only a v4 table can be moved by copying: earlier versions name their files in full, and so do
    the Avro manifests that an upgraded table may still have.
    """
    folder, slash, _ = state.metadata_location.rpartition("/metadata/")
    metadata = state.metadata
    if not slash or _is_same(folder, metadata.location):
        return state
    if leads_up(folder):
        raise InvalidInput(no_name(state.metadata_location))
    if metadata.format_version < 4:
        raise InvalidInput(
            f"{state.metadata_location} is of a v{metadata.format_version} table at "
            f"{metadata.location}, whose files are named in full: upgrade it there, then copy it"
        )
    ring = ring_of(metadata, keeper)
    require_movable(metadata, TableFiles(store=store, location=folder, ring=ring))
    moved = replace(metadata, location=folder, last_updated_ms=now_ms())
    name = next_metadata_location(state.metadata_location, compress=True)
    at = absolute(name, folder)
    if not dry_run:
        store.write_new(at, metadata_codec.encode(moved))
    return State(name=state.name, metadata=moved, metadata_location=at)


def require_movable(metadata: TableMetadata, files: TableFiles) -> None:
    """Refuse a table whose files, read where they were copied to, name any at the place before."""
    every = [*_readable_history(metadata, files)]
    tops = [each.manifests or (each.root_file,) for each in every]
    stuck = [name for names in tops for name in names if not is_relative(name)]
    if stuck:
        raise InvalidInput(
            f"{stuck[0]} is named in full by a snapshot from before the upgrade: "
            "expire snapshots from before the upgrade, then copy the table"
        )
    _require_relative(every, metadata, files)


def _readable_history(metadata: TableMetadata, files: TableFiles) -> Iterator[Snapshot]:
    """Yield every snapshot, those that refs point to first; a lost page is for `repair` to tell."""
    pinned = {ref.snapshot_id for ref in metadata.refs.values()}
    yield from sorted(metadata.snapshots, key=lambda each: each.snapshot_id not in pinned)
    for page in metadata.snapshot_pages:
        with suppress(CorruptTable, NotFound):
            yield from files.page(page).snapshots


def _require_relative(
    snapshots: list[Snapshot], metadata: TableMetadata, files: TableFiles
) -> None:
    """Refuse a table of which a snapshot reaches manifests that name its own files in full.

    Any snapshot can be read again, or be gone back to: there its rows would be another table's.
    """
    shape = metadata.shape()
    reader = files.reader(shape)
    pinned = {ref.snapshot_id for ref in metadata.refs.values()}

    def root_of(snapshot: Snapshot) -> Entries | None:
        needed = snapshot.snapshot_id in pinned
        return _read(lambda: files.root(snapshot, shape), needed=needed)

    seen: set[str] = set()
    for snapshot, root in zip(snapshots, in_order(root_of, snapshots), strict=True):
        if root is None:
            continue
        # A manifest that is DELETED nothing reads any more, and it may be gone for good. Of files
        # that are, the snapshot's changes tell.
        needed = root.filter(pc.or_(is_live(root), is_content(root, *FILES)))
        old = pc.and_(is_content(needed, *MANIFESTS), has_format(needed, "avro"))
        for name in needed["location"].filter(old)[:1].to_pylist():
            raise InvalidInput(
                f"{name} is a manifest from before the upgrade, which names its files in full: "
                "rewrite the table's manifests, then copy the table"
            )
        _require_none_left(needed, metadata.location)
        for leaf in leaves_in(needed):
            if leaf.location not in seen:
                seen.add(leaf.location)
                entries = _read(
                    partial(reader.leaf, leaf, columns=_NAMES),
                    needed=snapshot.snapshot_id in pinned,
                )
                if entries is not None:
                    _require_none_left(entries, metadata.location)


def _read(manifest: Callable[[], Entries], *, needed: bool) -> Entries | None:
    """Return a manifest; None for one that cannot be read and that no branch or tag needs.

    Nobody can read it later either, and so no wrong row.
    """
    try:
        return manifest()
    except (CorruptTable, NotFound):
        if needed:
            raise
        return None


def _require_none_left(entries: Entries, location: str) -> None:
    """Refuse entries of which one names a file at the place that the table was copied from."""
    for column in _NAMES:
        names = one_chunk(entries[column])
        left = pc.not_equal(stored_form_array(names, location), names)
        for name in names.filter(left)[:1].to_pylist():
            raise InvalidInput(
                f"{name} is named in full, and would stay the file of the table at {location}: "
                "rewrite the table's manifests there, then copy the table"
            )


def _is_same(folder: str, location: str) -> bool:
    spelt = (prefix_of(canonical(each, each)) for each in (folder, location))
    return len({*spelt}) == 1
