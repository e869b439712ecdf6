"""Table metadata of every version, as the documents that writers store."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import strategies as st

from icetree.codec import metadata as codec

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


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
