"""The explorer on a server: a page for everybody, views for who may read, and nothing to change."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icetree.serve.access.access import Access
from icetree.serve.access.grants import digest_of, grants_in
from icetree.serve.access.onlookers import Onlookers
from icetree.serve.protocol.request import JSON, Request
from icetree.serve.routes import EXPLORER
from icetree.serve.server import Server
from icetree.table.lake import Lake
from tests.explore.browsing import built
from tests.serve.asking import Client


@pytest.fixture
def tables(lake: Lake) -> None:
    lake.create_namespace("secret")
    for name in ("db.t", "secret.t"):
        lake.create_table(name, pa.schema([("id", pa.int64())])).append(pa.table({"id": [1, 2]}))


@pytest.fixture
def reader(lake: Lake, tables: None) -> Client:
    del tables
    file = f"clients:\n  ann:\n    token: {digest_of('of ann')}\n    read: db\n"
    server = Server(lake, Access(grants=grants_in(file, "grants")))
    return Client(server, {"authorization": "Bearer of ann"})


@built
def test_the_page_may_run_its_own_script_and_ask_its_own_server(client: Client) -> None:
    told = client.get("/ui")
    assert told.status == 200
    policy = told.headers["content-security-policy"]
    for part in (
        "default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ):  # fmt: skip
        assert part in policy
    assert "unsafe" not in policy
    assert told.headers["x-content-type-options"] == "nosniff"
    assert client.get("/ui/explorer.js").headers["content-type"].startswith("text/javascript")
    assert client.get("/ui/explorer.css").headers["content-type"].startswith("text/css")


def test_who_may_read_a_namespace_sees_its_tables_and_no_others(reader: Client) -> None:
    assert [each["table"] for each in reader.get("/ui/tables").json["tables"]] == ["db.t"]
    assert reader.get("/ui/tables/db/t/history").json["table"] == "db.t"
    assert reader.get("/ui/tables/secret/t/history").error == (403, "ForbiddenException")
    assert reader.get("/ui/tables/db/none/history").error == (404, "NoSuchTableException")
    assert reader.get("/ui/tables/db/t/atlas").status == 404
    assert reader.get("/ui/tables/db/t/film?colour=red").status == 400


def test_every_view_is_kept_by_nobody_on_the_way(reader: Client) -> None:
    assert reader.get("/ui/tables/db/t/film").headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("http://127.0.0.1:80", 200),
        ("http://localhost:8080", 200),
        ("http://[::1]:80", 200),
        ("http://evil.example", 403),
        ("http://127.0.0.1.evil.example", 403),
        ("http://192.168.1.9:80", 403),
        ("", 403),
        ("http://[::1", 403),
    ],
)
def test_an_onlooker_asks_for_this_machine(
    lake: Lake, tables: None, host: str, status: int
) -> None:
    del tables
    server = Server(lake, Onlookers(), routes=EXPLORER)
    told = server.answer(Request(method="GET", path="/ui/tables/db/t/history", base=host))
    assert told.status == status


def test_an_onlooker_changes_nothing(lake: Lake, tables: None) -> None:
    """By no route of the catalog, for there are none; and by none, were they there."""
    del tables
    given = b'{"namespace": ["mine"]}'
    for server, status in (
        (Server(lake, Onlookers(), routes=EXPLORER), 404),
        (Server(lake, Onlookers()), 403),
    ):
        asked = Request(
            method="POST",
            path="/v1/namespaces",
            headers={"content-type": JSON},
            body=given,
            base="http://localhost",
        )
        assert server.answer(asked).status == status
    assert "mine" not in lake.namespaces()
