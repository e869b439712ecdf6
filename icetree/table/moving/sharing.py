"""Copying a table's metadata alone: a table of its own elsewhere, which shares the data files.

Names in a table are relative to its place. In the copy of its trees, data files and deletes are named
in full, so they stay the other table's: whatever is done to the copy, none of them is deleted. The
other table knows nothing of it, and may delete what the copy still needs: then `verify` tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from icetree.codec import metadata as metadata_codec
from icetree.codec.manifest.edited import edited
from icetree.errors import (
    AlreadyExists,
    CommitExhausted,
    IcetreeError,
    InvalidInput,
    NotFound,
    Unsupported,
)
from icetree.files.parallel import in_order
from icetree.spec.arrays import one_chunk
from icetree.spec.entry.entry import MANIFESTS, Content
from icetree.spec.location import absolute, is_relative, prefix_of, stored_form
from icetree.spec.locations import absolute_array, stored_form_array
from icetree.spec.metadata.encryption import is_encrypted
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.pages import history
from icetree.spec.metadata.snapshot import Snapshot
from icetree.store.aside import AsideStore
from icetree.store.base import Store
from icetree.surroundings import new_uuid
from icetree.table.commit.attempt import next_metadata_location
from icetree.table.maintain.copying import Copied, require_place
from icetree.table.maintain.newest import has_gone_on
from icetree.table.moving.trial import shared_properties
from icetree.table.progress import Progress
from icetree.table.state import State
from icetree.tree.reading import leaves_in
from icetree.tree.summary import FILES_OUTSIDE

if TYPE_CHECKING:
    from icetree.table.table import Table

#: How often it is begun anew, when snapshots expire while they are copied.
_TRIES: Final = 5


def would_copy_metadata(
    table: Table, location: str, store: Store, *, progress: Progress | None = None
) -> Copied:
    """Tell what `copy_metadata` would do."""
    aside = AsideStore(store)
    at = copy_metadata(table, location, aside, uuid=new_uuid(), progress=progress)
    return Copied(metadata_location=at, copied_files_count=len(aside.new), kept_files_count=0)


def copy_metadata(
    table: Table,
    location: str,
    store: Store,
    *,
    uuid: str,
    progress: Progress | None = None,
) -> str:
    """Write a table's trees and metadata elsewhere, with data files named in full; return where."""
    require_place(table, location)
    if is_encrypted(table.metadata):
        raise Unsupported(
            f"table {table.name} is encrypted, and each of its manifests is opened by the one above: "
            "copy it with its data"
        )
    if next(iter(store.list(location)), None) is not None:
        raise InvalidInput(f"{location} is not empty: choose another place for the copy")
    for _ in range(_TRIES):
        state = table.refresh().state
        copying = _Copying(table, location, store, progress or (lambda *_: None))
        try:
            return copying.carry_out(state, uuid)
        except BaseException as error:
            # Nothing names these files, whatever became of writing them.
            with suppress(IcetreeError):
                store.delete(copying.written)
            if not isinstance(error, NotFound) or not has_gone_on(table, state):
                raise
    raise CommitExhausted(
        f"table {table.name}: snapshots expire faster than they are copied; copy it again"
    )


