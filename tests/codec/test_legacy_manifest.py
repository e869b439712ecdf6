"""Manifests of v1, v2 and v3 turn into entries that look like those of v4."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    IcebergType,
    NestedField,
    TimestampNanoType,
    TimestamptzNanoType,
)

from icetree.codec.inherit import Inherited
from icetree.codec.legacy import decode_manifest
from icetree.spec.entry.entry import BASE_COLUMNS, Content, Status
from icetree.spec.fields import DELETE_FILE_PATH_FIELD
from icetree.spec.schema.shape import Shape
from tests.codec.avro_manifests import entry, manifest, pairs
from tests.codec.legacy_shape import (
    ADDED_LEAF,
    BY_BUCKET_AND_NAME,
    DATA,
    DELETE_LEAF,
    SCHEMA,
    TABLE,
    decode,
    long,
    values,
)


def test_a_v1_manifest_has_data_files_with_sequence_number_zero() -> None:
    data = manifest(
        1,
        entry(f"{DATA}/a.parquet", status=0, snapshot_id=3, sort_order_id=2, split_offsets=[4, 9]),
        entry(f"{DATA}/b.parquet", status=2, snapshot_id=4),
    )
    entries = decode(data, Inherited(snapshot_id=7, sequence_number=0))
    assert values(entries, "content_type") == [0, 0]
    assert values(entries, "status") == [Status.EXISTING, Status.DELETED]
    assert values(entries, "snapshot_id") == [3, 4]
    assert values(entries, "sequence_number") == [0, 0]
    assert values(entries, "file_sequence_number") == [0, 0]
    assert values(entries, "location") == ["data/a.parquet", "data/b.parquet"]
    assert values(entries, "file_format") == ["parquet", "parquet"]
    assert values(entries, "split_offsets") == [[4, 9], None]
    assert values(entries, "sort_order_id") == [2, None]
    assert values(entries, "position") == [0, 1]


def test_entries_have_every_base_column_then_stats_then_the_position() -> None:
    entries = decode(manifest(2, entry("a", file_path=f"{DATA}/a", value_counts=pairs({1: 10}))))
    assert entries.column_names == [*BASE_COLUMNS, "1:values", "position"]


def test_added_entries_inherit_and_existing_ones_say_their_own() -> None:
    own = {"snapshot_id": 2, "sequence_number": 1, "file_sequence_number": 2}
    entries = decode(manifest(2, entry(f"{DATA}/a"), entry(f"{DATA}/b", status=0, **own)))
    assert values(entries, "snapshot_id") == [7, 2]
    assert values(entries, "sequence_number") == [5, 1]
    assert values(entries, "file_sequence_number") == [5, 2]


def test_v3_data_files_inherit_their_first_row_id() -> None:
    data = manifest(
        3,
        entry(f"{DATA}/a", rows=25, status=0, sequence_number=1, first_row_id=800),
        entry(f"{DATA}/b", rows=50),
        entry(f"{DATA}/c", rows=50),
    )
    leaf = Inherited(snapshot_id=7, sequence_number=5, first_row_id=1000)
    assert values(decode(data, leaf), "first_row_id") == [800, 1000, 1050]


def test_a_v2_manifest_in_an_upgraded_table_hands_out_row_ids_to_existing_files() -> None:
    data = manifest(2, entry(f"{DATA}/a", rows=25, status=0, sequence_number=1), entry(f"{DATA}/b"))
    leaf = Inherited(snapshot_id=7, sequence_number=5, first_row_id=10)
    assert values(decode(data, leaf), "first_row_id") == [10, 35]


def test_a_v3_deletion_vector_keeps_its_blob_and_its_data_file() -> None:
    data = manifest(
        3,
        entry(
            f"{DATA}/dv.puffin",
            content=1,
            file_format="PUFFIN",
            rows=3,
            referenced_data_file=f"{DATA}/a.parquet",
            content_offset=4,
            content_size_in_bytes=46,
            first_row_id=99,
            lower_bounds=pairs({1: long(1)}),
        ),
        content="deletes",
    )
    leaf = Inherited(
        content_type=Content.DELETE_MANIFEST, snapshot_id=7, sequence_number=5, first_row_id=10
    )
    (row,) = decode(data, leaf).to_pylist()
    assert row["content_type"] == Content.POSITION_DELETES
    assert row["file_format"] == "puffin"
    assert (row["dv_offset"], row["dv_size_in_bytes"]) == (4, 46)
    assert row["referenced_file"] == "data/a.parquet"
    assert row["first_row_id"] is None
    assert "1:lower" not in row


def test_a_v2_position_delete_file_keeps_only_the_bounds_of_the_path() -> None:
    path = DELETE_FILE_PATH_FIELD
    data = manifest(
        2,
        entry(
            f"{DATA}/p.parquet",
            content=1,
            partition={"id_bucket": 3, "name": "x"},
            sort_order_id=1,
            lower_bounds=pairs({path: b"s3://a", 1: long(4)}),
            upper_bounds=pairs({path: b"s3://z", 1: long(4)}),
            value_counts=pairs({path: 10, 1: 10}),
        ),
        partition=BY_BUCKET_AND_NAME,
        content="deletes",
        spec_id=1,
    )
    (row,) = decode(data, DELETE_LEAF).to_pylist()
    assert (row[f"{path}:lower"], row[f"{path}:upper"]) == ("s3://a", "s3://z")
    assert not [name for name in row if name.startswith("1:")]
    assert (row["10:lower"], row["2:upper"]) == (3, "x")
    assert (row["dv_offset"], row["dv_size_in_bytes"], row["sort_order_id"]) == (None, None, None)


def test_equality_deletes_keep_the_stats_of_their_own_equality_fields() -> None:
    bounds = pairs({1: long(4), 2: b"x"})
    data = manifest(
        2,
        entry(
            f"{DATA}/1", content=2, equality_ids=[1], lower_bounds=bounds, value_counts=bounds[:0]
        ),
        entry(f"{DATA}/2", content=2, equality_ids=[2, 3], lower_bounds=bounds),
        entry(f"{DATA}/3", content=1, lower_bounds=bounds),
        content="deletes",
    )
    entries = decode(data, DELETE_LEAF)
    assert values(entries, "equality_ids") == [[1], [2, 3], None]
    assert values(entries, "1:lower") == [4, None, None]
    assert values(entries, "2:lower") == [None, "x", None]


def test_column_metrics_become_typed_stats() -> None:
    data = manifest(
        2,
        entry(
            f"{DATA}/a",
            value_counts=pairs({1: 10, 2: 10, 3: 10}),
            null_value_counts=pairs({1: 0, 2: 4}),
            nan_value_counts=pairs({3: 2, 1: 0}),
            lower_bounds=pairs({1: long(-5), 2: b"abc", 3: struct.pack("<d", -0.5)}),
            upper_bounds=pairs({1: long(5), 2: b"abd", 3: struct.pack("<d", 0.5)}),
        ),
        entry(f"{DATA}/b", lower_bounds=pairs({1: struct.pack("<i", 3)})),
        entry(f"{DATA}/c"),
    )
    entries = decode(data)
    assert values(entries, "1:lower") == [-5, 3, None]
    assert values(entries, "1:upper") == [5, None, None]
    assert values(entries, "1:nulls") == [0, None, None]
    assert values(entries, "2:lower") == ["abc", None, None]
    assert values(entries, "2:nulls") == [4, None, None]
    assert values(entries, "3:nans") == [2, None, None]
    assert values(entries, "3:upper") == [0.5, None, None]
    assert entries.schema.field("1:lower").type == pa.int64()
    assert "1:nans" not in entries.column_names
    assert not [name for name in entries.column_names if name.endswith(":tight")]


def test_a_count_of_fewer_values_than_rows_tells_nothing_of_nulls() -> None:
    counts = {"value_counts": pairs({1: 7, 2: 10}), "null_value_counts": pairs({1: 0, 2: 3})}
    found = decode(manifest(2, entry(f"{DATA}/a", rows=10, **counts)))
    assert "1:nulls" not in found.column_names
    assert (values(found, "2:values"), values(found, "2:nulls")) == ([10], [3])


@pytest.mark.parametrize("type", [TimestampNanoType(), TimestamptzNanoType()])
def test_bounds_of_nanoseconds_in_orc_rule_nothing_out(type: IcebergType) -> None:
    """Iceberg Java writes microseconds there, and nothing tells its manifests from those of others."""
    shape = Shape(schema=Schema(NestedField(1, "n", type, required=False)))
    bounds = {"lower_bounds": pairs({1: long(5)}), "upper_bounds": pairs({1: long(7)})}
    data = manifest(
        3,
        entry(f"{DATA}/a.orc", file_format="ORC", null_value_counts=pairs({1: 0}), **bounds),
        entry(f"{DATA}/b.parquet", **bounds),
    )
    found = decode_manifest(
        data, file="m.avro", shape=shape, table_location=TABLE, inherit=ADDED_LEAF
    )
    assert found["1:lower"].cast(pa.int64()).to_pylist() == [None, 5]
    assert found["1:upper"].cast(pa.int64()).to_pylist() == [None, 7]
    assert values(found, "1:nulls") == [0, None]


def test_metrics_of_a_column_that_never_was_are_left_out() -> None:
    data = manifest(2, entry(f"{DATA}/a", lower_bounds=pairs({99: b"?"})))
    assert not [name for name in decode(data).column_names if name.startswith("99:")]


def test_metrics_of_a_column_that_was_dropped_are_kept() -> None:
    former = {99: NestedField(99, "old", DateType(), required=False)}
    data = manifest(2, entry(f"{DATA}/a", lower_bounds=pairs({99: struct.pack("<i", 1)})))
    shape = Shape(schema=SCHEMA, former=former)
    entries = decode_manifest(
        data, file="m.avro", shape=shape, table_location=TABLE, inherit=ADDED_LEAF
    )
    assert entries["99:lower"].cast(pa.int32()).to_pylist() == [1]


@pytest.mark.parametrize(
    ("path", "stored"),
    [
        (f"{TABLE}/data/a", "data/a"),
        (f"{TABLE}//a", f"{TABLE}//a"),
        ("s3://bucket/tables/a", "s3://bucket/tables/a"),
        ("s3a://bucket/table/a", "a"),
        ("/table/a", "a"),
        ("/local/a", "s3://bucket/local/a"),
        ("file:/local/a", "file:///local/a"),
    ],
)
def test_a_location_under_the_table_is_stored_relative_to_it(path: str, stored: str) -> None:
    assert values(decode(manifest(2, entry(path))), "location") == [stored]


def test_columns_narrow_what_is_returned_and_missing_ones_are_null() -> None:
    data = manifest(
        3,
        entry(f"{DATA}/a", value_counts=pairs({1: 9}), lower_bounds=pairs({1: long(4)})),
        entry(f"{DATA}/b", partition={}),
    )
    leaf = Inherited(snapshot_id=7, sequence_number=5, first_row_id=100)
    entries = decode(data, leaf, ["location", "first_row_id", "1:lower", "2:upper", "2:nulls"])
    assert entries.to_pydict() == {
        "location": ["data/a", "data/b"],
        "first_row_id": [100, 110],
        "1:lower": [4, None],
        "2:upper": [None, None],
        "2:nulls": [None, None],
        "position": [0, 1],
    }
    assert entries.schema.field("2:upper").type == pa.string()


def test_columns_without_stats_give_what_a_full_read_gives() -> None:
    data = manifest(
        2,
        entry(f"{DATA}/a", partition={"id_bucket": 3, "name": "x"}, value_counts=pairs({1: 9})),
        partition=BY_BUCKET_AND_NAME,
        spec_id=1,
    )
    assert decode(data, columns=list(BASE_COLUMNS)) == decode(data).select(
        [*BASE_COLUMNS, "position"]
    )


def test_a_manifest_of_many_chunks_keeps_order_and_positions() -> None:
    data = manifest(
        2, *(entry(f"{DATA}/{n}", lower_bounds=pairs({1: long(n)})) for n in range(700))
    )
    entries = decode(data)
    assert values(entries, "location") == [f"data/{n}" for n in range(700)]
    assert values(entries, "1:lower") == values(entries, "position") == list(range(700))


def test_an_empty_manifest_has_no_entries() -> None:
    entries = decode(manifest(2, partition=BY_BUCKET_AND_NAME, spec_id=1))
    assert entries.num_rows == 0
    assert set(BASE_COLUMNS) < set(entries.column_names)
