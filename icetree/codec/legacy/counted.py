"""Manifests of Iceberg Java whose partitions have fixed values: their length stands before them.

It is so in 1.11, whatever the schema in the file says, and Java reads no others. Whoever reads by the
schema runs past the end of a value.
"""

from __future__ import annotations

import json
from typing import Final

from icetree.codec.avro.avro import AvroFile, Json, read_as, without_logical_types

#: The id of the field that holds partitions.
PARTITION: Final = 102


def with_counted_bytes(avro: AvroFile) -> AvroFile | None:
    """Return a manifest read with bytes for fixed values of partitions; None where it has none."""
    # UUIDs and decimals, which logical types tell, are as they should be.
    schema = json.loads(avro.metadata["avro.schema"])
    changed = _rewritten(schema, within=False)
    return None if changed == schema else read_as(avro, without_logical_types(changed))


def _rewritten(schema: Json, *, within: bool) -> Json:
    match schema:
        case {"type": "fixed"} if within and "logicalType" not in schema:
            return "bytes"
        case {"type": "record"}:
            return schema | {"fields": [_field(each, within=within) for each in schema["fields"]]}
        case list():
            return [_rewritten(each, within=within) for each in schema]
    return schema


def _field(field: Json, *, within: bool) -> Json:
    inside = within or field.get("field-id") == PARTITION
    return field | {"type": _rewritten(field["type"], within=inside)}
