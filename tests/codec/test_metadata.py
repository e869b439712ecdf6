"""metadata.json and pages of history: what is read, what is kept, what is refused."""

from __future__ import annotations

import copy
import gzip
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.partitioning import PartitionField as PyField
from pyiceberg.partitioning import PartitionSpec as PySpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.transforms import BucketTransform, DayTransform
from pyiceberg.types import LongType, NestedField, TimestampType

from icetree.codec import metadata as codec
from icetree.errors import CorruptTable, Unsupported
from icetree.spec.layout import ExprField, PartitionField
from icetree.spec.snapshot import LogEntry, Page, Snapshot

Json = dict[str, Any]
FILE = "s3://b/t/metadata/00003-x.metadata.json"

SCHEMA: Json = {
    "type": "struct",
    "schema-id": 1,
    "identifier-field-ids": [1],
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "ts", "required": False, "type": "timestamptz", "doc": "when"},
        {
            "id": 3,
            "name": "tags",
            "required": False,
            "type": {
                "type": "list",
                "element-id": 4,
                "element": {
                    "type": "struct",
                    "fields": [{"id": 5, "name": "k", "required": True, "type": "string"}],
                },
                "element-required": False,
            },
        },
    ],
}

V1: Json = {
    "format-version": 1,
    "location": "s3://b/t",
    "last-updated-ms": 1515100955770,
    "last-column-id": 2,
    "schema": {
        "type": "struct",
        "fields": [
            {"id": 1, "name": "id", "required": True, "type": "long"},
            {"id": 2, "name": "ts", "required": False, "type": "timestamp"},
        ],
    },
    "partition-spec": [
        {"source-id": 2, "transform": "day", "name": "ts_day"},
        {"source-id": 1, "transform": "bucket[4]", "name": "id_bucket"},
    ],
    "properties": {"owner": "me"},
    "current-snapshot-id": 11,
    "snapshots": [
        {"snapshot-id": 10, "timestamp-ms": 1515100955000, "manifests": ["s3://b/t/m0.avro"]},
        {
            "snapshot-id": 11,
            "timestamp-ms": 1515100955770,
            "summary": {"operation": "append"},
            "manifest-list": "s3://b/t/metadata/s1.avro",
        },
    ],
    "snapshot-log": [{"snapshot-id": 11, "timestamp-ms": 1515100955770}],
}

V2: Json = {
    "format-version": 2,
    "table-uuid": "fb072c92-a02b-11e9-ae9c-1bb7bc9eca94",
    "location": "s3://b/t",
    "last-sequence-number": 2,
    "last-updated-ms": 1602638573874,
    "last-column-id": 5,
    "schemas": [
        {
            "type": "struct",
            "schema-id": 0,
            "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}],
        },
        SCHEMA,
    ],
    "current-schema-id": 1,
    "partition-specs": [
        {"spec-id": 0, "fields": []},
        {
            "spec-id": 1,
            "fields": [{"source-id": 2, "field-id": 1000, "name": "ts_day", "transform": "day"}],
        },
    ],
    "default-spec-id": 1,
    "last-partition-id": 1000,
    "sort-orders": [
        {"order-id": 0, "fields": []},
        {
            "order-id": 3,
            "fields": [
                {
                    "transform": "bucket[4]",
                    "source-id": 1,
                    "direction": "desc",
                    "null-order": "nulls-last",
                }
            ],
        },
    ],
    "default-sort-order-id": 3,
    "properties": {"write.format.default": "avro"},
    "current-snapshot-id": 3055729675574597004,
    "snapshots": [
        {
            "snapshot-id": 3051729675574597004,
            "timestamp-ms": 1515100955770,
            "sequence-number": 1,
            "summary": {"operation": "append"},
            "manifest-list": "s3://a/b/1.avro",
            "schema-id": 0,
        },
        {
            "snapshot-id": 3055729675574597004,
            "parent-snapshot-id": 3051729675574597004,
            "timestamp-ms": 1555100955770,
            "sequence-number": 2,
            "summary": {"operation": "append"},
            "manifest-list": "s3://a/b/2.avro",
            "schema-id": 1,
        },
    ],
    "snapshot-log": [
        {"snapshot-id": 3051729675574597004, "timestamp-ms": 1515100955770},
        {"snapshot-id": 3055729675574597004, "timestamp-ms": 1555100955770},
    ],
    "metadata-log": [{"metadata-file": "s3://b/t/metadata/v1.json", "timestamp-ms": 1515100}],
    "refs": {
        "main": {"snapshot-id": 3055729675574597004, "type": "branch"},
        "audit": {"snapshot-id": 3051729675574597004, "type": "tag", "max-ref-age-ms": 10000000},
    },
    "statistics": [
        {
            "snapshot-id": 3055729675574597004,
            "statistics-path": "s3://a/b/stats.puffin",
            "file-size-in-bytes": 413,
            "file-footer-size-in-bytes": 42,
            "blob-metadata": [
                {
                    "type": "ndv",
                    "snapshot-id": 3055729675574597004,
                    "sequence-number": 2,
                    "fields": [1],
                }
            ],
        }
    ],
    "partition-statistics": [
        {
            "snapshot-id": 3055729675574597004,
            "statistics-path": "s3://a/b/partition-stats.parquet",
            "file-size-in-bytes": 43,
        }
    ],
}


