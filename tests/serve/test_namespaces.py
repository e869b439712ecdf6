"""Namespaces by the REST protocol."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icetree.table.lake import Lake
from tests.serve.asking import Client


def test_a_namespace_is_made_listed_told_and_dropped(client: Client) -> None:
    made = client.post("/v1/namespaces", {"namespace": ["a"], "properties": {"owner": "me"}})
    assert (made.status, made.json) == (200, {"namespace": ["a"], "properties": {"owner": "me"}})
    assert client.get("/v1/namespaces").json["namespaces"] == [["a"], ["db"]]
    assert client.get("/v1/namespaces/a").json["properties"] == {"owner": "me"}
    assert client.head("/v1/namespaces/a").status == 204
    assert client.delete("/v1/namespaces/a").status == 204
    assert client.head("/v1/namespaces/a").status == 404
    assert client.get("/v1/namespaces/a").error == (404, "NoSuchNamespaceException")


def test_a_nested_namespace_is_below_its_parent_alone(client: Client) -> None:
    client.post("/v1/namespaces", {"namespace": ["a", "b"]})
    client.post("/v1/namespaces", {"namespace": ["a", "b", "c"]})
    assert client.get("/v1/namespaces?parent=a").json["namespaces"] == [["a", "b"]]
    assert client.get("/v1/namespaces?parent=a%1Fb").json["namespaces"] == [["a", "b", "c"]]
    assert client.get("/v1/namespaces/a%1Fb%1Fc").json["namespace"] == ["a", "b", "c"]
    assert client.get("/v1/namespaces?parent=no").error == (404, "NoSuchNamespaceException")


def test_properties_are_set_and_removed_and_what_was_missing_is_told(client: Client) -> None:
    client.post("/v1/namespaces/db/properties", {"updates": {"a": "1", "b": "2"}})
    told = client.post(
        "/v1/namespaces/db/properties", {"removals": ["a", "x"], "updates": {"c": "3"}}
    )
    assert told.json == {"updated": ["c"], "removed": ["a"], "missing": ["x"]}
    assert client.get("/v1/namespaces/db").json["properties"] == {"b": "2", "c": "3"}
    both = client.post("/v1/namespaces/db/properties", {"removals": ["a"], "updates": {"a": "1"}})
    assert both.error == (422, "UnprocessableEntityException")


def test_a_namespace_that_is_there_or_not_empty_is_a_conflict(client: Client, lake: Lake) -> None:
    there = client.post("/v1/namespaces", {"namespace": ["db"]})
    assert there.error == (409, "AlreadyExistsException")
    lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    assert client.delete("/v1/namespaces/db").error == (409, "NamespaceNotEmptyException")


def test_a_list_comes_in_pages_whatever_comes_and_goes_between(client: Client) -> None:
    for name in "egc":
        client.post("/v1/namespaces", {"namespace": [name]})
    first = client.get("/v1/namespaces?pageSize=2&pageToken=").json
    assert first["namespaces"] == [["c"], ["db"]]
    client.delete("/v1/namespaces/c")
    client.post("/v1/namespaces", {"namespace": ["f"]})
    second = client.get(f"/v1/namespaces?pageSize=2&pageToken={first['next-page-token']}").json
    assert second["namespaces"] == [["e"], ["f"]]
    last = client.get(f"/v1/namespaces?pageSize=2&pageToken={second['next-page-token']}").json
    assert (last["namespaces"], last["next-page-token"]) == ([["g"]], None)


@pytest.mark.parametrize("query", ["pageSize=0", "pageSize=x", "pageSize=-1", "pageToken=!!"])
def test_a_page_that_cannot_be_is_refused(client: Client, query: str) -> None:
    assert client.get(f"/v1/namespaces?{query}").error == (400, "BadRequestException")


@pytest.mark.parametrize(
    "path", ["a.b", "..", "a%2Fb", "a%1F", "%1F", "%00", "%FF", "a%0Ab", "a%5Cb", "%2E%2E"]
)
def test_a_name_that_could_be_read_in_two_ways_is_refused(client: Client, path: str) -> None:
    assert client.get(f"/v1/namespaces/{path}").error == (400, "BadRequestException")
    assert client.get(f"/v1/namespaces/db/tables/{path}").error == (400, "BadRequestException")


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"namespace": "a"}', b'{"namespace": []}', b'{"namespace": [1]}',
             b"[" * 100_000, b'{"namespace": ["a"], "properties": {"x": 1}}', b"\xff"],
)  # fmt: skip
def test_a_body_that_does_not_fit_is_refused_and_nothing_is_made(
    client: Client, body: bytes
) -> None:
    before = client.get("/v1/namespaces").json
    assert client.post("/v1/namespaces", body).error == (400, "BadRequestException")
    assert client.get("/v1/namespaces").json == before


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/namespaces/dbb", None),
        ("GET", "/v1/namespaces?parent=dbb", None),
        ("DELETE", "/v1/namespaces/dbb", None),
        ("POST", "/v1/namespaces/dbb/properties", {"updates": {"a": "1"}}),
        ("GET", "/v1/namespaces/dbb/tables", None),
        ("GET", "/v1/namespaces/dbb/views", None),
        ("GET", "/v1/namespaces/db/tables/tt", None),
        ("DELETE", "/v1/namespaces/db/tables/tt", None),
        ("GET", "/v1/namespaces/db/views/vv", None),
        ("DELETE", "/v1/namespaces/db/views/vv", None),
    ],
)
def test_a_name_that_is_mistyped_is_told_as_missing_without_those_that_others_have(
    client: Client, lake: Lake, method: str, path: str, body: object
) -> None:
    """Who asks may have no right to see the one that is near."""
    lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    lake.create_view("db.v", "SELECT 1 AS n", "n int")
    told = client.ask(method, path, body)
    assert told.status == 404
    message = told.json["error"]["message"]
    assert message.startswith("there is no ")
    assert "mean" not in message
    assert "there are" not in message
