"""Bodies with anything in the place of anything: refused in a sentence, never the server's failure."""

from __future__ import annotations

import base64
import json
import random
import zlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from icetree.serve.protocol import bodies
from icetree.table.lake import Lake
from tests.effort import EFFORT, SEED
from tests.serve.asking import Client

#: What takes the place of a part of a body.
STRANGE: tuple[Any, ...] = (
    None, True, -1, 0, 2**31, 2**63, 10**30, 1.5, "", "x", "..", "\0", "\ud800", "/etc/passwd", "s3://b/k",
    "main", [], [None], [[]], {}, {"": ""}, {"type": "struct"}, {"fields": None}, ["x"] * 50,
)  # fmt: skip
FIELD = {"id": 1, "name": "id", "required": False, "type": "long"}
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [FIELD]}
SPEC = {"spec-id": 0, "fields": [{"source-id": 1, "field-id": 1000, "name": "b", "transform": "bucket[4]"}]}  # fmt: skip
ORDER = {"order-id": 1, "fields": [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}]}  # fmt: skip
REF = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1}
COMMIT = {
    "requirements": [
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
        {"type": "assert-current-schema-id", "current-schema-id": 0},
    ],
    "updates": [
        {"action": "add-schema", "schema": SCHEMA},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": SPEC},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": ORDER},
        {"action": "set-properties", "updates": {"a": "b"}},
        {"action": "remove-snapshots", "snapshot-ids": [1]},
        {"action": "set-statistics", "statistics": {"snapshot-id": 1, "statistics-path": "x", "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1, "blob-metadata": []}},
        {"action": "add-snapshot", "snapshot": {"snapshot-id": 1, "sequence-number": 1, "timestamp-ms": 1, "manifest-list": "x", "summary": {"operation": "append"}, "schema-id": 0}},
        REF,
    ],
}  # fmt: skip
T = "/v1/namespaces/db/tables/t"
VIEW = {
    "name": "w", "schema": SCHEMA, "properties": {"a": "b"}, "location": None,
    "view-version": {
        "version-id": 1, "schema-id": 0, "timestamp-ms": 0, "summary": {"engine": "x"}, "default-namespace": ["db"],
        "representations": [{"type": "sql", "sql": "SELECT 1 AS id", "dialect": "spark"}],
    },
}  # fmt: skip
FILTER = {
    "type": "and",
    "left": {"type": "or", "left": {"type": "eq", "term": "id", "value": 1}, "right": {"type": "in", "term": "id", "values": [1, 2]}},
    "right": {"type": "not", "child": {"type": "is-null", "term": {"type": "transform", "transform": "bucket[4]", "term": "id"}}},
}  # fmt: skip
BODIES: dict[str, Any] = {
    "/v1/namespaces": {"namespace": ["a"], "properties": {"a": "b"}},
    "/v1/namespaces/db/properties": {"updates": {"a": "b"}, "removals": ["c"]},
    "/v1/namespaces/db/tables": {"name": "u", "schema": SCHEMA, "partition-spec": SPEC, "write-order": ORDER, "stage-create": True, "properties": {"a": "b"}},
    "/v1/namespaces/db/register": {"name": "u", "metadata-location": "x/metadata/y.metadata.json"},
    "/v1/tables/rename": {"source": {"namespace": ["db"], "name": "no"}, "destination": {"namespace": ["db"], "name": "x"}},
    T: COMMIT,
    "/v1/transactions/commit": {"table-changes": [{"identifier": {"namespace": ["db"], "name": "t"}, **COMMIT}]},
    f"{T}/plan": {"snapshot-id": None, "select": ["id"], "filter": FILTER, "case-sensitive": True, "use-snapshot-schema": False, "stats-fields": ["id"], "min-rows-requested": 1},
    f"{T}/plan?range": {"start-snapshot-id": 1, "end-snapshot-id": 2, "select": ["id"], "filter": FILTER},
    f"{T}/tasks": {"plan-task": "x"},
    "/v1/namespaces/db/views": VIEW,
    "/v1/namespaces/db/views/v": {
        "requirements": [{"type": "assert-view-uuid", "uuid": "x"}],
        "updates": [
            {"action": "add-schema", "schema": SCHEMA},
            {"action": "add-view-version", "view-version": VIEW["view-version"]},
            {"action": "set-current-view-version", "view-version-id": -1},
            {"action": "set-properties", "updates": {"a": "b"}},
            {"action": "remove-properties", "removals": ["a"]},
            {"action": "set-location", "location": "x"},
            {"action": "assign-uuid", "uuid": "x"},
        ],
    },
    "/v1/namespaces/db/register-view": {"name": "w", "metadata-location": "x/metadata/y.metadata.json"},
    "/v1/views/rename": {"source": {"namespace": ["db"], "name": "no"}, "destination": {"namespace": ["db"], "name": "x"}},
    f"{T}/metrics": {"report-type": "scan-report", "snapshot-id": 1, "metrics": {}},
    f"{T}/sign": {"region": "us-east-1", "uri": "https://b.s3.amazonaws.com/x", "method": "GET", "headers": {"a": ["b"]}},
}  # fmt: skip


def changed(body: Any, chance: random.Random) -> Any:
    """Return a body of which one part, anywhere in it, is something strange, or is gone."""
    places = [*_places(body)]
    holder, key = chance.choice(places)
    copied = json.loads(json.dumps(body))
    inside = copied
    for step in holder:
        inside = inside[step]
    if chance.random() < 0.2:
        del inside[key]
    else:
        inside[key] = chance.choice(STRANGE)
    return copied


def _places(body: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    keys = body if isinstance(body, dict) else range(len(body)) if isinstance(body, list) else ()
    for key in keys:
        yield path, key
        yield from _places(body[key], (*path, key))


@pytest.mark.law
@pytest.mark.parametrize("path", BODIES)
def test_a_strange_body_is_refused_and_harms_nothing(path: str, client: Client, lake: Lake) -> None:
    table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    lake.create_view("db.v", "SELECT id FROM t", "id long", namespace="db")
    chance = random.Random(f"{SEED} {path}")
    for _ in range(60 * EFFORT):
        body = changed(BODIES[path], chance)
        told = client.post(path, body)
        assert told.status < 500, (told.body, body)
        if told.status >= 400:
            assert told.json["error"]["message"]
    assert lake.table("db.t").scan().to_arrow()["id"].to_pylist() == [1]
    assert lake.view("db.v").text


def test_a_token_of_a_page_that_was_tampered_with_is_refused(client: Client, lake: Lake) -> None:
    lake.create_table("db.t", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1]}))
    chance = random.Random(SEED)
    for _ in range(60 * EFFORT):
        token = "".join(chance.choices('AZaz09-_=.{}"', k=chance.randint(1, 200)))
        told = client.post(f"{T}/tasks", {"plan-task": token})
        assert 400 <= told.status < 500, (told.body, token)
        assert told.json["error"]["message"]


