"""A table's metadata files: what the store holds, as nouns; immutable ones are cached."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from icetree.codec import legacy, manifest
from icetree.codec import metadata as metadata_codec
from icetree.errors import CorruptTable
from icetree.spec.entry import ROOT, Entries, empty
from icetree.spec.location import absolute
from icetree.spec.metadata import TableMetadata
from icetree.spec.shape import Shape
from icetree.spec.snapshot import Page, Snapshot, SnapshotPage
from icetree.store.base import Store
from icetree.table.cache import Cache
from icetree.tree.files import FileReader
from icetree.tree.leaf import NewFile


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

    def write(self, files: Iterable[NewFile]) -> None:
        """Store new files, side by side; when it returns, all of them are durable."""
        self.store.write_many(
            [(absolute(file.location, self.location), file.content) for file in files]
        )

    def delete(self, stored: Iterable[str]) -> None:
        """Remove files that are proven to be unreferenced."""
        self.store.delete([absolute(each, self.location) for each in stored])

    def reader(self, shape: Shape) -> FileReader:
        """Return a reader of what lies below this table's roots."""
        return FileReader(fetch=self.fetch, shape=shape, table_location=self.location)

    def root(self, snapshot: Snapshot | None, shape: Shape) -> Entries:
        """Return the root of a snapshot; that of a v1-v3 snapshot is made from its manifest list."""
        if snapshot is None:
            return empty()
        if snapshot.root_manifest is not None:
            file = snapshot.root_manifest
            return manifest.decode(self.fetch(file), ROOT, shape, file=file)
        if snapshot.manifest_list is not None:
            return self._legacy_root(snapshot.manifest_list, shape)
        raise CorruptTable(
            self.location, f"snapshot {snapshot.snapshot_id} has neither root nor manifest list"
        )

    def page(self, ref: SnapshotPage) -> Page:
        """Return a page of history."""
        return metadata_codec.decode_page(self.fetch(ref.location), file=ref.location)

    def _legacy_root(self, file: str, shape: Shape) -> Entries:
        return legacy.decode_manifest_list(
            self.fetch(file), file=file, shape=shape, table_location=self.location
        )


def read_metadata(store: Store, location: str) -> TableMetadata:
    """Return the table metadata at an absolute location."""
    return metadata_codec.decode(store.read(location), file=location)