def v3() -> Json:
    made = copy.deepcopy(V2)
    made |= {
        "format-version": 3,
        "next-row-id": 40,
        "encryption-keys": [{"key-id": "5f819b", "encrypted-key-metadata": "aWNlYmVyZwo="}],
    }
    made["partition-specs"][1]["fields"].append(
        {"source-ids": [1, 2], "field-id": 1001, "name": "both", "transform": "bucket[16]"}
    )
    made["last-partition-id"] = 1001
    made["snapshots"][1] |= {"first-row-id": 0, "added-rows": 40, "key-id": "5f819b"}
    return made


def v4() -> Json:
    made = v3()
    made |= {
        "format-version": 4,
        "last-column-id": 104,
        "expressions": [
            {
                "expr-id": 101,
                "expr": {"source-id": 2, "transform": "day", "name": "ts_day"},
                "partition-field-id": 1000,
            },
            {"expr-id": 102, "expr": {"source-id": 1, "transform": "lower", "name": "lower_str"}},
            {
                "expr-id": 104,
                "expr": {"source-ids": [1, 2], "transform": "bucket[16]", "name": "both"},
                "partition-field-id": 1001,
            },
        ],
        "partition-specs": [
            {"spec-id": 0, "fields": []},
            {"spec-id": 1, "fields": [{"expr-id": 101}, {"expr-id": 104}]},
        ],
        "snapshot-pages": [
            {
                "location": "metadata/page-1.json.gz",
                "size-in-bytes": 1000,
                "count": 100,
                "first-sequence-number": 1,
                "last-sequence-number": 100,
                "first-timestamp-ms": 5,
                "last-timestamp-ms": 6,
                "log-count": 1,
                "first-log-timestamp-ms": 5,
                "last-log-timestamp-ms": 5,
            }
        ],
    }
    del made["snapshots"][1]["manifest-list"]
    made["snapshots"][1]["root-manifest"] = "metadata/root-2.parquet"
    return made


ALL = {1: V1, 2: V2, 3: v3(), 4: v4()}


def read(document: object) -> Any:
    return codec.decode(json.dumps(document).encode(), file=FILE)


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


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
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


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_unknown_fields_survive_at_every_level(data: st.DataObject) -> None:
    document = copy.deepcopy(ALL[data.draw(st.sampled_from([2, 3, 4]))])
    for each in objects(document):
        unknown = data.draw(UNKNOWN)
        # An expression's own "expr" is known.
        each.update({name: value for name, value in unknown.items() if name not in each})
    assert written(document) == document


def broken(document: object) -> str:
    with pytest.raises(CorruptTable) as caught:
        read(document)
    assert caught.value.file == FILE
    return caught.value.rule


def changed(version: int, *path: str | int, to: Any) -> Json:
    document = copy.deepcopy(ALL[version])
    at: Any = document
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = to
    return document


SNAPSHOT: Json = {"snapshot-id": 7, "timestamp-ms": 1, "manifest-list": "s3://b/l"}


