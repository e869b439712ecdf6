"""Views by the REST protocol: made, shown, changed, renamed, dropped; by stock PyIceberg too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchViewError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion

from icetree.serve.access.access import Access
from icetree.serve.access.grants import digest_of, grants_in
from icetree.serve.server import Server
from icetree.table.lake import Lake
from tests.serve.asking import Client
from tests.serve.listening import listening

HERE = "/v1/namespaces/db"
VIEWS = f"{HERE}/views"
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
}
OTHER = {
    **SCHEMA,
    "fields": [{"id": 1, "name": "n", "required": False, "type": "long", "doc": "which"}],
}


def version(sql: str = "SELECT id FROM t", id: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "version-id": id,
        "schema-id": 0,
        "timestamp-ms": 1_700_000_000_000,
        "summary": {"engine-name": "test"},
        "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}],
        "default-namespace": ["db"],
        **more,
    }


def new(name: str = "v", **more: Any) -> dict[str, Any]:
    return {"name": name, "schema": SCHEMA, "view-version": version(), "properties": {"a": "1"}, **more}  # fmt: skip


REPLACE = [
    {"action": "add-schema", "schema": OTHER, "last-column-id": 1},
    {"action": "add-view-version", "view-version": version("SELECT 2 AS n", 2, **{"schema-id": -1})},
    {"action": "set-current-view-version", "view-version-id": -1},
]  # fmt: skip


def test_a_view_is_made_listed_shown_and_dropped(client: Client, lake: Lake) -> None:
    made = client.post(VIEWS, new())
    assert made.status == 200, made.body
    assert made.json["metadata"]["versions"][0]["default-namespace"] == ["db"]
    assert made.json["metadata"]["location"].startswith(f"{lake.warehouse}/db/v-")
    assert lake.view("db.v").text == "SELECT id FROM t"
    assert client.get(VIEWS).json["identifiers"] == [{"namespace": ["db"], "name": "v"}]
    assert client.get(f"{HERE}/tables").json["identifiers"] == []
    assert client.head(f"{VIEWS}/v").status == 204
    assert client.get(f"{VIEWS}/v").json == made.json
    tag = made.headers["etag"]
    assert client.get(f"{VIEWS}/v", if_none_match=tag).status == 304
    lake.view("db.v").set_properties({"b": "2"})
    assert client.get(f"{VIEWS}/v", if_none_match=tag).status == 200
    assert client.delete(f"{VIEWS}/v").status == 204
    assert client.head(f"{VIEWS}/v").status == 404
    assert lake.views() == []


def test_what_is_not_there_or_taken_is_told_by_its_type(client: Client, lake: Lake) -> None:
    lake.create_table("db.t", "id long")
    client.post(VIEWS, new())
    no_view = (404, "NoSuchViewException")
    assert client.get(f"{VIEWS}/no").error == no_view
    assert client.get(f"{VIEWS}/t").error == no_view
    assert client.delete(f"{VIEWS}/no").error == no_view
    assert client.post(f"{VIEWS}/no", {"updates": []}).error == no_view
    assert client.get(f"{HERE}/tables/v").error == (404, "NoSuchTableException")
    no_namespace = (404, "NoSuchNamespaceException")
    assert client.get("/v1/namespaces/no/views").error == no_namespace
    assert client.post("/v1/namespaces/no/views", new()).error == no_namespace
    for name in ("v", "t"):
        assert client.post(VIEWS, new(name)).error == (409, "AlreadyExistsException")
    made = client.post(f"{HERE}/tables", {"name": "v", "schema": SCHEMA})
    assert made.error == (409, "AlreadyExistsException")

    def rename(source: str, to: str, namespace: str = "db") -> Any:
        body = {"source": {"namespace": ["db"], "name": source}, "destination": {"namespace": [namespace], "name": to}}  # fmt: skip
        return client.post("/v1/views/rename", body)

    assert rename("no", "x").error == no_view
    assert rename("v", "x", "no").error == no_namespace
    assert rename("v", "t").error == (409, "AlreadyExistsException")
    assert rename("v", "w").status == 204
    assert lake.views() == ["db.w"]


def test_a_view_is_replaced_by_updates_in_their_order(client: Client, lake: Lake) -> None:
    uuid = client.post(VIEWS, new()).json["metadata"]["view-uuid"]
    body = {
        "requirements": [{"type": "assert-view-uuid", "uuid": uuid}],
        "updates": [
            *REPLACE,
            {"action": "set-properties", "updates": {"b": "2"}},
            {"action": "remove-properties", "removals": ["a"]},
            {"action": "assign-uuid", "uuid": uuid},
        ],
    }
    told = client.post(f"{VIEWS}/v", body)
    assert told.status == 200, told.body
    view = lake.view("db.v")
    assert (view.text, view.properties) == ("SELECT 2 AS n", {"b": "2"})
    assert [field.name for field in view.schema.fields] == ["n"]
    assert told.json["metadata"]["current-version-id"] == 2
    # Sent again, it has happened already.
    again = client.post(f"{VIEWS}/v", body)
    assert (again.status, again.json["metadata-location"]) == (200, told.json["metadata-location"])
    back = {"updates": [{"action": "set-current-view-version", "view-version-id": 1}]}
    assert client.post(f"{VIEWS}/v", back).status == 200
    assert lake.view("db.v").text == "SELECT id FROM t"
    other = {"requirements": [{"type": "assert-view-uuid", "uuid": "x"}], "updates": REPLACE}
    assert client.post(f"{VIEWS}/v", other).error == (409, "CommitFailedException")


def test_a_schema_numbered_from_zero_is_taken_as_spark_sends_it(client: Client, lake: Lake) -> None:
    fields = [{"id": 0, "name": "n", "required": False, "type": "long"}]
    assert client.post(VIEWS, new(schema={**SCHEMA, "fields": fields})).status == 200
    assert [field.name for field in lake.view("db.v").schema.fields] == ["n"]


def test_a_request_with_a_key_is_carried_out_once(client: Client, lake: Lake) -> None:
    key = {"idempotency_key": "0190a000-0000-7000-8000-000000000001"}
    first = client.post(VIEWS, new(), **key)
    lake.drop_view("db.v")
    assert client.post(VIEWS, new(), **key).json == first.json
    assert lake.views() == []


@pytest.mark.parametrize(
    "more",
    [
        {"name": ""},
        {"name": "a.b"},
        {"name": "../x"},
        {"schema": {"type": "struct", "fields": [{"id": 1}]}},
        {"schema": {"type": "struct", "fields": [{"id": 2**31, "name": "a", "required": False, "type": "int"}]}},
        {"view-version": {}},
        {"view-version": version(representations=[])},
        {"view-version": version(**{"default-namespace": "db"})},
        {"view-version": version(**{"timestamp-ms": 2**70})},
        {"view-version": version(summary={"a": 1})},
        {"location": "/etc/view"},
        {"location": "{warehouse}/other/view"},
        {"location": "{warehouse}/db/a/b"},
        {"location": "{warehouse}/db/../x"},
        {"location": "{warehouse}/db/t"},
        {"location": "{warehouse}/db/t/inside"},
        {"properties": {"version.history.num-entries": "0"}},
    ],
)  # fmt: skip
def test_what_cannot_be_a_view_or_leads_elsewhere_is_refused(
    client: Client, lake: Lake, tmp_path: Path, more: dict[str, Any]
) -> None:
    lake.create_table("db.t", "id long")
    files = sorted(tmp_path.rglob("*"))
    body = json.loads(json.dumps(new(**more)).replace("{warehouse}", str(lake.warehouse)))
    told = client.post(VIEWS, body)
    assert (told.status, told.error[1]) == (400, "BadRequestException"), told.body
    assert sorted(tmp_path.rglob("*")) == files


def test_a_client_may_name_a_folder_beside_the_tables(client: Client, lake: Lake) -> None:
    told = client.post(VIEWS, new(location=f"{lake.warehouse}/db/mine"))
    assert told.json["metadata"]["location"] == f"{lake.warehouse}/db/mine"
    taken = client.post(VIEWS, new("w", location=f"{lake.warehouse}/db/mine"))
    assert taken.error[0] == 400


@pytest.mark.parametrize(
    "update",
    [
        {"action": "set-location", "location": "/elsewhere"},
        {"action": "assign-uuid", "uuid": "0190a000-0000-7000-8000-000000000001"},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "set-current-view-version", "view-version-id": 7},
        {"action": "set-current-view-version", "view-version-id": -1},
        {"action": "add-view-version", "view-version": version("SELECT 9", **{"schema-id": -1})},
        {"action": "add-view-version", "view-version": version("SELECT 9", **{"schema-id": 7})},
        {"action": "add-snapshot", "snapshot": {}},
        {"action": "set-properties", "updates": {"version.history.num-entries": "x"}},
    ],
)
def test_an_update_that_cannot_be_changes_nothing(
    client: Client, lake: Lake, update: dict[str, Any]
) -> None:
    client.post(VIEWS, new())
    before = lake.view("db.v").state
    told = client.post(f"{VIEWS}/v", {"updates": [update]})
    assert told.error[0] == 400, told.body
    assert lake.view("db.v").state == before


def test_a_version_numbered_out_of_reach_leaves_room_for_the_next(
    client: Client, lake: Lake
) -> None:
    client.post(VIEWS, new(**{"view-version": version(id=2**31 - 1)}))
    updates = [
        {"action": "add-view-version", "view-version": version("SELECT 3", id=2**31 - 1)},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    assert client.post(f"{VIEWS}/v", {"updates": updates}).status == 200
    assert lake.view("db.v").version.version_id == 2


def test_a_view_is_registered_from_its_namespaces_folder_alone(client: Client, lake: Lake) -> None:
    at = client.post(VIEWS, new()).json["metadata-location"]
    client.delete(f"{VIEWS}/v")
    register = f"{HERE}/register-view"
    for wrong in ("/etc/metadata/x.metadata.json", at + "x", at.replace("/db/", "/other/")):
        assert client.post(register, {"name": "v", "metadata-location": wrong}).error[0] == 400
    told = client.post(register, {"name": "v", "metadata-location": at})
    assert (told.status, lake.views()) == (200, ["db.v"])
    table = lake.create_table("db.t", "id long").state.metadata_location
    told = client.post(register, {"name": "w", "metadata-location": table})
    assert told.error == (422, "CorruptTableException")


GRANTS = f"""
clients:
  reader:
    token: {digest_of("reader")}
    read: db
  writer:
    token: {digest_of("writer")}
    write: db
