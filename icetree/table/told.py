"""Files as people are told of them: entries under the names of Iceberg's metadata tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.locations import absolute_array

#: A column of entries or tasks -> its name there; any other has the same name.
_NAMES: Final = {
    "content_type": "content",
    "location": "file_path",
    "partition_spec_id": "spec_id",
    "referenced_file": "referenced_data_file",
    "dv_location": "delete_file_path",
    "dv_offset": "content_offset",
    "dv_size_in_bytes": "content_size_in_bytes",
}
_LOCATIONS: Final = frozenset({"location", "referenced_file", "dv_location", "leaf"})


#: What opens files, and is nobody's to see.
KEYS: Final = frozenset({"key_metadata", "dv_key_metadata"})


def hidden_keys(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return nulls in the place of key metadata, which holds the key itself."""
    return pa.chunked_array([pa.nulls(len(values), values.type)])


def told_name(column: str) -> str:
    """Return the name under which people see a column."""
    return _NAMES.get(column, column)


def told(entries: pa.Table, columns: Iterable[str], table_location: str) -> pa.Table:
    """Return columns of entries or of tasks as people see them; locations are absolute."""
    return pa.table(
        {told_name(each): _told(entries[each], each, table_location) for each in columns}
    )


def _told(values: pa.ChunkedArray, column: str, table_location: str) -> pa.ChunkedArray:
    if column in KEYS:
        return hidden_keys(values)
    if column in _LOCATIONS:
        return absolute_array(values, table_location)
    if column == "content_type":
        return values.cast(pa.int8())
    return pc.utf8_upper(values) if column == "file_format" else values
