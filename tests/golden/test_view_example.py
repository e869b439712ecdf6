"""The example of the view specification: a view of daily counts, then the same view replaced."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from icetree.codec.view import decode, encode
from icetree.spec.edit.view import replaced
from icetree.spec.metadata.view import SPARK, Representation

SQL = "SELECT\n    COUNT(1), CAST(event_ts AS DATE)\nFROM {}\nGROUP BY 2"
SCHEMA = {
    "schema-id": 1,
    "type": "struct",
    "fields": [
        {"id": 1, "name": "event_count", "required": False, "type": "int", "doc": "Count of events"},
        {"id": 2, "name": "event_date", "required": False, "type": "date"},
    ],
}  # fmt: skip


def version(id: int, at_ms: int, table: str) -> dict[str, Any]:
    return {
        "version-id": id,
        "timestamp-ms": at_ms,
        "schema-id": 1,
        "default-catalog": "prod",
        "default-namespace": ["default"],
        "summary": {"engine-name": "Spark", "engine-version": "3.3.2"},
        "representations": [{"type": "sql", "sql": SQL.format(table), "dialect": "spark"}],
    }


FIRST, SECOND = version(1, 1573518431292, "events"), version(2, 1573518981593, "prod.default.events")  # fmt: skip


def document(*versions: dict[str, Any]) -> dict[str, Any]:
    return {
        "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
        "format-version": 1,
        "location": "s3://bucket/warehouse/default.db/event_agg",
        "current-version-id": versions[-1]["version-id"],
        "properties": {"comment": "Daily event counts"},
        "versions": [*versions],
        "schemas": [SCHEMA],
        "version-log": [
            {"timestamp-ms": each["timestamp-ms"], "version-id": each["version-id"]}
            for each in versions
        ],
    }


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("versions", [[FIRST], [FIRST, SECOND]])
def test_the_example_is_read_and_written_as_it_is(
    versions: list[dict[str, Any]], compress: bool
) -> None:
    raw = json.dumps(document(*versions)).encode()
    found = decode(raw, file="00001-x.metadata.json")
    again = encode(found, compress=compress)
    assert decode(again, file="x.metadata.json") == found
    assert json.loads(encode(found)) == document(*versions)
    assert found.current.texts == {SPARK: versions[-1]["representations"][0]["sql"]}
    assert [field.name for field in found.schema().fields] == ["event_count", "event_date"]


def test_replacing_the_example_gives_the_second_file() -> None:
    first = decode(json.dumps(document(FIRST)).encode(), file="00001-x.metadata.json")
    text = Representation(type="sql", sql=SQL.format("prod.default.events"), dialect="spark")
    new = replace(first.current, representations=(text,), timestamp_ms=SECOND["timestamp-ms"])
    second = replaced(first, new, SCHEMA, at_ms=SECOND["timestamp-ms"])
    assert json.loads(encode(second)) == document(FIRST, SECOND)
