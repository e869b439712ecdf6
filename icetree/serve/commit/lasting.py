"""What a client's commit must leave behind: a table that can be loaded, and written to, again."""

from __future__ import annotations

from collections.abc import Iterable

from icetree.codec.metadata import decode, encode
from icetree.errors import CorruptTable, InvalidInput
from icetree.serve.tables import as_clients_see
from icetree.spec.apply.apply import apply
from icetree.spec.metadata.encryption import is_plain
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.update import Update
from icetree.surroundings import now_ms


def require_lasting(before: TableMetadata, updates: Iterable[Update]) -> None:
    """Refuse updates after which nobody could load the table, or write to it, any more."""
    after = apply(before, updates, at_ms=now_ms())
    require_loadable(after)
    if is_plain(before) and not is_plain(after):
        raise InvalidInput(
            "the server writes plain files only, so that nothing could be written to the table "
            "after that: leave it without encryption keys"
        )


def require_loadable(metadata: TableMetadata) -> None:
    """Refuse metadata whose bytes would not be read again, or that no client could be shown."""
    try:
        as_clients_see(decode(encode(metadata, compress=False), file="the table"))
    except CorruptTable as error:
        raise InvalidInput(f"nobody could load the table after that: {error}") from None