@pytest.mark.parametrize(
    ("document", "rule"),
    [
        ([], "not a JSON object"),
        ({}, "format-version None"),
        (changed(2, "format-version", to="2"), "format-version '2'"),
        (changed(2, "format-version", to=0), "format-version 0"),
        (changed(2, "location", to=5), "Expected `str`, got `int` - at `$.location`"),
        (changed(2, "location", to=""), "location is empty"),
        (changed(2, "last-column-id", to="5"), "at `$.last-column-id`"),
        (changed(2, "last-sequence-number", to=-1), "last-sequence-number -1 is negative"),
        (changed(2, "last-sequence-number", to=2**63), "at `$.last-sequence-number`"),
        (changed(2, "last-sequence-number", to=1), "above last-sequence-number 1"),
        (changed(2, "table-uuid", to=None), "table-uuid is missing"),
        (changed(3, "next-row-id", to=None), "next-row-id is missing"),
        (changed(2, "schemas", to={}), "at `$.schemas`"),
        (changed(2, "schemas", 0, "schema-id", to="0"), "a schema has no schema-id"),
        (changed(2, "schemas", 0, "schema-id", to=1), "two schemas have schema-id 1"),
        (changed(2, "current-schema-id", to=9), "current-schema-id 9 is not among"),
        (changed(2, "schemas", 1, "fields", 0, "type", to="lang"), "schema 1: 'lang'"),
        (changed(2, "schemas", 0, "fields", 0, "type", to="lang"), "schema 0: 'lang'"),
        (changed(2, "schemas", 1, "identifier-field-ids", to=["a"]), "schema 1: not a schema"),
        (changed(2, "schemas", 1, "fields", 0, "type", to=3), "schema 1: schema.id has no type"),
        (changed(2, "schemas", 1, "fields", 0, "id", to="1"), "a field of schema lacks its id"),
        (changed(2, "schemas", 0, "fields", to=None), "schema 0: schema has no list of fields"),
        (changed(2, "schemas", 1, "fields", 0, "id", to=5), "two columns have id 5"),
        (changed(2, "last-column-id", to=4), "column id 5 is above last-column-id 4"),
        (changed(2, "partition-specs", to=7), "partition-specs is not a list"),
        (changed(2, "partition-specs", 1, "fields", 0, to=1), "fields[0] is not an object"),
        (changed(2, "partition-specs", 1, "fields", 0, "field-id", to="a"), "`$.field-id`"),
        (
            changed(2, "partition-specs", 1, "fields", 0, "source-id", to=None),
            "without a source-id",
        ),
        (changed(2, "partition-specs", 0, "spec-id", to=1), "two specs have spec-id 1"),
        (changed(2, "default-spec-id", to=4), "default-spec-id 4 is not among"),
        (changed(2, "partition-specs", 0, "fields", to=[{"expr-id": 1}]), "new in v4"),
        (changed(2, "expressions", to=v4()["expressions"]), "expressions are new in v4"),
        (changed(2, "snapshot-pages", to=v4()["snapshot-pages"]), "snapshot-pages are new in v4"),
        (changed(2, "sort-orders", 1, "order-id", to=0), "two sort orders have order-id 0"),
        (changed(2, "default-sort-order-id", to=1), "default-sort-order-id 1 is not among"),
        (changed(2, "sort-orders", 1, "fields", 0, "direction", to="up"), "'up' is none of"),
        (changed(2, "snapshots", 0, "snapshot-id", to="x"), "snapshots: Expected `int`"),
        (changed(2, "snapshots", 0, to=V2["snapshots"][1]), "two snapshots have snapshot-id"),
        (changed(2, "snapshots", 0, "manifest-list", to=None), "has not exactly one of"),
        (changed(2, "snapshots", 0, "manifests", to=[]), "has not exactly one of"),
        (changed(2, "snapshots", 0, to={**SNAPSHOT, "x": 1, "timestamp-ms": "1"}), "snapshots[0]"),
        (
            changed(
                2, "snapshots", 0, to={"snapshot-id": 7, "timestamp-ms": 1, "root-manifest": "r"}
            ),
            "has a root-manifest, which is new in v4",
        ),
        (changed(2, "refs", "audit", "snapshot-id", to=5), "ref 'audit' points to snapshot 5"),
        (changed(4, "refs", "audit", "snapshot-id", to=5), "ref 'audit' points to snapshot 5"),
        (changed(2, "refs", "audit", "type", to="twig"), "ref 'audit': Invalid enum value 'twig'"),
        (changed(2, "refs", "main", "type", to="tag"), "ref 'main' is a tag"),
        (changed(2, "refs", to=[1]), "refs is not an object"),
        (changed(2, "current-snapshot-id", to=3051729675574597004), "differs from 'main'"),
        (changed(2, "current-snapshot-id", to=None), "differs from 'main'"),
        (changed(2, "properties", to={"a": 1}), "Expected `str`, got `int`"),
        (changed(2, "metadata-log", 0, "metadata-file", to=None), "metadata-log"),
        (changed(3, "encryption-keys", 0, "key-id", to=4), "encryption-keys"),
        (changed(3, "encryption-keys", to=v3()["encryption-keys"] * 2), "two encryption keys"),
        (changed(4, "expressions", 0, "expr-id", to=102), "two expressions have expr-id 102"),
        (changed(4, "expressions", 1, "expr-id", to=3), "expr-id 3 is also the id of a column"),
        (changed(4, "last-column-id", to=103), "expr-id 104 is above last-column-id 103"),
        (changed(4, "expressions", 0, "expr", to="day"), "expressions[0]"),
        (
            changed(4, "expressions", 0, "expr", "source-id", to=None),
            "expressions[0] has no source-id",
        ),
        (changed(4, "expressions", 0, "expr", "transform", to=1), "expressions[0].expr"),
        (changed(4, "expressions", to={}), "expressions is not a list"),
        (changed(4, "partition-specs", 1, "fields", 0, "expr-id", to=103), "names expr-id 103"),
        (changed(4, "partition-specs", 1, to=V2["partition-specs"][1]), "in place of an expr-id"),
        (
            changed(4, "partition-specs", 1, "fields", 0, to=V2["partition-specs"][1]["fields"][0]),
            "mixes",
        ),
        (changed(4, "snapshot-pages", 0, "count", to=-1), "range or count that cannot be"),
        (changed(4, "snapshot-pages", 0, "first-sequence-number", to=101), "range or count"),
        (changed(4, "snapshot-pages", 0, "first-log-timestamp-ms", to=6), "range or count"),
        (changed(4, "snapshot-pages", 0, "location", to=None), "snapshot-pages"),
        (changed(4, "snapshot-pages", to=v4()["snapshot-pages"] * 2), "two pages have location"),
        (changed(1, "schema", to=None), "schema is not an object"),
        (changed(1, "partition-spec", to=[1]), "a partition field is not an object"),
        (changed(1, "partition-spec", 0, "field-id", to="x"), "at `$.field-id`"),
    ],
)
def test_metadata_that_breaks_a_rule_is_refused_with_the_rule(document: Json, rule: str) -> None:
    assert rule in broken(document)


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize(
    "name",
    [
        "location",
        "last-sequence-number",
        "last-updated-ms",
        "last-column-id",
        "schemas",
        "current-schema-id",
        "partition-specs",
        "default-spec-id",
        "last-partition-id",
        "sort-orders",
        "default-sort-order-id",
    ],
)
def test_a_missing_required_field_is_named(version: int, name: str) -> None:
    document = {key: value for key, value in ALL[version].items() if key != name}
    assert f"missing required field `{name}`" in broken(document)


