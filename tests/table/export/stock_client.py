"""A client that knows v3 alone: it reads an export, and writes a snapshot on top of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from icetree.codec import legacy
from icetree.codec.inherit import Inherited
from icetree.codec.legacy.encode_list import Listed, encode_manifest_list, read_listed
from icetree.codec.legacy.encode_manifest import Layout, encode_manifest
from icetree.spec.entry.entry import (
    POSITION,
    Content,
    Entries,
    Entry,
    Status,
    concat,
    to_table,
    with_columns,
)
from icetree.spec.location import absolute
from icetree.table.export.export import export
from icetree.table.table import Table

ID = 4711


@dataclass
class StockClient:
    """What a client was shown, and what it makes of it."""

    table: Table
    id: int = ID
    version: int = 3
    kept: list[Listed] = field(default_factory=list)
    made: list[Listed] = field(default_factory=list)

    def __post_init__(self) -> None:
        snapshot = self.table.current_snapshot
        self.parent = None if snapshot is None else snapshot.snapshot_id
        self.sequence_number = self.table.metadata.last_sequence_number + 1
        told = export(self.table.state, self.table.files, snapshot, format_version=self.version)
        if told.manifest_list is not None:
            content = self.table.files.store.read(told.manifest_list)
            self.kept = read_listed(content, file=told.manifest_list)

    @property
    def layout(self) -> Layout:
        return Layout(
            format_version=self.version,
            spec_id=0,
            fields=(),
            schema=self.table.metadata.schema_json(),
            shape=self.table.metadata.shape(),
            table_location=self.table.location,
        )

    def add(self, *files: Entry, status: Status = Status.ADDED, **more: Any) -> Listed:
        """Write a manifest of files."""
        told = {
            "status": int(status),
            "snapshot_id": self.id,
            "sequence_number": self.sequence_number,
            "file_sequence_number": self.sequence_number,
        }
        rows = [replace(each, **{**told, **more}) for each in files]
        return self.write(to_table(rows, self.table.metadata.shape()))

    def write(self, entries: Entries, **more: Any) -> Listed:
        """Write entries as a manifest of the snapshot's own."""
        found = encode_manifest(entries, self.layout)
        at = absolute(f"metadata/{self.id}-m{len(self.made)}.avro", self.table.location)
        self.table.files.store.write_new(at, found.content)
        made = Listed(
            location=at,
            size_bytes=len(found.content),
            spec_id=0,
            holds_data=found.holds_data,
            sequence_number=self.sequence_number,
            min_sequence_number=found.min_sequence_number,
            snapshot_id=self.id,
            counts=found.counts,
            partitions=(),
            first_row_id=0 if found.holds_data else None,
        )
        self.made.append(replace(made, **more))
        return self.made[-1]

    def files(self, *, holds_data: bool = True) -> Entries:
        """Return what is in the manifests that the client was shown."""
        kind = Content.DATA_MANIFEST if holds_data else Content.DELETE_MANIFEST
        parts = [
            legacy.decode_manifest(
                self.table.files.store.read(each.location),
                file=each.location,
                shape=self.table.metadata.shape(),
                table_location=self.table.location,
                inherit=Inherited(content_type=kind),
            ).drop_columns([POSITION])
            for each in self.kept
            if each.holds_data is holds_data
        ]
        return concat(parts)

    def rewritten(self, *removed: str) -> None:
        """Put one manifest in the place of all of data, with some files as removed."""
        entries = self.files()
        names = entries["location"].to_pylist()
        gone = [name in removed for name in names]
        statuses = [int(Status.DELETED if each else Status.EXISTING) for each in gone]
        ids = entries["snapshot_id"].to_pylist()
        entries = with_columns(
            entries,
            status=pa.array(statuses, pa.int32()),
            snapshot_id=pa.array([self.id if g else i for g, i in zip(gone, ids, strict=True)]),
        )
        self.kept = [each for each in self.kept if not each.holds_data]
        self.write(entries)

    def snapshot(self, operation: str = "append", **more: Any) -> dict[str, Any]:
        """Write the manifest list, and return what the client asks to be added."""
        return self.listing([*self.made, *self.kept], operation, **more)

    def listing(self, manifests: Sequence[Listed], operation: str, **more: Any) -> dict[str, Any]:
        """Write a list of these manifests, and return the snapshot of it."""
        at = absolute(f"metadata/snap-{self.id}-client.avro", self.table.location)
        content = encode_manifest_list(manifests, {}, format_version=self.version)
        self.table.files.store.write_new(at, content)
        told = {
            "snapshot-id": self.id,
            "sequence-number": self.sequence_number,
            "timestamp-ms": 1,
            "manifest-list": at,
            "summary": {"operation": operation, "engine-name": "stock", "added-records": "999"},
            "schema-id": 0,
            **more,
        }
        return told if self.parent is None else {"parent-snapshot-id": self.parent, **told}
