"""Every id and on-disk name of a content entry, once.

Upstream is still moving. Code elsewhere speaks of the flat, in-memory column names below and
never of ids or nesting, so a second layout on disk is a second list in this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

FORMAT_VERSION: Final = 4

#: Key-value metadata of a manifest file.
FORMAT_VERSION_KEY: Final = "format-version"
CONTENT_KEY: Final = "content"

#: Where Parquet's field ids stand in the metadata of an Arrow field.
FIELD_ID_KEY: Final = b"PARQUET:field_id"

#: The snapshot field that names the tree's top: the proposal's name, kept in one place.
ROOT_MANIFEST: Final = "root-manifest"
MANIFEST_LIST: Final = "manifest-list"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A struct on disk; its members are flat columns in memory."""

    id: int
    name: str


TRACKING_INFO: Final = Group(id=5, name="tracking_info")
DELETION_VECTOR: Final = Group(id=147, name="deletion_vector")
MANIFEST_STATS: Final = Group(id=521, name="manifest_stats")
CONTENT_STATS: Final = Group(id=10000, name="content_stats")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a content entry: flat `name` in memory, `id` and `disk_name` on disk."""

    name: str
    id: int
    type: pa.DataType
    required: bool = False
    group: Group | None = None
    disk_name: str = ""
    #: The id of a list's element, where the column is a list.
    element_id: int | None = None

    @property
    def stored_as(self) -> str:
        """The name on disk, informational: readers resolve by id."""
        return self.disk_name or self.name


def _column(name: str, id: int, type: pa.DataType, **more: object) -> Column:
    return Column(name=name, id=id, type=type, **more)  # type: ignore[arg-type]


_INT, _LONG, _STRING, _BINARY = pa.int32(), pa.int64(), pa.string(), pa.binary()

#: A content entry without its stats, in the order it is written.
ENTRY: Final[tuple[Column, ...]] = (
    _column("content_type", 134, _INT, required=True),
    _column("location", 100, _STRING),
    _column("file_format", 101, _STRING, required=True),
    _column("status", 0, _INT, required=True, group=TRACKING_INFO),
    _column("snapshot_id", 1, _LONG, group=TRACKING_INFO),
    _column("sequence_number", 3, _LONG, group=TRACKING_INFO),
    _column("file_sequence_number", 4, _LONG, group=TRACKING_INFO),
    _column("first_row_id", 142, _LONG, group=TRACKING_INFO),
    _column("dv_offset", 144, _LONG, group=DELETION_VECTOR, disk_name="offset"),
    _column("dv_size_in_bytes", 145, _LONG, group=DELETION_VECTOR, disk_name="size_in_bytes"),
    _column("dv_inline_content", 146, _BINARY, group=DELETION_VECTOR, disk_name="inline_content"),
    _column("dv_added_positions", 149, _BINARY, group=DELETION_VECTOR, disk_name="added_positions"),
    _column("partition_spec_id", 148, _INT, required=True),
    _column("sort_order_id", 140, _INT),
    _column("record_count", 103, _LONG, required=True),
    _column("file_size_in_bytes", 104, _LONG),
    _column("added_files_count", 504, _INT, group=MANIFEST_STATS),
    _column("existing_files_count", 505, _INT, group=MANIFEST_STATS),
    _column("deleted_files_count", 506, _INT, group=MANIFEST_STATS),
    _column("added_rows_count", 512, _LONG, group=MANIFEST_STATS),
    _column("existing_rows_count", 513, _LONG, group=MANIFEST_STATS),
    _column("deleted_rows_count", 514, _LONG, group=MANIFEST_STATS),
    _column("min_sequence_number", 516, _LONG, group=MANIFEST_STATS),
    _column("referenced_file", 143, _STRING),
    _column("key_metadata", 131, _BINARY),
    _column("split_offsets", 132, pa.list_(_LONG), element_id=133),
    _column("equality_ids", 135, pa.list_(_INT), element_id=136),
)

BY_NAME: Final[dict[str, Column]] = {column.name: column for column in ENTRY}
BY_ID: Final[dict[int, Column]] = {column.id: column for column in ENTRY}

#: Stats of a field start at 10000 + 200 x field id; offsets are inside that range.
STATS_START: Final = 10_000
STATS_STRIDE: Final = 200
#: Parquet's field ids have 32 bits: columns and expressions with larger ids have no stats.
LAST_STATS_FIELD: Final = (2**31 - 1 - STATS_START) // STATS_STRIDE

#: Ids of columns and expressions go so far: those above are reserved for metadata columns.
MAX_ID: Final = 2147483447

#: Reserved field ids of the row lineage columns, and where their stats start.
ROW_ID_FIELD: Final = 2147483540
LAST_UPDATED_SEQUENCE_NUMBER_FIELD: Final = 2147483539
LINEAGE_STATS: Final[dict[int, int]] = {
    ROW_ID_FIELD: 9200,
    LAST_UPDATED_SEQUENCE_NUMBER_FIELD: 9000,
}

#: Reserved field ids of v2 position delete files.
DELETE_FILE_PATH_FIELD: Final = 2147483546
DELETE_POS_FIELD: Final = 2147483545

#: Each stat of a field: short in-memory name -> (offset, name on disk).
STAT_OFFSETS: Final[dict[str, tuple[int, str]]] = {
    "lower": (1, "lower_bound"),
    "upper": (2, "upper_bound"),
    "tight": (3, "tight_bounds"),
    "values": (4, "value_count"),
    "nulls": (5, "null_value_count"),
    "nans": (6, "nan_value_count"),
    "avg_size": (7, "avg_value_size_in_bytes"),
    "max_size": (8, "max_value_size_in_bytes"),
}
STAT_BY_OFFSET: Final[dict[int, str]] = {at: stat for stat, (at, _) in STAT_OFFSETS.items()}

#: Geo bounds are structs of coordinates, with ids of their own.
GEO_AXES: Final = ("x", "y", "z", "m")
GEO_LOWER_START: Final = 10
GEO_UPPER_START: Final = 14