def test_a_schema_that_nests_too_deep_is_refused(client: Client) -> None:
    type: Any = "int"
    for _ in range(300):
        type = {"type": "list", "element-id": 2, "element": type, "element-required": False}
    body = {"name": "deep", "schema": {"type": "struct", "fields": [{**FIELD, "type": type}]}}
    assert client.post("/v1/namespaces/db/tables", body).error == (400, "BadRequestException")


def test_a_form_that_cannot_be_read_gets_no_token(client: Client) -> None:
    for form in (
        b"&".join(b"a=b" for _ in range(100)),
        b"\xff\xfe",
        b"=&=&",
        b"grant_type=password",
    ):
        assert client.post("/v1/oauth/tokens", form).status in (200, 400)


@pytest.mark.parametrize("value", ["[]", "{}", "1", '"ab"'])
def test_a_body_of_more_values_than_anybody_needs_is_refused_before_it_is_read(
    client: Client, lake: Lake, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes many times more room than it does as JSON."""
    monkeypatch.setattr(bodies, "_MOST_VALUES", 1_000)
    lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    few, many = (",".join([value] * count) for count in (400, 1_100))
    for path, body in (
        (f"{T}/plan", '{"filter": {"type": "true", "more": [%s]}}'),
        (f"{T}/metrics", '{"report-type": "x", "metrics": {"a": [%s]}}'),
        ("/v1/namespaces", '{"namespace": ["a"], "what": [%s]}'),
    ):
        told = client.post(path, (body % many).encode())
        assert told.error == (400, "BadRequestException")
        assert "1,000 values" in told.json["error"]["message"]
        assert client.post(path, (body % few).encode()).status < 300


def test_a_token_that_is_small_and_unpacks_to_many_values_is_refused(
    client: Client, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "_MOST_VALUES", 1_000)
    uuid = lake.create_table("db.t", pa.schema([("id", pa.int64())])).metadata.table_uuid
    asked = {"table_uuid": uuid, "meaning": "x", "snapshot_id": None, "schema_id": 0}
    messages = []
    for count in (10, 2_000):
        token = {"asked": {**asked, "stats_fields": [1] * count}, "start": 0, "stop": 1}
        packed = base64.urlsafe_b64encode(zlib.compress(json.dumps(token).encode())).decode()
        told = client.post(f"{T}/tasks", {"plan-task": packed})
        assert told.error == (404, "NoSuchPlanTaskException")
        messages.append(told.json["error"]["message"])
    # The first is read, and found to be of columns that the table has not.
    assert "have changed since" in messages[0]
    assert "not made by this server" in messages[1]
