"""The first metadata of a table, from every form a schema comes in."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import (
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from icetree.codec import metadata as metadata_codec
from icetree.errors import InvalidInput
from icetree.spec.edit.create import table_metadata
from icetree.spec.metadata.layout import UNSORTED
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.rules.metadata import broken_rule

NESTED = Schema(
    NestedField(40, "id", LongType(), required=True),
    NestedField(
        7,
        "s",
        StructType(
            NestedField(90, "a", IntegerType(), required=False),
            NestedField(
                3, "m", MapType(5, StringType(), 6, ListType(8, IntegerType())), required=False
            ),
        ),
        required=False,
    ),
    NestedField(1, "z", StringType(), required=False, doc="last"),
    identifier_field_ids=[40],
)


def table(schema: Any, **more: Any) -> TableMetadata:
    made = table_metadata(schema, location="s3://b/t", uuid="u", at_ms=5, **more)
    assert broken_rule(made) is None
    return made


def test_ids_are_assigned_as_pyiceberg_assigns_them() -> None:
    spec = PartitionSpec(PartitionField(40, 1000, BucketTransform(4), "id_bucket_4"))
    peer = new_table_metadata(NESTED, spec, UNSORTED_SORT_ORDER, "s3://b/t")
    made = table(NESTED, partition_by=["bucket(4, id)"])
    assert made.schema() == peer.schema()
    assert made.schema().identifier_field_ids == peer.schema().identifier_field_ids
    field = peer.spec().fields[0]
    expression = made.expressions[0]
    assert (expression.source_id, expression.partition_field_id, expression.name) == (
        field.source_id,
        field.field_id,
        field.name,
    )
    assert expression.expr_id == peer.last_column_id + 1 == made.last_column_id
    assert made.last_partition_id == peer.last_partition_id


def test_every_form_of_a_schema_says_the_same() -> None:
    forms: list[Any] = [
        "id bigint not null, tags array<string>, `at` timestamptz",
        {"id": "long not null", "tags": pa.list_(pa.string()), "at": "timestamptz"},
        [("id", "long NOT NULL"), ("tags", "list<string>"), ("at", pa.timestamp("us", "UTC"))],
        pa.schema(
            [
                pa.field("id", pa.int64(), nullable=False),
                pa.field("tags", pa.large_list(pa.large_string())),
                pa.field("at", pa.timestamp("ms", "Europe/Berlin")),
            ]
        ),
    ]
    made = [table(form) for form in forms]
    assert made[0] == made[1] == made[2] == made[3]
    assert [field["type"] for field in made[0].schema_json()["fields"]][::2] == [
        "long",
        "timestamptz",
    ]


@pytest.mark.parametrize(
    ("arrow", "iceberg"),
    [
        (pa.int8(), "int"),
        (pa.uint16(), "int"),
        (pa.uint32(), "long"),
        (pa.float16(), "float"),
        (pa.decimal128(9, 2), "decimal(9, 2)"),
        (pa.date64(), "date"),
        (pa.time32("s"), "time"),
        (pa.timestamp("ns"), "timestamp_ns"),
        (pa.timestamp("s"), "timestamp"),
        (pa.binary(3), "fixed[3]"),
        (pa.large_binary(), "binary"),
        (pa.string_view(), "string"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.uuid(), "uuid"),
        (pa.null(), "unknown"),
        (pa.bool_(), "boolean"),
    ],
)
def test_arrow_types_find_their_place(arrow: pa.DataType, iceberg: str) -> None:
    made = table(pa.schema([("x", arrow)]))
    assert made.schema_json()["fields"][0]["type"] == iceberg


def test_docs_of_arrow_fields_are_kept() -> None:
    made = table(pa.schema([pa.field("x", pa.int32(), metadata={"doc": "why"})]))
    assert made.schema_json()["fields"][0]["doc"] == "why"


def test_layout_and_properties_are_as_told() -> None:
    made = table(
        "id long, ts timestamp",
        partition_by=["days(ts)", "bucket(4, id)"],
        order_by=["ts desc", "id nulls last"],
        properties={"a": "b", "format-version": "4"},
    )
    assert [(e.expr_id, e.name) for e in made.expressions] == [(3, "ts_day"), (4, "id_bucket_4")]
    assert made.partition_specs[0].expr_ids == (3, 4)
    keys = [(key.source_id, key.direction, key.null_order) for key in made.sort_orders[1].fields]
    assert keys == [(2, "desc", "nulls-last"), (1, "asc", "nulls-last")]
    assert made.properties == {"a": "b"}
    assert (made.format_version, made.table_uuid, made.last_updated_ms) == (4, "u", 5)


def test_without_layout_a_table_is_unpartitioned_and_unsorted() -> None:
    made = table("id long")
    assert (made.partition_specs[0].fields, made.sort_orders) == ((), (UNSORTED,))


def test_metadata_survives_its_file() -> None:
    made = table(NESTED, partition_by=["id"], order_by=["z"])
    assert metadata_codec.decode(metadata_codec.encode(made, compress=True), file="f") == made


@pytest.mark.parametrize(
    ("schema", "more", "why"),
    [
        ("id long, ID int", {}, "only in case"),
        ("id long, id int", {}, "there is a column 'id' already"),
        ("id lung", {}, "'lung'"),
        ("id", {}, "expected more before the end"),
        ("id long nut null", {}, "expected ','"),
        ("id long not nil", {}, "followed by 'null'"),
        ("id long (", {}, "cannot make sense of '('"),
        ([("", "int")], {}, "empty name"),
        ([(1, "int")], {}, "not 1"),
        (["id"], {}, "no schema"),
        (7, {}, "no schema"),
        (pa.schema([("x", pa.uint64())]), {}, "x: Iceberg has no type for Arrow's uint64"),
        (
            pa.schema([("s", pa.struct([("t", pa.time64("ns"))]))]),
            {},
            "s.t: Iceberg has no type",
        ),
        ("id long", {"partition_by": ["name"]}, "no column 'name'"),
        ("id long", {"partition_by": "id"}, "list of texts"),
        ("id long", {"partition_by": ["id", "id"]}, "twice"),
        ("ts timestamp", {"partition_by": ["days(ts)", "hours(ts)"]}, "same time twice"),
        ("ts timestamp, ts_day int", {"partition_by": ["days(ts)"]}, "name of a column"),
        ("id long", {"order_by": ["id", "id desc"]}, "twice"),
        ("id long", {"properties": {"a": 1}}, "property 'a'"),
        ("id long", {"properties": {"format-version": "2"}}, "format version 4"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(schema: Any, more: Any, why: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        table(schema, **more)
    assert why in str(caught.value)


def test_an_identifier_must_be_able_to_identify() -> None:
    optional = Schema(
        NestedField(1, "id", LongType(), required=True), identifier_field_ids=[1]
    ).model_copy(update={"fields": (NestedField(1, "id", LongType(), required=False),)})
    with pytest.raises(InvalidInput, match="'id' is optional"):
        table(optional)