class _Copying:
    """One try at a copy."""

    def __init__(self, table: Table, location: str, store: Store, tell: Progress) -> None:
        self._table, self._location, self._store, self._tell = table, location, store, tell
        #: What was, or may have been, written.
        self.written: list[str] = []

    def carry_out(self, state: State, uuid: str) -> str:
        """Write leaves, roots that tell of them, and last the metadata."""
        metadata, files = state.metadata, self._table.files
        snapshots = sorted(history(metadata, files.page), key=lambda each: each.sequence_number)
        sizes = self._rewritten(self._leaves(snapshots, metadata), {}, "leaves")
        roots = dict.fromkeys(each.root_manifest for each in snapshots if each.root_manifest)
        self._rewritten(roots, sizes, "roots")
        at = absolute(next_metadata_location(None, compress=True), self._location)
        self._write(at, metadata_codec.encode(self._metadata(metadata, snapshots, uuid)))
        return at

    def _leaves(self, snapshots: list[Snapshot], metadata: TableMetadata) -> Iterable[str]:
        """Return the columnar leaves of all trees; those of Avro name their files in full already."""
        files, shape = self._table.files, metadata.shape()
        found: dict[str, None] = {}
        for number, each in enumerate(snapshots, start=1):
            if each.root_manifest:
                leaves = leaves_in(files.bare_root(each, shape))
                found |= {leaf.location: None for leaf in leaves if leaf.file_format != "avro"}
            self._tell("trees", number, len(snapshots))
        return found

    def _rewritten(
        self, names: Iterable[str], sizes: Mapping[str, int], what: str
    ) -> dict[str, int]:
        """Write manifests with names in full; return how large each is, by its stored name."""
        place = self._table.location
        stored = [stored_form(each, place) for each in names]
        for each in stored:
            if not is_relative(each):
                raise InvalidInput(
                    f"{each} is a manifest outside the table's folder: rewrite_manifests and "
                    "expiring the snapshots before bring all into it"
                )

        def write(name: str) -> int:
            content = in_full(self._table.files.fetch(name), place, sizes, file=name)
            self._write(prefix_of(self._location) + name, content)
            return len(content)

        found = {}
        for name, size in zip(stored, in_order(write, stored), strict=True):
            found[name] = size
            self._tell(f"{what} copied", len(found), len(stored))
        return found

    def _write(self, location: str, content: bytes) -> None:
        self.written.append(location)
        try:
            self._store.write_new(location, content)
        except AlreadyExists:
            # Another copy that came to this place meanwhile has its manifests by the same names.
            self.written.remove(location)
            raise

    def _metadata(
        self, metadata: TableMetadata, snapshots: list[Snapshot], uuid: str
    ) -> TableMetadata:
        place = metadata.location

        def far(name: str) -> str:
            return absolute(name, place)

        return replace(
            metadata,
            location=self._location,
            table_uuid=uuid,
            properties=shared_properties(metadata),
            # Pages of history and former metadata files are the other table's.
            snapshots=tuple(
                replace(
                    each,
                    summary=_summary(each),
                    root_manifest=each.root_manifest and stored_form(each.root_manifest, place),
                    manifest_list=each.manifest_list and far(each.manifest_list),
                )
                for each in snapshots
            ),
            snapshot_pages=(),
            metadata_log=(),
            statistics=tuple(
                replace(each, statistics_path=far(each.statistics_path))
                for each in metadata.statistics
            ),
            partition_statistics=tuple(
                replace(each, statistics_path=far(each.statistics_path))
                for each in metadata.partition_statistics
            ),
        )


def _summary(snapshot: Snapshot) -> dict[str, str] | None:
    """Return what is told of a snapshot, but for where its files lie: outside of the copy by now."""
    told = snapshot.summary
    return told and {name: each for name, each in told.items() if name != FILES_OUTSIDE}


def in_full(manifest: bytes, place: str, sizes: Mapping[str, int], *, file: str) -> bytes:
    """Return a columnar manifest of a table at a place with the names of its files in full.

    Columnar leaves stay relative, with the sizes that they have now, and so do the names of leaves that
    other entries are about.
    """
    return edited(manifest, lambda rows: _in_full(rows, place, sizes), file=file)


def _in_full(rows: pa.Table, place: str, sizes: Mapping[str, int]) -> dict[str, pa.Array]:
    if "location" not in rows.column_names:
        # The root of a snapshot without files names none, and columns of nulls are not stored.
        return {}
    content = one_chunk(rows["content_type"])
    leaves = pc.is_in(content, value_set=pa.array(MANIFESTS, content.type))
    of_avro = pc.fill_null(pc.equal(one_chunk(rows["file_format"]), "avro"), False)
    columnar = pc.and_not(leaves, of_avro)
    near = stored_form_array(one_chunk(rows["location"]), place)
    new = {"location": pc.if_else(columnar, near, absolute_array(near, place))}
    if "referenced_file" in rows.column_names:
        about = stored_form_array(one_chunk(rows["referenced_file"]), place)
        of_leaves = pc.or_(leaves, pc.equal(content, pa.scalar(Content.MANIFEST_DV, content.type)))
        # What is about a leaf calls it as the leaf's own entry does.
        in_full = pc.is_in(about, value_set=near.filter(pc.and_(leaves, of_avro)))
        kept = pc.and_not(of_leaves, in_full)
        new["referenced_file"] = pc.if_else(kept, about, absolute_array(about, place))
    if pc.any(columnar).as_py():
        now = pa.array([sizes.get(each) for each in near.to_pylist()], pa.int64())
        # A leaf that is told of as gone may be gone.
        known = pc.and_(columnar, now.is_valid())
        new["file_size_in_bytes"] = pc.if_else(known, now, one_chunk(rows["file_size_in_bytes"]))
    return new
