"""Manifest lists of v1, v2 and v3 turn into root entries."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, LongType, NestedField, StringType

from icetree.codec.legacy import decode_manifest_list
from icetree.errors import CorruptTable
from icetree.spec.entry.entry import Content, Entries, Status
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape
from icetree.tree.reading import leaves_in
from tests.codec.avro_manifests import list_schema, manifest_list, write

TABLE = "s3://bucket/table"
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "name", StringType(), required=False),
    NestedField(3, "score", DoubleType(), required=False),
)
EXPRESSIONS = (
    Expression(
        expr_id=10, source_ids=(1,), transform="bucket[8]", name="b", partition_field_id=1000
    ),
    Expression(
        expr_id=11, source_ids=(2,), transform="identity", name="n", partition_field_id=1001
    ),
    Expression(
        expr_id=12, source_ids=(3,), transform="identity", name="s", partition_field_id=1002
    ),
    Expression(expr_id=13, source_ids=(1,), transform="void", name="v", partition_field_id=1003),
)
SHAPE = Shape(
    schema=SCHEMA,
    expressions={each.expr_id: each for each in EXPRESSIONS},
    specs={0: (), 1: (10, 11), 2: (11, 13, 12)},
)


def decode(data: bytes) -> Entries:
    return decode_manifest_list(data, file="snap.avro", shape=SHAPE, table_location=TABLE)


def values(entries: Entries, name: str) -> list[Any]:
    found: list[Any] = entries[name].to_pylist()
    return found


def summary(
    lower: bytes | None, upper: bytes | None, *, null: bool = False, nan: bool | None = None
) -> dict[str, Any]:
    return {"contains_null": null, "contains_nan": nan, "lower_bound": lower, "upper_bound": upper}


V3_DATA = {
    "manifest_path": f"{TABLE}/metadata/m1.avro",
    "manifest_length": 5000,
    "partition_spec_id": 0,
    "content": 0,
    "sequence_number": 9,
    "min_sequence_number": 4,
    "added_snapshot_id": 77,
    "added_files_count": 1,
    "existing_files_count": 2,
    "deleted_files_count": 3,
    "added_rows_count": 10,
    "existing_rows_count": 20,
    "deleted_rows_count": 30,
    "key_metadata": b"key",
    "first_row_id": 1000,
}
V3_DELETES = V3_DATA | {
    "manifest_path": "s3://elsewhere/m2.avro",
    "content": 1,
    "first_row_id": None,
    "key_metadata": None,
}


def test_a_v3_manifest_list_is_a_root_of_existing_leaves() -> None:
    data, deletes = decode(manifest_list(3, V3_DATA, V3_DELETES)).to_pylist()
    told = {name: value for name, value in data.items() if value is not None}
    assert told == {
        "content_type": Content.DATA_MANIFEST,
        "location": "metadata/m1.avro",
        "file_format": "avro",
        "status": Status.EXISTING,
        "snapshot_id": 77,
        "sequence_number": 9,
        "file_sequence_number": 9,
        "first_row_id": 1000,
        "partition_spec_id": 0,
        "record_count": 6,
        "file_size_in_bytes": 5000,
        "added_files_count": 1,
        "existing_files_count": 2,
        "deleted_files_count": 3,
        "added_rows_count": 10,
        "existing_rows_count": 20,
        "deleted_rows_count": 30,
        "min_sequence_number": 4,
        "key_metadata": b"key",
    }
    assert deletes["content_type"] == Content.DELETE_MANIFEST
    assert deletes["location"] == "s3://elsewhere/m2.avro"
    assert deletes["first_row_id"] is None


def test_leaves_of_a_manifest_list_can_be_told_like_those_of_a_root() -> None:
    leaves = leaves_in(decode(manifest_list(3, V3_DATA, V3_DELETES)))
    assert [leaf.location for leaf in leaves] == ["metadata/m1.avro", "s3://elsewhere/m2.avro"]
    assert leaves[0].file_format == "avro"


def test_counts_of_v1_are_known_by_id_under_their_old_names() -> None:
    v1 = {
        "manifest_path": f"{TABLE}/metadata/m1.avro",
        "added_snapshot_id": 77,
        "added_data_files_count": 1,
        "existing_data_files_count": 2,
        "deleted_data_files_count": 0,
    }
    (row,) = decode(manifest_list(1, v1)).to_pylist()
    assert row["content_type"] == Content.DATA_MANIFEST
    assert (row["added_files_count"], row["existing_files_count"]) == (1, 2)
    assert row["record_count"] == 3
    assert (row["sequence_number"], row["file_sequence_number"], row["min_sequence_number"]) == (
        0,
        0,
        0,
    )
    assert row["added_rows_count"] is None


def test_without_all_counts_the_number_of_entries_of_a_v1_manifest_is_not_guessed() -> None:
    v1 = {"manifest_path": f"{TABLE}/m", "added_snapshot_id": 77, "added_data_files_count": 1}
    assert values(decode(manifest_list(1, v1)), "record_count") == [None]


def test_partition_summaries_become_stats_of_expressions_across_specs() -> None:
    one = V3_DATA | {
        "partition_spec_id": 1,
        "partitions": [
            summary(struct.pack("<i", 1), struct.pack("<i", 6)),
            summary(b"a", b"m", null=True),
        ],
    }
    two = V3_DATA | {
        "partition_spec_id": 2,
        "partitions": [
            summary(b"n", b"z"),
            summary(None, None, null=True),
            summary(struct.pack("<d", 0.5), struct.pack("<d", 1.5), nan=False),
        ],
    }
    silent = V3_DATA | {"partition_spec_id": 1, "partitions": None}
    entries = decode(manifest_list(2, two, silent, one, V3_DATA))
    assert values(entries, "10:lower") == [None, None, 1, None]
    assert values(entries, "10:upper") == [None, None, 6, None]
    assert values(entries, "10:nulls") == [None, None, 0, None]
    assert values(entries, "2:lower") == ["n", None, "a", None]
    assert values(entries, "2:upper") == ["z", None, "m", None]
    assert values(entries, "2:nulls") == [0, None, None, None]
    assert values(entries, "3:lower") == [0.5, None, None, None]
    assert values(entries, "3:nans") == [0, None, None, None]
    assert entries.schema.field("10:lower").type == pa.int32()
    stats = [name for name in entries.column_names if ":" in name]
    assert not [
        name for name in stats if name.startswith("13:") or name.endswith((":tight", ":values"))
    ]


def test_a_nan_in_a_summary_makes_its_bounds_unknown() -> None:
    nan = struct.pack("<d", float("nan"))
    row = V3_DATA | {
        "partition_spec_id": 2,
        "partitions": [
            summary(b"a", b"b"),
            summary(None, None),
            summary(struct.pack("<d", 1), nan, nan=True),
        ],
    }
    entries = decode(manifest_list(2, row))
    assert (
        values(entries, "3:lower")
        == values(entries, "3:upper")
        == values(entries, "3:nans")
        == [None]
    )


def test_an_empty_manifest_list_has_no_entries() -> None:
    assert decode(manifest_list(2)).num_rows == 0


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"content": 2}, "neither data nor deletes"),
        ({"partition_spec_id": 5}, "names partition spec 5"),
        (
            {"partition_spec_id": 1, "partitions": [summary(None, None)]},
            "each partition field once",
        ),
        ({"added_files_count": None}, "lacks its added_files_count"),
        (
            {"partition_spec_id": 1, "partitions": [summary(b"\0", b"\0"), summary(b"a", b"b")]},
            "not a serialized int",
        ),
        ({"manifest_path": "nowhere"}, "no location in full"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_manifest_list_that_breaks_a_rule_is_refused(change: dict[str, Any], rule: str) -> None:
    with pytest.raises(CorruptTable, match=rule) as found:
        decode(manifest_list(3, V3_DATA, V3_DATA | change))
    assert found.value.file == "snap.avro"


def test_a_v2_manifest_list_without_sequence_numbers_is_refused() -> None:
    v1_rows = [{"manifest_path": f"{TABLE}/m", "manifest_length": 1, "partition_spec_id": 0}]
    with pytest.raises(CorruptTable, match=r"content_type \(field id 517\) is missing"):
        decode(write(list_schema(1), v1_rows, format_version="2"))
