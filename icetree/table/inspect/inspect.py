"""What a table is made of, as Arrow tables; columns are named as in Iceberg's metadata tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from icetree.codec import bitmap
from icetree.rows.matching.same import ranks, row_codes
from icetree.spec.entry import entry
from icetree.spec.entry.entry import (
    DELETE_FILES,
    FILES,
    POSITION,
    Content,
    Entries,
    is_content,
    is_live,
)
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.schema.shape import Shape
from icetree.spec.spelled import spelled
from icetree.table.inspect.files import entries_table, files_table, partitions_table
from icetree.table.inspect.history import (
    expressions_table,
    history_table,
    metadata_log_table,
    refs_table,
    snapshots_table,
)
from icetree.table.inspect.position_deletes import position_deletes_table
from icetree.table.inspect.tree import TREE, manifests_table, tree_table
from icetree.tree.live import LEAF, live_files
from icetree.tree.manifest_dvs import read_manifest_dvs
from icetree.tree.reading import Leaf, leaves_in

if TYPE_CHECKING:
    from icetree.table.point import Point
    from icetree.table.table import Table


@spelled
class Inspect:
    """Reads the metadata of a table as its handle sees it; v1-v3 snapshots alike.

    Locations are absolute. `at` chooses a snapshot, else it is the current one.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._shape: Shape = table.metadata.shape()

    def __repr__(self) -> str:
        return f"Inspect({str(self._table.name)!r})"

    # --- the table's metadata --------------------------------------------------------------

    def snapshots(self) -> pa.Table:
        """Return every snapshot the table still has."""
        return snapshots_table(self._table)

    def history(self) -> pa.Table:
        """Return which snapshot was made the current one when."""
        return history_table(self._table)

    def refs(self) -> pa.Table:
        """Return the branches and tags."""
        return refs_table(self._table)

    def metadata_log_entries(self) -> pa.Table:
        """Return the metadata files that were the table's, the newest last."""
        return metadata_log_table(self._table)

    def expressions(self) -> pa.Table:
        """Return the partition expressions."""
        return expressions_table(self._table)

    # --- one snapshot ----------------------------------------------------------------------

    def files(self, *, at: Point | None = None) -> pa.Table:
        """Return the live data and delete files."""
        return self._files(FILES, at)

    def data_files(self, *, at: Point | None = None) -> pa.Table:
        """Return the live data files."""
        return self._files((Content.DATA,), at)

    def delete_files(self, *, at: Point | None = None) -> pa.Table:
        """Return the live data DVs, position delete files and equality delete files."""
        return self._files(DELETE_FILES, at)

    def position_deletes(self, *, at: Point | None = None) -> pa.Table:
        """Return every position that data DVs and position delete files mark, a row each."""
        return position_deletes_table(self._table, self._table.snapshot(at))

    def entries(self, *, at: Point | None = None) -> pa.Table:
        """Return the entries of files of every status, in the root and in live leaves."""
        snapshot = self._table.snapshot(at)
        found = entry.concat(self._entries_of(snapshot, set()))
        return entries_table(found, self._shape, self._table.location)

    def partitions(self, *, at: Point | None = None) -> pa.Table:
        """Return the partitions that have live files."""
        live = self._live(self._table.snapshot(at))
        committed = self.snapshots().select(["snapshot_id", "committed_at"])
        return partitions_table(live, self._shape, committed)

    def manifests(self, *, at: Point | None = None) -> pa.Table:
        """Return the leaf manifests, with their manifest DVs, affiliation and stats."""
        root = self._root(self._table.snapshot(at))
        return manifests_table(root, self._shape, self._table.location)

    def tree(self, *, at: Point | None = None) -> pa.Table:
        """Return one row a node of the tree, the root first; reads the root alone.

        Only manifests of v1 that nothing counts are read too.
        """
        snapshot = self._table.snapshot(at)
        if snapshot is None:
            return TREE.empty_table()
        return tree_table(
            self._root(snapshot),
            snapshot,
            table_location=self._table.location,
            size_bytes=self._table.files.root_size_bytes(snapshot),
        )

    # --- all snapshots ---------------------------------------------------------------------

    def all_files(self) -> pa.Table:
        """Return the files that are live in some snapshot, each once."""
        return self._all_files(FILES)

    def all_data_files(self) -> pa.Table:
        """Return the data files that are live in some snapshot, each once."""
        return self._all_files((Content.DATA,))

    def all_delete_files(self) -> pa.Table:
        """Return the delete files that are live in some snapshot, each once."""
        return self._all_files(DELETE_FILES)

    def all_entries(self) -> pa.Table:
        """Return the entries of every root, and of every leaf once."""
        seen: set[str] = set()
        parts = [part for each in self._all() for part in self._entries_of(each, seen)]
        found = entry.concat(parts) if parts else entry.concat(self._entries_of(None, seen))
        return entries_table(found, self._shape, self._table.location)

    def all_manifests(self) -> pa.Table:
        """Return the leaf manifests of every snapshot; `reference_snapshot_id` says of which."""
        parts = []
        for each in self._all():
            found = manifests_table(self._root(each), self._shape, self._table.location)
            id = pa.scalar(each.snapshot_id, pa.int64())
            parts.append(found.append_column("reference_snapshot_id", pa.repeat(id, len(found))))
        if not parts:
            none = manifests_table(self._root(None), self._shape, self._table.location)
            return none.append_column("reference_snapshot_id", pa.array([], pa.int64()))
        return pa.concat_tables(parts)

    # --- within ----------------------------------------------------------------------------

    def _all(self) -> list[Snapshot]:
        return sorted(self._table.history(), key=lambda each: each.sequence_number)

    def _root(self, snapshot: Snapshot | None) -> Entries:
        return self._table.files.counted_root(snapshot, self._shape)

    def _live(self, snapshot: Snapshot | None) -> Entries:
        return live_files(
            self._root(snapshot),
            self._table.files.reader(self._shape),
            root_file=snapshot.root_file if snapshot else "root",
        )

    def _files(self, contents: tuple[Content, ...], at: Point | None) -> pa.Table:
        live = self._live(self._table.snapshot(at))
        live = live.filter(is_content(live, *contents))
        return files_table(live, self._shape, self._table.location)

    def _all_files(self, contents: tuple[Content, ...]) -> pa.Table:
        seen: set[str] = set()
        parts = [part for each in self._all() for part in self._entries_of(each, seen)]
        found = entry.concat(parts or list(self._entries_of(None, seen)))
        found = found.filter(pc.and_(is_live(found), is_content(found, *contents)))
        names = ("content_type", "location", "dv_offset", "referenced_file")
        codes = row_codes([found[name] for name in names], found.num_rows)
        first = found.filter(pa.array(ranks(codes) == 0))
        return files_table(first, self._shape, self._table.location)

    def _entries_of(self, snapshot: Snapshot | None, seen: set[str]) -> Iterator[Entries]:
        """Yield the entries of a root, and of each of its leaves that was not seen before."""
        reader = self._table.files.reader(self._shape)
        root = self._root(snapshot)
        file = snapshot.root_file if snapshot else "root"
        vectors = read_manifest_dvs(root, reader, root_file=file)
        own = root.filter(is_content(root, *FILES))
        nowhere = pa.nulls(own.num_rows, pa.int64())
        yield _placed(own.append_column(POSITION, nowhere), None, pa.repeat(False, own.num_rows))
        for leaf in leaves_in(root.filter(is_live(root))):
            if leaf.location not in seen:
                seen.add(leaf.location)
                entries = reader.leaf(leaf)
                removed = vectors.get(leaf.location)
                gone = (
                    bitmap.mask(removed, entries.num_rows, file=leaf.location)
                    if removed
                    else pa.repeat(False, entries.num_rows)
                )
                yield _placed(entries, leaf, gone)


def _placed(entries: Entries, leaf: Leaf | None, removed: pa.Array) -> Entries:
    place = pa.scalar(None if leaf is None else leaf.location, pa.string())
    entries = entries.append_column(LEAF, pa.repeat(place, entries.num_rows))
    return entries.append_column("is_removed", removed)
