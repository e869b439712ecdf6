"""Which tables are encrypted, and how long the keys of their files are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from icetree.errors import InvalidInput, Unsupported
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.update import SetProperties, Update

#: Names the key that wraps the keys of a table; who has it reads the table.
KEY_PROPERTY: Final = "encryption.key-id"
#: How many bytes the keys of files have.
KEY_BYTES_PROPERTY: Final = "encryption.data-key-length"
_KEY_BYTES: Final = ("16", "24", "32")


def data_key_bytes(properties: Mapping[str, str]) -> int | None:
    """Return how long the keys of new files are; None where they are plain."""
    if not properties.get(KEY_PROPERTY):
        return None
    given = properties.get(KEY_BYTES_PROPERTY, _KEY_BYTES[0])
    if given not in _KEY_BYTES:
        raise InvalidInput(
            f"{KEY_BYTES_PROPERTY}={given!r}: allowed are {', '.join(_KEY_BYTES)} (bytes)"
        )
    return int(given)


def sets_key(update: Update) -> bool:
    """Tell whether an update names the table's key, be it the one that it has."""
    return isinstance(update, SetProperties) and KEY_PROPERTY in update.updates


def is_encrypted(metadata: TableMetadata) -> bool:
    """Tell whether a table's files are encrypted."""
    return data_key_bytes(metadata.properties) is not None


def is_plain(metadata: TableMetadata) -> bool:
    """Tell whether nothing says that some file of a table is encrypted."""
    return not is_encrypted(metadata) and next(_signs(metadata), None) is None


def require_told(metadata: TableMetadata) -> None:
    """Raise Unsupported where plain files would stand among files that are meant to be secret."""
    if is_encrypted(metadata):
        return
    for sign in _signs(metadata):
        raise Unsupported(
            f"{metadata.location} is encrypted ({sign}) but has no property {KEY_PROPERTY} that "
            "names its key: write to it with the engine that made it; nothing was written"
        )


def _signs(metadata: TableMetadata) -> Iterator[str]:
    for key in metadata.encryption_keys:
        yield f"it has encryption key {key.key_id!r}"
    for snapshot in metadata.snapshots:
        if snapshot.key_id is not None:
            yield f"its snapshot {snapshot.snapshot_id} has key {snapshot.key_id!r}"


def require_plain_target(metadata: TableMetadata) -> None:
    """Refuse to make plain files, as they are, the files of an encrypted table."""
    if is_encrypted(metadata):
        raise InvalidInput(
            f"{metadata.location} is encrypted, and a file that is added as it is is not encrypted "
            "with a key of it: append its rows"
        )


def require_same_secrecy(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Refuse properties by which a table would become encrypted, or plain; its key may be another."""
    was, now = before.get(KEY_PROPERTY), after.get(KEY_PROPERTY)
    if was != now and not (was and now):
        raise InvalidInput(
            f"whether a table has {KEY_PROPERTY} is chosen when it is made, and files of it depend "
            "on that: make another table and copy the rows"
        )


def without_keys(metadata: TableMetadata, ids: Iterable[str | None]) -> TableMetadata:
    """Return metadata without the keys of roots and statistics that go."""
    keys = {*ids} - {None}
    if not keys:
        return metadata
    kept = tuple(each for each in metadata.encryption_keys if each.key_id not in keys)
    return replace(metadata, encryption_keys=kept)
