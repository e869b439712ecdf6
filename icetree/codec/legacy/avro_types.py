"""The records of v2 and v3 manifests and manifest lists, as Avro schemas.

Names are the specification's own: some readers go by them and not by ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyiceberg.types import IcebergType

from icetree.codec.avro.types import ICEBERG_NAME, Types, storable_name
from icetree.codec.avro.types import field as _field
from icetree.codec.avro.types import record as _record
from icetree.spec.metadata.layout import PartitionField

Json = dict[str, Any]


def _map(key_id: int, value_id: int, value: str) -> Json:
    pair = {
        "type": "record",
        "name": f"k{key_id}_v{value_id}",
        "fields": [
            {"name": "key", "type": "int", "field-id": key_id},
            {"name": "value", "type": value, "field-id": value_id},
        ],
    }
    return {"type": "array", "items": pair, "logicalType": "map"}


def _list(element_id: int, element: str) -> Json:
    return {"type": "array", "items": element, "element-id": element_id}


def manifest_record(fields: Sequence[tuple[PartitionField, IcebergType]], version: int) -> Json:
    """Return the record of a manifest whose files are partitioned so."""
    file = [
        _field("content", 134, "int", required=True),
        _field("file_path", 100, "string", required=True),
        _field("file_format", 101, "string", required=True),
        _field("partition", 102, _partition(fields), required=True),
        _field("record_count", 103, "long", required=True),
        _field("file_size_in_bytes", 104, "long", required=True),
        _field("column_sizes", 108, _map(117, 118, "long")),
        _field("value_counts", 109, _map(119, 120, "long")),
        _field("null_value_counts", 110, _map(121, 122, "long")),
        _field("nan_value_counts", 137, _map(138, 139, "long")),
        _field("lower_bounds", 125, _map(126, 127, "bytes")),
        _field("upper_bounds", 128, _map(129, 130, "bytes")),
        _field("key_metadata", 131, "bytes"),
        _field("split_offsets", 132, _list(133, "long")),
        _field("equality_ids", 135, _list(136, "int")),
        _field("sort_order_id", 140, "int"),
    ]
    if version >= 3:
        file.append(_field("first_row_id", 142, "long"))
    file.append(_field("referenced_data_file", 143, "string"))
    if version >= 3:
        file.append(_field("content_offset", 144, "long"))
        file.append(_field("content_size_in_bytes", 145, "long"))
    return _record(
        "manifest_entry",
        [
            _field("status", 0, "int", required=True),
            _field("snapshot_id", 1, "long"),
            _field("sequence_number", 3, "long"),
            _field("file_sequence_number", 4, "long"),
            _field("data_file", 2, _record("r2", file), required=True),
        ],
    )


def _partition(fields: Sequence[tuple[PartitionField, IcebergType]]) -> Json:
    found = []
    taken: set[str] = set()
    types = Types()
    for each, type in fields:
        name = storable_name(each.name, each.field_id, taken)
        one = _field(name, each.field_id, types.type(type, name))
        found.append(one if name == each.name else {**one, ICEBERG_NAME: each.name})
    return _record("r102", found)


def manifest_list_record(version: int) -> Json:
    """Return the record of a manifest list."""
    summary = _record(
        "r508",
        [
            _field("contains_null", 509, "boolean", required=True),
            _field("contains_nan", 518, "boolean"),
            _field("lower_bound", 510, "bytes"),
            _field("upper_bound", 511, "bytes"),
        ],
    )
    fields = [
        _field("manifest_path", 500, "string", required=True),
        _field("manifest_length", 501, "long", required=True),
        _field("partition_spec_id", 502, "int", required=True),
        _field("content", 517, "int", required=True),
        _field("sequence_number", 515, "long", required=True),
        _field("min_sequence_number", 516, "long", required=True),
        _field("added_snapshot_id", 503, "long", required=True),
        _field("added_files_count", 504, "int", required=True),
        _field("existing_files_count", 505, "int", required=True),
        _field("deleted_files_count", 506, "int", required=True),
        _field("added_rows_count", 512, "long", required=True),
        _field("existing_rows_count", 513, "long", required=True),
        _field("deleted_rows_count", 514, "long", required=True),
        _field("partitions", 507, {"type": "array", "items": summary, "element-id": 508}),
        _field("key_metadata", 519, "bytes"),
    ]
    if version >= 3:
        fields.append(_field("first_row_id", 520, "long"))
    return _record("manifest_file", fields)
