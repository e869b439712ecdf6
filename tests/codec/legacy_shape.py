"""A table as old manifests tell of it, with several partition fields."""

from __future__ import annotations

import struct
from typing import Any

from pyiceberg.schema import Schema
from pyiceberg.types import (
    DoubleType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
)

from icetree.codec.inherit import Inherited
from icetree.codec.legacy import decode_manifest
from icetree.spec.entry.entry import Content, Entries
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape
from tests.codec.avro_manifests import field

TABLE = "s3://bucket/table"
DATA = f"{TABLE}/data"
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "name", StringType(), required=False),
    NestedField(3, "score", DoubleType(), required=False),
    NestedField(4, "at", TimestampType(), required=False),
)
BUCKET = Expression(
    expr_id=10, source_ids=(1,), transform="bucket[8]", name="id_bucket", partition_field_id=1000
)
NAME = Expression(
    expr_id=11, source_ids=(2,), transform="identity", name="name", partition_field_id=1001
)
SCORE = Expression(
    expr_id=12, source_ids=(3,), transform="identity", name="score", partition_field_id=1002
)
GONE = Expression(
    expr_id=13, source_ids=(1,), transform="void", name="id_gone", partition_field_id=1003
)
SHAPE = Shape(
    schema=SCHEMA,
    expressions={each.expr_id: each for each in (BUCKET, NAME, SCORE, GONE)},
    specs={0: (), 1: (10, 11), 2: (12, 13)},
)
BY_BUCKET_AND_NAME = (field(1000, "id_bucket", "int"), field(1001, "name", "string"))
ADDED_LEAF = Inherited(snapshot_id=7, sequence_number=5)
DELETE_LEAF = Inherited(content_type=Content.DELETE_MANIFEST, snapshot_id=7, sequence_number=5)


def long(value: int) -> bytes:
    return struct.pack("<q", value)


def decode(data: bytes, leaf: Inherited = ADDED_LEAF, columns: list[str] | None = None) -> Entries:
    return decode_manifest(
        data, file="m.avro", shape=SHAPE, table_location=TABLE, inherit=leaf, columns=columns
    )


def values(entries: Entries, name: str) -> list[Any]:
    found: list[Any] = entries[name].to_pylist()
    return found
