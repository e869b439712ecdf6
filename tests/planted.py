"""What another writer may have put into a table's metadata, past all of our checks."""

from __future__ import annotations

from msgspec.structs import replace

from icetree.catalog.base import Swapped
from icetree.codec import metadata as metadata_codec
from icetree.surroundings import new_uuid
from icetree.table.table import Table


def planted(table: Table, properties: dict[str, str]) -> Table:
    """Return the table with properties that nobody looked at."""
    table.refresh()
    metadata = replace(table.metadata, properties={**table.properties, **properties})
    at = f"{table.location}/metadata/planted-{new_uuid()}.metadata.json"
    table.files.store.write_new(at, metadata_codec.encode(metadata, compress=False))
    expected = table.state.metadata_location
    assert isinstance(table.catalog.swap(table.name, expected=expected, to=at), Swapped)
    return table.refresh()
