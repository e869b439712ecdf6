"""Trying v4 out: a table beside one of v1 to v3, which shares its files and leaves them alone.

The trial has a folder of its own. All that it writes goes there, and all that it ever deletes is
there: the files of the other table are named in full, and so are told from its own. The other table
knows nothing of it, and may delete what the trial still needs: then `verify` tells.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from icetree.codec import metadata as metadata_codec
from icetree.errors import InvalidInput
from icetree.keys.base import Keeper
from icetree.spec.apply.apply import apply
from icetree.spec.fields import FORMAT_VERSION
from icetree.spec.location import absolute
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.retention import GC_ENABLED, OWN_LOCATION_ONLY
from icetree.store.base import Store
from icetree.surroundings import new_uuid, now_ms
from icetree.table.commit.attempt import next_metadata_location
from icetree.table.evolve.evolve import upgrading
from icetree.table.maintain.orphans.neighbours import WRITE_PATHS
from icetree.table.moving.apart import require_beside_table
from icetree.table.moving.source import Source

#: What a table that shares files has: other engines delete nothing, and we what is its own.
SHARING: Final = {GC_ENABLED: "false", OWN_LOCATION_ONLY: "true"}


def trial(source: Source, place: str, store: Store, keeper: Keeper | None = None) -> str:
    """Write the metadata of a trial at a place, and return where; it has no name yet."""
    metadata = source.metadata
    if metadata.format_version >= FORMAT_VERSION:
        raise InvalidInput(
            f"{source.metadata_location} is of v{metadata.format_version} already: copy_table makes "
            "a table of its own of it"
        )
    require_beside_table(place, metadata, store, keeper)
    after = apply(metadata, upgrading(metadata), at_ms=max(now_ms(), metadata.last_updated_ms))
    after = replace(
        after,
        table_uuid=new_uuid(),
        location=place,
        properties=shared_properties(metadata),
        # Former metadata files are the other table's.
        metadata_log=(),
    )
    at = absolute(next_metadata_location(None, compress=True), place)
    store.write_new(at, metadata_codec.encode(after))
    return at


def shared_properties(metadata: TableMetadata) -> dict[str, str]:
    """Return the properties without what has files go to the other table's places."""
    kept = {name: value for name, value in metadata.properties.items() if name not in WRITE_PATHS}
    return {**kept, **SHARING}