"""


def test_who_may_read_a_namespace_may_look_at_its_views_and_no_more(lake: Lake) -> None:
    server = Server(lake, Access(grants=grants_in(GRANTS, "grants")))
    nobody, reader, writer = (
        Client(server, {} if who is None else {"authorization": f"Bearer {who}"})
        for who in (None, "reader", "writer")
    )
    lake.create_namespace("other")
    lake.create_view("other.v", "SELECT 1", "a int")
    assert writer.post(VIEWS, new()).status == 200
    assert nobody.get(f"{VIEWS}/v").status == 401
    assert reader.get(f"{VIEWS}/v").status == 200
    rename = {"source": {"namespace": ["db"], "name": "v"}, "destination": {"namespace": ["other"], "name": "w"}}  # fmt: skip
    for told in (
        reader.post(VIEWS, new("w")),
        reader.post(f"{VIEWS}/v", {"updates": []}),
        reader.delete(f"{VIEWS}/v"),
        reader.post("/v1/views/rename", rename),
        writer.post("/v1/views/rename", rename),
        reader.get("/v1/namespaces/other/views"),
        reader.get("/v1/namespaces/other/views/v"),
        writer.post(f"{HERE}/register-view", {"name": "w", "metadata-location": "/x"}),
    ):
        assert told.status == 403, told.body
    assert lake.views() == ["db.v", "other.v"]


def test_stock_pyiceberg_makes_finds_loads_and_drops_a_view(lake: Lake) -> None:
    with listening(Server(lake)) as server:
        catalog = RestCatalog("rest", uri=f"http://127.0.0.1:{server.port}")
        text = SQLViewRepresentation(type="sql", sql="SELECT 1 AS id", dialect="spark")
        made = ViewVersion(
            version_id=1, schema_id=0, timestamp_ms=1, summary={}, representations=[text],
            default_namespace=["db"],
        )  # fmt: skip
        schema = Schema(NestedField(1, "id", LongType(), required=False))
        catalog.create_view("db.v", schema, made)
        assert lake.view("db.v").text == "SELECT 1 AS id"
        assert catalog.list_views("db") == [("db", "v")]
        assert catalog.list_tables("db") == []
        assert (catalog.view_exists("db.v"), catalog.view_exists("db.w")) == (True, False)
        assert catalog.load_view("db.v").metadata.view_uuid == lake.view("db.v").metadata.view_uuid
        catalog.drop_view("db.v")
        with pytest.raises(NoSuchViewError):
            catalog.load_view("db.v")
