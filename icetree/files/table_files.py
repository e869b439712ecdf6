"""A table's metadata files: what the store holds, as nouns; immutable ones are cached."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from icetree.codec import legacy, manifest
from icetree.codec import metadata as metadata_codec
from icetree.codec.encryption.stream import MAGIC as STREAM
from icetree.codec.inherit import Inherited
from icetree.errors import CorruptTable, NotFound
from icetree.files.cache import Cache, TableCache
from icetree.files.parallel import in_order
from icetree.files.sealed import open_ranges, read_whole
from icetree.keys.ring import Ring
from icetree.spec.entry.entry import BASE_COLUMNS, ROOT, Entries, empty
from icetree.spec.location import LOCAL, absolute, scheme_of
from icetree.spec.locations import origins
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import Page, Snapshot, SnapshotPage
from icetree.spec.rules import entry as entry_rules
from icetree.spec.schema.shape import Shape
from icetree.store.aside import AsideStore
from icetree.store.base import Store
from icetree.store.open import EveryStore
from icetree.tree.diff.diff import Diff, diff
from icetree.tree.diff.legacy import legacy_diff
from icetree.tree.files import FileReader
from icetree.tree.leaf import NewFile
from icetree.tree.manifest_dvs import loosened
from icetree.tree.reading import Leaf
from icetree.tree.recount import with_counts

#: How many decoded roots are kept: the head that a writer starts from, and a few more.
_ROOTS = 8
#: Up to this size a leaf is read, and cached, as a whole.
_WHOLE_BYTES = 4 * 1024 * 1024
#: Snapshots of decoded pages of history that are kept.
_KEPT_SNAPSHOTS = 20_000
#: Bytes of decoded Avro leaves that are kept.
_KEPT_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFiles:
    """Reads and writes the files of one table; locations are as stored, relative or not."""

    store: Store
    location: str
    cache: Cache | TableCache = field(default_factory=Cache)
    #: What opens roots and statistics of an encrypted table.
    ring: Ring = field(default_factory=Ring)

    def fetch(self, stored: str, key: bytes | None = None) -> bytes:
        """Return the bytes of an immutable file; `key` is its key metadata where it is encrypted."""
        self.ring.require_allowed(key, file=stored)
        return self._cached(stored, key)

    def fetch_page(self, ref: SnapshotPage) -> bytes:
        """Return the bytes of a page of history, which is plain in every table."""
        try:
            return self._cached(ref.location, None)
        except NotFound:
            raise NotFound(
                f"{absolute(ref.location, self.location)}: this page of the table's history is gone; "
                "it was written anew if snapshots have expired since the table was loaded: refresh "
                "the table. If that does not help it is lost, and repair tells what can be done"
            ) from None

    def _cached(self, stored: str, key: bytes | None) -> bytes:
        location = absolute(stored, self.location)
        return self.cache.get(location, lambda: read_whole(self.store, location, key))

    def open_leaf(self, leaf: Leaf) -> bytes | pa.NativeFile:
        """Return a leaf's bytes, or the file where a few ranges cost less than all of it.

        That is so for large ones on this machine's disk: the system caches them, we need not.
        """
        location = absolute(leaf.location, self.location)
        if leaf.size_bytes <= _WHOLE_BYTES or scheme_of(location) not in LOCAL:
            return self.fetch(leaf.location, leaf.key_metadata)
        self.ring.require_allowed(leaf.key_metadata, file=leaf.location)
        return self.cache.peek(location) or open_ranges(self.store, location, leaf.key_metadata)

    def require_open(self, stored: pa.Array) -> None:
        """Refuse files in a store that the table may not name: for who reads them by itself."""
        store = self.store.beneath if isinstance(self.store, AsideStore) else self.store
        if isinstance(store, EveryStore):
            for origin in origins(stored):
                store.check(f"{origin}/")

    def write(self, files: Iterable[NewFile]) -> None:
        """Store new files, side by side; when it returns, all of them are durable."""
        placed = [(absolute(file.location, self.location), file.content) for file in files]
        self.store.write_many(placed)
        for location, content in placed:
            # Table metadata is never read again by who wrote it; an encrypted file is kept as it
            # was before, when it is read.
            if not (location.endswith(".metadata.json") or content.startswith(STREAM)):
                self.cache.put(location, content)

    def delete(self, stored: Iterable[str]) -> None:
        """Remove files that are proven to be unreferenced."""
        self.store.delete([absolute(each, self.location) for each in stored])

    def reader(self, shape: Shape) -> FileReader:
        """Return a reader of what lies below this table's roots."""

        def keep(leaf: Leaf, decode: Callable[[], Entries]) -> Entries:
            return self.cache.derive(
                ("avro leaves", self.location, leaf, shape.meaning),
                decode,
                most=_KEPT_BYTES,
                weigh=lambda entries: entries.nbytes,
            )

        return FileReader(
            fetch=self.fetch,
            unlock=self.fetch,
            open=self.open_leaf,
            keep=keep,
            shape=shape,
            table_location=self.location,
        )

    def root(
        self,
        snapshot: Snapshot | None,
        shape: Shape,
        *,
        keep: bool = False,
        stats_columns: frozenset[str] | None = None,
    ) -> Entries:
        """Return the root of a snapshot; that of a v1-v3 snapshot is made from its manifest list.

        With `keep` the decoded root is kept for later, and then with `stats_columns` other stats
        may be left out: most of a root is stats.
        """
        if snapshot is None:
            return empty()
        if not keep:
            return self._decode_root(snapshot, shape)
        key = self._root_key(snapshot, shape)
        known: Entries | None = self.cache.recall(key)
        if known is not None:
            return known
        if stats_columns is not None and (file := snapshot.root_manifest):
            return self.cache.derive(
                ("narrow root", *key[1:], stats_columns),
                lambda: self._decode_columnar(file, snapshot, shape, stats_columns),
                most=_ROOTS,
            )
        return self.cache.derive(key, lambda: self._decode_root(snapshot, shape), most=_ROOTS)

    def bare_root(self, snapshot: Snapshot, shape: Shape) -> Entries:
        """Return the root of a snapshot without stats, for whoever reads a great many."""
        if snapshot.root_manifest is None:
            return self._decode_root(snapshot, shape)
        return self._decode_columnar(snapshot.root_manifest, snapshot, shape, frozenset())

    def counted_root(self, snapshot: Snapshot | None, shape: Shape) -> Entries:
        """Return the root with what is in each leaf counted, for whoever tells of it.

        Only manifests of v1 that nothing counts are read for it.
        """
        return with_counts(self.root(snapshot, shape), self.reader(shape))

    def root_size_bytes(self, snapshot: Snapshot) -> int:
        """Return how large the file at the top of a tree is; 0 for the inline list of v1."""
        return len(self.fetch_root(snapshot))

    def fetch_root(self, snapshot: Snapshot) -> bytes:
        """Return the file at the top of a tree; nothing for the inline list of v1."""
        file = snapshot.root_manifest or snapshot.manifest_list
        return self.fetch(file, self.key_of(snapshot)) if file else b""

    def key_of(self, snapshot: Snapshot) -> bytes | None:
        """Return the key metadata of a snapshot's root or manifest list; None where it is plain."""
        if snapshot.key_id is None:
            return None
        return self.ring.unlock(snapshot.key_id, file=snapshot.root_file)

    def remember_root(self, snapshot: Snapshot, shape: Shape, root: Entries) -> None:
        """Keep a root that is just being written, since the next commit starts from it."""
        self.cache.derive(self._root_key(snapshot, shape), lambda: root, most=_ROOTS)

    def _root_key(self, snapshot: Snapshot, shape: Shape) -> tuple[Any, ...]:
        # Not the file alone: entries inherit from the snapshot, and two may name the same root.
        return (
            "root",
            self.location,
            snapshot.root_file,
            snapshot.manifests,
            _tracking(snapshot),
            shape.meaning,
        )

    def _decode_root(self, snapshot: Snapshot, shape: Shape) -> Entries:
        if snapshot.root_manifest is not None:
            return self._decode_columnar(snapshot.root_manifest, snapshot, shape)
        if snapshot.manifest_list is not None:
            return self._legacy_root(snapshot.manifest_list, self.key_of(snapshot), shape)
        if snapshot.manifests is not None:
            return self._inline_root(snapshot, snapshot.manifests, shape)
        raise CorruptTable(
            self.location, f"snapshot {snapshot.snapshot_id} has neither root nor manifest list"
        )

    def _decode_columnar(
        self,
        file: str,
        snapshot: Snapshot,
        shape: Shape,
        stats_columns: frozenset[str] | None = None,
    ) -> Entries:
        """Decode a root; of stats only those that are wanted, None for all."""
        found = manifest.decode_again(
            self.fetch(file, self.key_of(snapshot)),
            ROOT,
            shape,
            file=file,
            table_location=self.location,
            tracking=_tracking(snapshot),
            columns=None if stats_columns is None else {*BASE_COLUMNS, *stats_columns},
        )
        if stats_columns is not None:
            entry_rules.require_unique(found, file=file)
        return loosened(found)

    def changed(self, snapshot: Snapshot, shape: Shape) -> Diff:
        """Return the files that a snapshot added and removed, whatever its format version."""
        root, reader = self.root(snapshot, shape), self.reader(shape)
        if snapshot.root_manifest is None:
            return legacy_diff(root, reader, snapshot_id=snapshot.snapshot_id)
        return diff(root, reader, root_file=snapshot.root_manifest)

    def page(self, ref: SnapshotPage) -> Page:
        """Return a page of history."""

        def decode() -> Page:
            return metadata_codec.decode_page(
                self.fetch_page(ref), file=ref.location, table_location=self.location
            )

        return self.cache.derive(
            ("pages", self.location, ref.location),
            decode,
            most=_KEPT_SNAPSHOTS,
            weigh=lambda page: len(page.snapshots),
        )

    def _legacy_root(self, file: str, key: bytes | None, shape: Shape) -> Entries:
        return legacy.decode_manifest_list(
            self.fetch(file, key), file=file, shape=shape, table_location=self.location
        )

    def _inline_root(self, snapshot: Snapshot, manifests: tuple[str, ...], shape: Shape) -> Entries:
        # Their headers tell what a list would; planning reads them whole in any case.
        contents = in_order(self.fetch, manifests)
        return legacy.decode_inline_list(
            list(zip(manifests, contents, strict=True)),
            file=snapshot.root_file,
            shape=shape,
            table_location=self.location,
        )


def _tracking(snapshot: Snapshot) -> Inherited:
    """Return what the ADDED entries of a root inherit."""
    return Inherited(
        snapshot_id=snapshot.snapshot_id,
        sequence_number=snapshot.sequence_number,
        first_row_id=snapshot.first_row_id,
    )


def read_metadata(store: Store, location: str) -> TableMetadata:
    """Return the table metadata at an absolute location."""
    return metadata_codec.decode(store.read(location), file=location)
