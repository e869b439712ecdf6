"""A reader over files: bytes come from a function, entries from the codecs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import pyarrow as pa

from icetree.codec import legacy, manifest
from icetree.codec.inherit import Inherited
from icetree.errors import CorruptTable
from icetree.spec.entry.entry import Entries, kind_of
from icetree.spec.schema.shape import Shape
from icetree.tree.reading import Keep, Leaf

#: Of a larger Avro leaf only what is asked for is decoded: all of it would take too much memory.
_SMALL_BYTES = 1024 * 1024


def tracking_of(leaf: Leaf) -> Inherited:
    """Return what the entries in a leaf inherit."""
    return Inherited(
        content_type=leaf.content_type,
        partition_spec_id=leaf.partition_spec_id,
        snapshot_id=leaf.snapshot_id,
        sequence_number=leaf.sequence_number,
        first_row_id=leaf.first_row_id,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReader:
    """Reads leaves, columnar or Avro, through `fetch`: stored location -> the file's bytes.

    `unlock`, where given, does the same for an encrypted file, told its key metadata.
    `open`, where given, may return a large columnar leaf as a file of which ranges are read.
    `keep`, where given, may remember a small Avro leaf: those are decoded row by row.
    Locations in leaves become what the table at `table_location` stores.
    """

    fetch: Callable[[str], bytes]
    shape: Shape
    unlock: Callable[[str, bytes], bytes] | None = None
    open: Callable[[Leaf], bytes | pa.NativeFile] | None = None
    keep: Callable[[Leaf, Callable[[], Entries]], Entries] | None = None
    table_location: str = ""

    def leaf(
        self,
        leaf: Leaf,
        *,
        columns: Collection[str] | None = None,
        keep: Keep | None = None,
    ) -> Entries:
        """Return the leaf's entries with their `position`, tracking inherited."""
        tracking = tracking_of(leaf)
        if leaf.file_format == "avro":
            if self.keep is None or leaf.size_bytes > _SMALL_BYTES:
                return self._avro(leaf, tracking, columns)
            whole = self.keep(leaf, lambda: self._avro(leaf, tracking, None))
            return whole if columns is None else legacy.narrow(whole, columns, self.shape)
        return manifest.decode_again(
            self._source(leaf),
            kind_of(leaf.content_type),
            self.shape,
            file=leaf.location,
            tracking=tracking,
            columns=columns,
            keep=keep,
            table_location=self.table_location,
        )

    def told(self, leaf: Leaf) -> manifest.Told | None:
        """Return what the leaf's own footer says of its row groups, where readers go by that."""
        if leaf.file_format == "avro":
            return None
        kind = kind_of(leaf.content_type)
        return manifest.told(self._source(leaf), kind, self.shape, file=leaf.location)

    def _source(self, leaf: Leaf) -> bytes | pa.NativeFile:
        return self.open(leaf) if self.open else self._content(leaf.location, leaf.key_metadata)

    def _avro(self, leaf: Leaf, tracking: Inherited, columns: Collection[str] | None) -> Entries:
        return legacy.decode_manifest(
            self._content(leaf.location, leaf.key_metadata),
            file=leaf.location,
            shape=self.shape,
            table_location=self.table_location,
            inherit=tracking,
            columns=columns,
        )

    def _content(self, location: str, key: bytes | None) -> bytes:
        if key is None:
            return self.fetch(location)
        if self.unlock is None:
            raise CorruptTable(location, "it is encrypted")
        return self.unlock(location, key)

    def blob(
        self, location: str, *, offset: int, size_bytes: int, key: bytes | None = None
    ) -> bytes:
        """Return a range of a file."""
        content = self._content(location, key)
        if offset < 0 or size_bytes < 0 or offset + size_bytes > len(content):
            raise CorruptTable(
                location, f"bytes {offset} to {offset + size_bytes} of a file of {len(content)}"
            )
        return content[offset : offset + size_bytes]