def test_a_newer_format_version_is_unsupported_not_corrupt() -> None:
    with pytest.raises(Unsupported, match="v5"):
        read({"format-version": 5})


@pytest.mark.parametrize(
    ("data", "file", "rule"),
    [
        (b"", FILE, "not JSON"),
        (b'{"format-version": 2,', FILE, "not JSON"),
        (b'{"location": "\xff"}', FILE, "not JSON"),
        (b"[" * 100_000, FILE, "not JSON"),
        (b"{}", "x.gz.metadata.json", "not a whole gzip file"),
        (b"\x1f\x8b", FILE, "not a whole gzip file"),
        (gzip.compress(b"{}", mtime=0)[:-3], FILE, "not a whole gzip file"),
        (gzip.compress(b"{}", mtime=0)[:-8] + b"\0" * 8, FILE, "not a whole gzip file"),
    ],
)
def test_bad_bytes_are_refused_with_the_file_and_the_rule(
    data: bytes, file: str, rule: str
) -> None:
    for decode in (codec.decode, codec.decode_page):
        with pytest.raises(CorruptTable, match=rule) as caught:
            decode(data, file=file)
        assert caught.value.file == file


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_damage_is_either_harmless_or_a_corrupt_table(data: st.DataObject) -> None:
    document = copy.deepcopy(ALL[data.draw(st.sampled_from([1, 2, 3, 4]))])
    at: Any = document
    while True:
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if not at[key] or not isinstance(at[key], dict | list) or data.draw(st.booleans()):
            break
        at = at[key]
    at[key] = data.draw(JSON_VALUES)
    try:
        metadata = read(document)
    except (CorruptTable, Unsupported):
        return
    assert read(json.loads(codec.encode(metadata, compress=False))) == metadata


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
