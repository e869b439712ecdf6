"""metadata.json and pages of history: what is read, what is kept, what is refused."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.partitioning import PartitionField as PyField
from pyiceberg.partitioning import PartitionSpec as PySpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.transforms import BucketTransform, DayTransform
from pyiceberg.types import LongType, NestedField, TimestampType

from icetree.codec import metadata as codec
from icetree.errors import CorruptTable
from icetree.spec.metadata.layout import ExprField, PartitionField
from icetree.spec.metadata.snapshot import LogEntry, Page, Snapshot
from tests.codec.metadata_documents import ALL, FILE, JSON_VALUES, V1, V2, Json, read, v3, v4
from tests.effort import law


def written(document: object) -> Json:
    found: Json = json.loads(codec.encode(read(document), compress=False))
    return found


@pytest.mark.parametrize("version", [2, 3, 4])
def test_metadata_is_written_back_as_it_was_read(version: int) -> None:
    defaults: Json = {"properties": {}, "snapshots": [], "snapshot-log": [], "metadata-log": []}
    assert written(ALL[version]) == defaults | ALL[version]


def test_v1_gains_its_lists_and_keeps_its_singletons() -> None:
    made = written(V1)
    schema = {**V1["schema"], "schema-id": 0}
    fields = [
        {"field-id": 1000, **V1["partition-spec"][0]},
        {"field-id": 1001, **V1["partition-spec"][1]},
    ]
    assert made["schema"] == schema
    assert made["schemas"] == [schema]
    assert made["partition-spec"] == fields
    assert made["partition-specs"] == [{"spec-id": 0, "fields": fields}]
    assert made["last-partition-id"] == 1001
    assert made["sort-orders"] == [{"order-id": 0, "fields": []}]
    assert made["snapshots"] == V1["snapshots"]
    assert made["refs"] == {"main": {"snapshot-id": 11, "type": "branch"}}
    assert "last-sequence-number" not in made
    assert "table-uuid" not in made
    assert read(made) == read(V1)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_bytes_round_trip_compressed_and_plain(version: int) -> None:
    metadata = read(ALL[version])
    assert codec.decode(codec.encode(metadata), file="x.gz.metadata.json") == metadata
    assert codec.decode(codec.encode(metadata), file="renamed") == metadata
    assert codec.decode(codec.encode(metadata, compress=False), file=FILE) == metadata


def test_the_same_metadata_gives_the_same_bytes() -> None:
    assert codec.encode(read(V2)) == codec.encode(read(V2))


def test_specs_hold_expressions_in_v4_and_fields_before() -> None:
    assert read(v4()).partition_specs[1].fields == (ExprField(expr_id=101), ExprField(expr_id=104))
    assert all(isinstance(field, PartitionField) for field in read(v3()).partition_specs[1].fields)


def test_a_partition_field_id_inside_the_expression_is_understood() -> None:
    document = v4()
    expression = document["expressions"][2]
    expression["expr"]["partition-field-id"] = expression.pop("partition-field-id")
    assert read(document) == read(v4())


def test_an_expression_may_name_its_columns_in_either_way_or_both() -> None:
    both, one = v4(), v4()
    both["expressions"][2]["expr"]["source-id"] = 1
    one["expressions"][0]["expr"]["source-ids"] = [2]
    del one["expressions"][0]["expr"]["source-id"]
    assert read(both).expressions == read(v4()).expressions
    assert read(one).expressions == read(v4()).expressions


def test_no_current_snapshot_may_be_written_as_minus_one() -> None:
    document = {**V2, "current-snapshot-id": -1, "refs": {}, "statistics": []}
    assert read(document).current_snapshot() is None
    assert "current-snapshot-id" not in written(document)


def test_metadata_of_pyiceberg_is_read() -> None:
    made = new_table_metadata(
        location="s3://b/t",
        schema=Schema(
            NestedField(1, "id", LongType(), required=True),
            NestedField(2, "ts", TimestampType(), required=False),
            identifier_field_ids=[1],
        ),
        partition_spec=PySpec(
            PyField(source_id=2, field_id=1000, transform=DayTransform(), name="ts_day"),
            PyField(source_id=1, field_id=1001, transform=BucketTransform(8), name="id_bucket"),
        ),
        sort_order=UNSORTED_SORT_ORDER,
        properties={"a": "b"},
    )
    metadata = codec.decode(made.model_dump_json().encode(), file=FILE)
    assert metadata.format_version == 2
    assert metadata.table_uuid == str(made.table_uuid)
    assert metadata.schema() == made.schema()
    shape = metadata.shape()
    assert [e.transform for e in shape.spec(0)] == ["day", "bucket[8]"]
    assert [e.partition_field_id for e in shape.spec(0)] == [1000, 1001]
    assert type(made).model_validate_json(codec.encode(metadata, compress=False)) == made


#: Names that could be mistaken for something else, and any other.
UNKNOWN = st.dictionaries(
    st.sampled_from(["extra", "expr", "x", "", "SNAPSHOT-ID", "snapshot_id"])
    | st.text().map(lambda text: "x-" + text),
    JSON_VALUES,
    max_size=2,
)


def objects(document: Json) -> list[Json]:
    """Return every object of the metadata in which unknown fields must survive."""
    found = [document]
    for name in (
        "schemas",
        "expressions",
        "partition-specs",
        "sort-orders",
        "snapshots",
        "snapshot-log",
        "snapshot-pages",
        "metadata-log",
        "statistics",
        "partition-statistics",
        "encryption-keys",
    ):
        found += document.get(name, [])
    found += [each["expr"] for each in document.get("expressions", [])]
    for name in ("schemas", "partition-specs", "sort-orders"):
        found += [field for each in document[name] for field in each["fields"]]
    found += document["refs"].values()
    found += [blob for each in document["statistics"] for blob in each["blob-metadata"]]
    return found


@law(40)
@given(st.data())
def test_unknown_fields_survive_at_every_level(data: st.DataObject) -> None:
    document = copy.deepcopy(ALL[data.draw(st.sampled_from([2, 3, 4]))])
    for each in objects(document):
        unknown = data.draw(UNKNOWN)
        # An expression's own "expr" is known.
        each.update({name: value for name, value in unknown.items() if name not in each})
    assert written(document) == document


def test_a_page_round_trips_with_what_it_does_not_know() -> None:
    page = Page(
        snapshots=(
            Snapshot(snapshot_id=1, timestamp_ms=2, manifest_list="s3://b/l", extra={"x": 1}),
            Snapshot(snapshot_id=2, timestamp_ms=3, sequence_number=1, root_manifest="r"),
        ),
        snapshot_log=(LogEntry(timestamp_ms=2, snapshot_id=1, extra={"y": [None]}),),
        extra={"z": {}},
    )
    assert codec.decode_page(codec.encode_page(page), file="p") == page


def test_a_page_with_a_broken_snapshot_is_refused() -> None:
    page = Page(snapshots=(Snapshot(snapshot_id=1, timestamp_ms=2),))
    with pytest.raises(CorruptTable, match="p: snapshot 1 has not exactly one of"):
        codec.decode_page(codec.encode_page(page), file="p")
