"""Tables by the REST protocol: listed, looked for and shown."""

from __future__ import annotations

import pyarrow as pa

from icetree.table.lake import Lake
from tests.serve.asking import Client

SCHEMA = pa.schema([("id", pa.int64())])


def test_config_lists_every_route_that_there_is(client: Client) -> None:
    told = client.get("/v1/config").json
    assert {"GET /v1/{prefix}/namespaces", "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}"} <= set(told["endpoints"])  # fmt: skip
    assert client.get("/v1/config?warehouse=elsewhere").error == (404, "NoSuchWarehouseException")


def test_tables_are_listed_by_namespace(client: Client, lake: Lake) -> None:
    for name in ("b", "a"):
        lake.create_table(f"db.{name}", SCHEMA)
    told = client.get("/v1/namespaces/db/tables").json
    assert told["identifiers"] == [{"namespace": ["db"], "name": name} for name in ("a", "b")]
    assert client.get("/v1/namespaces/no/tables").error == (404, "NoSuchNamespaceException")
    paged = client.get("/v1/namespaces/db/tables?pageSize=1").json
    assert [each["name"] for each in paged["identifiers"]] == ["a"]
    assert paged["next-page-token"]


def test_a_table_is_shown_once_for_each_of_its_versions(client: Client, lake: Lake) -> None:
    table = lake.create_table("db.t", SCHEMA)
    first = client.get("/v1/namespaces/db/tables/t")
    assert first.json["metadata"]["table-uuid"] == table.metadata.table_uuid
    assert first.json["metadata-location"] == table.state.metadata_location
    tag = first.headers["etag"]
    same = client.get("/v1/namespaces/db/tables/t", if_none_match=tag)
    assert (same.status, same.body) == (304, b"")
    refs = client.get("/v1/namespaces/db/tables/t?snapshots=refs", if_none_match=tag)
    assert refs.status == 200
    assert refs.headers["etag"] != tag
    table.set_properties({"a": "b"})
    other = client.get("/v1/namespaces/db/tables/t", if_none_match=tag)
    assert other.json["metadata"]["properties"]["a"] == "b"


def test_a_client_is_shown_the_version_it_asks_for_or_can_write(client: Client, lake: Lake) -> None:
    lake.create_table("db.t", SCHEMA)
    lake.create_table("db.nanos", pa.schema([("ts", pa.timestamp("ns"))]))

    def version(table: str, **headers: str) -> int:
        told: int = client.get(f"/v1/namespaces/db/tables/{table}", **headers).json["metadata"]["format-version"]  # fmt: skip
        return told

    python = {"user_agent": "PyIceberg/0.12.0"}
    assert [version("t"), version("t", **python), version("nanos", **python)] == [3, 2, 3]
    assert version("t", x_icetree_format_version="2") == 2
    assert version("t", **python, x_icetree_format_version="3") == 3
    two = client.get("/v1/namespaces/db/tables/nanos", x_icetree_format_version="2")
    assert two.error == (406, "UnsupportedOperationException")
    four = client.get("/v1/namespaces/db/tables/t", x_icetree_format_version="4")
    assert four.error == (400, "BadRequestException")


def test_a_table_that_is_not_there_is_told_so(client: Client) -> None:
    assert client.head("/v1/namespaces/db/tables/t").status == 404
    assert client.get("/v1/namespaces/db/tables/t").error == (404, "NoSuchTableException")
    assert client.get("/v1/nowhere").error == (404, "NotFoundException")
    told = client.ask("PATCH", "/v1/namespaces")
    assert told.error == (405, "MethodNotAllowedException")
    assert told.headers["allow"] == "GET, POST"


def test_what_was_current_at_a_time_is_shown_of_pages_of_history_too(
    client: Client, lake: Lake
) -> None:
    few = {"write.metadata.inline-snapshots": "2"}
    table = lake.create_table("db.long", pa.schema([("id", pa.int64())]), properties=few)
    for id in range(30):
        table.append(pa.table({"id": [id]}))
    assert table.metadata.snapshot_pages
    shown = client.get("/v1/namespaces/db/tables/long").json["metadata"]
    known = [each["snapshot-id"] for each in shown["snapshots"]]
    logged = {each["snapshot-id"]: each["timestamp-ms"] for each in shown["snapshot-log"]}
    # Of those of one millisecond the last was current.
    last_of_each = {each["timestamp-ms"]: each["snapshot-id"] for each in shown["snapshots"]}
    assert len(known) == 30
    assert {*last_of_each.values()} == logged.keys()
