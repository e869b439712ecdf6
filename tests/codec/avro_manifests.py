"""Manifests and manifest lists of v1-v3, written with the Avro schemas of the specification."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import fastavro

Json = Any


def field(id: int, name: str, type: Json, *, required: bool = False) -> Json:
    """A record's field with its Iceberg id."""
    if required:
        return {"name": name, "type": type, "field-id": id}
    return {"name": name, "type": ["null", type], "default": None, "field-id": id}


def record(name: str, *fields: Json) -> Json:
    return {"type": "record", "name": name, "fields": list(fields)}


def array(element_id: int, type: Json) -> Json:
    return {"type": "array", "items": type, "element-id": element_id}


def int_map(key_id: int, value_id: int, value: str) -> Json:
    """A map with int keys, which Avro lacks: an array of pairs."""
    pair = record(
        f"k{key_id}_v{value_id}",
        field(key_id, "key", "int", required=True),
        field(value_id, "value", value, required=True),
    )
    return {"type": "array", "logicalType": "map", "items": pair}


def data_file(version: int, partition: Iterable[Json]) -> Json:
    """The `data_file` struct of a version; `partition` are the fields of its tuple."""
    fields = [
        field(100, "file_path", "string", required=True),
        field(101, "file_format", "string", required=True),
        field(102, "partition", record("r102", *partition), required=True),
        field(103, "record_count", "long", required=True),
        field(104, "file_size_in_bytes", "long", required=True),
        field(108, "column_sizes", int_map(117, 118, "long")),
        field(109, "value_counts", int_map(119, 120, "long")),
        field(110, "null_value_counts", int_map(121, 122, "long")),
        field(137, "nan_value_counts", int_map(138, 139, "long")),
        field(125, "lower_bounds", int_map(126, 127, "bytes")),
        field(128, "upper_bounds", int_map(129, 130, "bytes")),
        field(131, "key_metadata", "bytes"),
        field(132, "split_offsets", array(133, "long")),
        field(140, "sort_order_id", "int"),
    ]
    if version == 1:
        fields.insert(5, field(105, "block_size_in_bytes", "long", required=True))
    else:
        fields.insert(0, field(134, "content", "int", required=True))
        fields.append(field(135, "equality_ids", array(136, "int")))
        fields.append(field(143, "referenced_data_file", "string"))
    if version == 3:
        fields.append(field(142, "first_row_id", "long"))
        fields.append(field(144, "content_offset", "long"))
        fields.append(field(145, "content_size_in_bytes", "long"))
    return record("r2", *fields)


def manifest_schema(version: int, partition: Iterable[Json] = ()) -> Json:
    """The `manifest_entry` struct of a version."""
    fields = [
        field(0, "status", "int", required=True),
        field(1, "snapshot_id", "long", required=version == 1),
    ]
    if version > 1:
        fields.append(field(3, "sequence_number", "long"))
        fields.append(field(4, "file_sequence_number", "long"))
    fields.append(field(2, "data_file", data_file(version, partition), required=True))
    return record("manifest_entry", *fields)


def list_schema(version: int) -> Json:
    """The `manifest_file` struct of a version; v1 uses the names that its writers did."""
    summary = record(
        "r508",
        field(509, "contains_null", "boolean", required=True),
        field(518, "contains_nan", "boolean"),
        field(510, "lower_bound", "bytes"),
        field(511, "upper_bound", "bytes"),
    )
    since_v2 = version > 1
    fields = [
        field(500, "manifest_path", "string", required=True),
        field(501, "manifest_length", "long", required=True),
        field(502, "partition_spec_id", "int", required=True),
        field(503, "added_snapshot_id", "long", required=since_v2),
        field(504, "added_files_count" if since_v2 else "added_data_files_count", "int"),
        field(505, "existing_files_count" if since_v2 else "existing_data_files_count", "int"),
        field(506, "deleted_files_count" if since_v2 else "deleted_data_files_count", "int"),
        field(512, "added_rows_count", "long"),
        field(513, "existing_rows_count", "long"),
        field(514, "deleted_rows_count", "long"),
        field(507, "partitions", array(508, summary)),
        field(519, "key_metadata", "bytes"),
    ]
    if since_v2:
        fields.append(field(517, "content", "int", required=True))
        fields.append(field(515, "sequence_number", "long", required=True))
        fields.append(field(516, "min_sequence_number", "long", required=True))
    if version == 3:
        fields.append(field(520, "first_row_id", "long"))
    return record("manifest_file", *fields)


def entry(path: str, *, status: int = 1, rows: int = 10, **more: Any) -> Json:
    """A manifest entry; what belongs to its data file is told by name."""
    tracking = {"snapshot_id": None, "sequence_number": None, "file_sequence_number": None}
    told = {name: more.pop(name) for name in tuple(tracking) if name in more}
    file = {
        "content": 0,
        "file_path": path,
        "file_format": "PARQUET",
        "partition": {},
        "record_count": rows,
        "file_size_in_bytes": 1000,
        "block_size_in_bytes": 67108864,
    }
    return {"status": status, **tracking, **told, "data_file": file | more}


def pairs(values: dict[int, Any]) -> list[Json]:
    """An int map as Avro holds it."""
    return [{"key": key, "value": value} for key, value in values.items()]


def write(schema: Json, rows: Iterable[Json], *, codec: str = "deflate", **meta: str) -> bytes:
    """An Avro file with key-value metadata; underscores in names stand for dashes."""
    out = io.BytesIO()
    metadata = {name.replace("_", "-"): value for name, value in meta.items()}
    fastavro.writer(out, schema, list(rows), codec=codec, metadata=metadata)
    return out.getvalue()


def manifest(
    version: int,
    *entries: Json,
    partition: Iterable[Json] = (),
    content: str = "data",
    spec_id: int = 0,
    codec: str = "deflate",
) -> bytes:
    """A manifest file with the metadata of its version."""
    meta = {"format_version": str(version), "partition_spec_id": str(spec_id)}
    if version > 1:
        meta["content"] = content
    return write(manifest_schema(version, partition), entries, codec=codec, **meta)


def manifest_list(version: int, *manifests: Json) -> bytes:
    """A manifest list; what is not told is null or 0."""
    usual = {
        "manifest_length": 5000,
        "partition_spec_id": 0,
        "content": 0,
        "sequence_number": 0,
        "min_sequence_number": 0,
    }
    rows = [usual | each for each in manifests]
    return write(list_schema(version), rows, format_version=str(version))
