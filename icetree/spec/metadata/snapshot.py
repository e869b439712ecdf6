"""Snapshots, the refs that name them, and the logs and pages that remember them."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Final, Literal

import msgspec

from icetree.spec.fields import MANIFEST_LIST, ROOT_MANIFEST
from icetree.spec.notebook import facts_html
from icetree.spec.noun import Int, Long, Noun

MAIN: Final = "main"


class Snapshot(Noun, frozen=True, kw_only=True):
    """The table's state after one commit."""

    snapshot_id: Long
    parent_snapshot_id: Long | None = None
    #: 0 in a v1 table, which has none.
    sequence_number: Long = 0
    timestamp_ms: Long
    #: The top of the tree: one of these three. Only v4 has roots, only v1 an inline list.
    root_manifest: str | None = msgspec.field(default=None, name=ROOT_MANIFEST)
    manifest_list: str | None = msgspec.field(default=None, name=MANIFEST_LIST)
    manifests: tuple[str, ...] | None = None
    summary: dict[str, str] | None = None
    schema_id: Int | None = None
    first_row_id: Long | None = None
    added_rows: Long | None = None
    key_id: str | None = None

    @property
    def operation(self) -> str | None:
        """What the commit did, as its summary says it."""
        return (self.summary or {}).get("operation")

    def __repr__(self) -> str:
        told = {"operation": self.operation, "sequence_number": self.sequence_number}
        told |= {"timestamp_ms": self.timestamp_ms, "parent": self.parent_snapshot_id}
        facts = "".join(f", {name}={value!r}" for name, value in told.items())
        return f"Snapshot({self.snapshot_id}{facts})"

    def _repr_html_(self) -> str:
        at = datetime.fromtimestamp(self.timestamp_ms / 1000, tz=timezone.utc)
        facts = {
            "committed at": f"{at:%Y-%m-%d %H:%M:%S}.{self.timestamp_ms % 1000:03d} UTC",
            "parent": self.parent_snapshot_id,
            "sequence number": self.sequence_number,
            "root": self.root_file,
        }
        return facts_html(f"snapshot {self.snapshot_id}", facts | (self.summary or {}))

    @property
    def root_file(self) -> str:
        """The file at the top of the tree, as stored: the root, or before v4 the manifest list."""
        # An inline list of v1 is no file; what is said of it names the snapshot.
        return self.root_manifest or self.manifest_list or f"snapshot {self.snapshot_id}"


class Ref(Noun, frozen=True, kw_only=True):
    """A branch or a tag: a name for a snapshot, with how long to keep what it reaches."""

    snapshot_id: Long
    type: Literal["branch", "tag"]
    min_snapshots_to_keep: Int | None = None
    max_snapshot_age_ms: Long | None = None
    max_ref_age_ms: Long | None = None


class LogEntry(Noun, frozen=True, kw_only=True):
    """From this time on, this snapshot was the current one."""

    timestamp_ms: Long
    snapshot_id: Long


class MetadataLogEntry(Noun, frozen=True, kw_only=True):
    """A former metadata file, and when it was written."""

    timestamp_ms: Long
    metadata_file: str


class SnapshotPage(Noun, frozen=True, kw_only=True):
    """Where a page of history lies, and enough of what it holds to leave it unread.

    Ranges are inclusive. Those of two pages may overlap: a snapshot that a ref held back
    leaves later than its neighbours.
    """

    location: str
    size_in_bytes: Long
    count: Int
    first_sequence_number: Long
    last_sequence_number: Long
    first_timestamp_ms: Long
    last_timestamp_ms: Long
    #: Of the page's part of the snapshot log, which may be empty.
    log_count: Int = 0
    first_log_timestamp_ms: Long | None = None
    last_log_timestamp_ms: Long | None = None


class Page(Noun, frozen=True, kw_only=True):
    """A page of history: old snapshots by sequence number, and the oldest part of the log."""

    snapshots: tuple[Snapshot, ...] = ()
    snapshot_log: tuple[LogEntry, ...] = ()
