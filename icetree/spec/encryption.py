"""Tables whose files are encrypted: read as far as they are plain, and never written to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from icetree.errors import Unsupported
from icetree.spec.metadata import TableMetadata

#: Names the key that a table's files are encrypted with.
KEY_PROPERTY: Final = "encryption.key-id"


def require_plain(metadata: TableMetadata) -> None:
    """Raise Unsupported where plain files would stand among files that are meant to be secret."""
    for sign in _signs(metadata):
        raise Unsupported(
            f"{metadata.location} is encrypted ({sign}), and icetree writes plain files only: "
            "write to it with an engine that has its keys; nothing was written"
        )


def _signs(metadata: TableMetadata) -> Iterator[str]:
    if metadata.properties.get(KEY_PROPERTY):
        yield f"its property {KEY_PROPERTY} is set"
    for key in metadata.encryption_keys:
        yield f"it has encryption key {key.key_id!r}"
    for snapshot in metadata.snapshots:
        if snapshot.key_id is not None:
            yield f"its snapshot {snapshot.snapshot_id} has key {snapshot.key_id!r}"
