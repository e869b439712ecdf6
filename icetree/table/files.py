"""A table's metadata files: what the store holds, as nouns; immutable ones are cached."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from icetree.codec import legacy, manifest
from icetree.codec import metadata as metadata_codec
from icetree.errors import CorruptTable
from icetree.spec import entry_rules
from icetree.spec.entry import BASE_COLUMNS, ROOT, Entries, empty
from icetree.spec.location import absolute
from icetree.spec.metadata import TableMetadata
from icetree.spec.shape import Shape
from icetree.spec.snapshot import Page, Snapshot, SnapshotPage
from icetree.store.base import Store
from icetree.store.places import LOCAL, scheme_of
from icetree.table.cache import Cache
from icetree.tree.diff import Diff, diff
from icetree.tree.files import FileReader
from icetree.tree.leaf import NewFile
from icetree.tree.legacy_diff import legacy_diff
from icetree.tree.reading import Leaf

#: How many decoded roots are kept: the head that a writer starts from, and a few more.
_ROOTS = 8
#: Up to this size a leaf is read, and cached, as a whole.
_WHOLE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFiles:
    """Reads and writes the files of one table; locations are as stored, relative or not."""

    store: Store
    location: str
    cache: Cache = field(default_factory=Cache)

    def fetch(self, stored: str) -> bytes:
        """Return the bytes of an immutable file."""
        location = absolute(stored, self.location)
        return self.cache.get(location, lambda: self.store.read(location))

    def open_leaf(self, leaf: Leaf) -> bytes | pa.NativeFile:
        """Return a leaf's bytes, or the file where a few ranges cost less than all of it.

        That is so for large ones on this machine's disk: the system caches them, we need not.
        """
        location = absolute(leaf.location, self.location)
        if leaf.size_bytes <= _WHOLE_BYTES or scheme_of(location) not in LOCAL:
            return self.fetch(leaf.location)
        return self.cache.peek(location) or self.store.open(location)

    def write(self, files: Iterable[NewFile]) -> None:
        """Store new files, side by side; when it returns, all of them are durable."""
        placed = [(absolute(file.location, self.location), file.content) for file in files]
        self.store.write_many(placed)
        for location, content in placed:
            # Table metadata is never read again by who wrote it.
            if not location.endswith(".metadata.json"):
                self.cache.put(location, content)

    def delete(self, stored: Iterable[str]) -> None:
        """Remove files that are proven to be unreferenced."""
        self.store.delete([absolute(each, self.location) for each in stored])

    def reader(self, shape: Shape) -> FileReader:
        """Return a reader of what lies below this table's roots."""
        return FileReader(
            fetch=self.fetch, open=self.open_leaf, shape=shape, table_location=self.location
        )

    def root(
        self,
        snapshot: Snapshot | None,
        shape: Shape,
        *,
        schema_id: int | None = None,
        stats_columns: frozenset[str] | None = None,
    ) -> Entries:
        """Return the root of a snapshot; that of a v1-v3 snapshot is made from its manifest list.

        With a `schema_id`, which must be that of the shape, the decoded root is kept for later.
        With `stats_columns` other stats may be left out: most of a root is stats.
        """
        if snapshot is None:
            return empty()
        if schema_id is None:
            return self._decode_root(snapshot, shape)
        file = snapshot.root_manifest or snapshot.manifest_list or ""
        key = ("root", self.location, file, schema_id)
        if stats_columns is not None and snapshot.root_manifest and not self.cache.knows(key):
            return self.cache.derive(
                ("narrow root", *key[1:], stats_columns),
                lambda: self._decode_narrow(file, shape, stats_columns),
                most=_ROOTS,
            )
        return self.cache.derive(key, lambda: self._decode_root(snapshot, shape), most=_ROOTS)

    def remember_root(self, file: str, schema_id: int, root: Entries) -> None:
        """Keep a root that is just being written, since the next commit starts from it."""
        self.cache.derive(("root", self.location, file, schema_id), lambda: root, most=_ROOTS)

    def _decode_root(self, snapshot: Snapshot, shape: Shape) -> Entries:
        if snapshot.root_manifest is not None:
            file = snapshot.root_manifest
            return manifest.decode(self.fetch(file), ROOT, shape, file=file)
        if snapshot.manifest_list is not None:
            return self._legacy_root(snapshot.manifest_list, shape)
        raise CorruptTable(
            self.location, f"snapshot {snapshot.snapshot_id} has neither root nor manifest list"
        )

    def _decode_narrow(self, file: str, shape: Shape, stats_columns: frozenset[str]) -> Entries:
        columns = {*BASE_COLUMNS, *stats_columns}
        found = manifest.decode(self.fetch(file), ROOT, shape, file=file, columns=columns)
        entry_rules.require_unique(found, file=file)
        return found

    def changed(self, snapshot: Snapshot, shape: Shape) -> Diff:
        """Return the files that a snapshot added and removed, whatever its format version."""
        root, reader = self.root(snapshot, shape), self.reader(shape)
        if snapshot.root_manifest is None:
            return legacy_diff(root, reader, snapshot_id=snapshot.snapshot_id)
        return diff(root, reader, root_file=snapshot.root_manifest)

    def page(self, ref: SnapshotPage) -> Page:
        """Return a page of history."""
        return metadata_codec.decode_page(self.fetch(ref.location), file=ref.location)

    def _legacy_root(self, file: str, shape: Shape) -> Entries:
        # Before v4 names are in full, and may be plain paths, which look relative.
        content = self.cache.get(file, lambda: self.store.read(file))
        return legacy.decode_manifest_list(
            content, file=file, shape=shape, table_location=self.location
        )


def read_metadata(store: Store, location: str) -> TableMetadata:
    """Return the table metadata at an absolute location."""
    return metadata_codec.decode(store.read(location), file=location)
