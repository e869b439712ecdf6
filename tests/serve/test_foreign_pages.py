"""What a web page of elsewhere can make a browser send to a server that asks nobody for a token."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icetree.serve.access.access import Access
from icetree.serve.access.grants import digest_of, grants_in
from icetree.serve.access.onlookers import Onlookers
from icetree.serve.protocol.request import Request
from icetree.serve.routes import ROUTES
from icetree.serve.server import Server
from icetree.table.lake import Lake
from tests.serve.asking import Client
from tests.serve.listening import listening

HOST = "127.0.0.1:8181"
RENAME = b"""{"source": {"namespace": ["db"], "name": "t"},
    "destination": {"namespace": ["db"], "name": "u"}}"""
JSON = "application/json"


@pytest.fixture
def open_to_all(lake: Lake) -> Server:
    lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    return Server(lake)


def ask(
    server: Server, method: str, path: str, body: bytes = b"", host: str = HOST, **headers: str
) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    base = f"http://{host}" if host else ""
    return server.answer(
        Request(method=method, path=path, headers=named, body=body, base=base)
    ).status


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8181", "localhost.evil.example", "10.0.0.1", "[::1", ""]
)
def test_no_route_answers_under_a_name_that_is_not_of_this_machine(
    open_to_all: Server, lake: Lake, host: str
) -> None:
    """A page of elsewhere may have its own name lead here: its browser then tells that name."""
    for server in (open_to_all, Server(lake, Onlookers())):
        for route in ROUTES:
            path = route.path.replace("/{prefix}", "").replace("{namespace}", "db")
            path = path.replace("{table}", "t").replace("{view}", "history")
            assert ask(server, route.method, path, b"{}", host, content_type=JSON) == 403, path
    assert lake.tables("db") == ["db.t"]


@pytest.mark.parametrize("host", [HOST, "localhost", "LOCALHOST:1", "[::1]:8181", "127.8.9.1"])
def test_names_of_this_machine_are_answered(open_to_all: Server, host: str) -> None:
    assert ask(open_to_all, "GET", "/v1/namespaces/db/tables/t", host=host) == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:3000"},
        {"origin": "http://["},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"},
    ],
)
def test_nothing_is_changed_for_a_page_of_another_origin(
    open_to_all: Server, lake: Lake, headers: dict[str, str]
) -> None:
    assert ask(open_to_all, "POST", "/v1/tables/rename", RENAME, content_type=JSON, **headers) == 403  # fmt: skip
    assert ask(open_to_all, "DELETE", "/v1/namespaces/db/tables/t", **headers) == 403
    assert lake.tables("db") == ["db.t"]


def test_a_link_of_elsewhere_leads_here_and_its_own_page_may_ask(
    open_to_all: Server,
) -> None:
    led = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    assert ask(open_to_all, "GET", "/ui/tables", **led) == 200
    assert ask(open_to_all, "GET", "/ui/tables", sec_fetch_site="same-origin") == 200
    own = {"origin": f"http://{HOST}", "sec_fetch_site": "same-origin", "content_type": JSON}
    assert ask(open_to_all, "POST", "/v1/tables/rename", RENAME, **own) == 204


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "", "text/plain;json"]
)
def test_a_body_that_any_page_may_send_is_not_taken_for_json(
    open_to_all: Server, lake: Lake, content_type: str
) -> None:
    headers = {"content_type": content_type} if content_type else {}
    assert ask(open_to_all, "POST", "/v1/tables/rename", RENAME, **headers) == 415
    assert lake.tables("db") == ["db.t"]


def test_a_form_for_a_token_is_taken(open_to_all: Server) -> None:
    form = {"content_type": "application/x-www-form-urlencoded"}
    assert ask(open_to_all, "POST", "/v1/oauth/tokens", b"grant_type=x", **form) == 200
    charset = {"content_type": "Application/JSON; charset=UTF-8"}
    assert ask(open_to_all, "POST", "/v1/tables/rename", RENAME, **charset) == 204


def test_a_token_is_proof_enough_under_whatever_name(lake: Lake) -> None:
    """No browser adds one by itself; and a server for others is reached by names that it has there."""
    file = f"clients:\n  chief:\n    token: {digest_of('x')}\n    write: '*'\n"
    server = Server(lake, Access(grants=grants_in(file, "grants")))
    told = Client(server, {"authorization": "Bearer x"}).post(
        "/v1/namespaces", {"namespace": ["new"]}, content_type="text/plain"
    )
    assert told.status == 200


def test_whoever_says_that_anyone_may_is_reached_by_any_name(lake: Lake) -> None:
    server = Server(lake, Access(any_host=True))
    assert ask(server, "GET", "/v1/namespaces", host="catalog.example") == 200
    assert ask(server, "GET", "/v1/namespaces", origin="http://evil.example") == 403


def test_the_socket_refuses_as_well(open_to_all: Server, lake: Lake) -> None:
    with listening(open_to_all) as at:
        told = at.ask("POST", "/v1/tables/rename", RENAME, **{"Content-Type": "text/plain"})
        assert told.status == 415
        told = at.ask("GET", "/ui/tables", Host="evil.example")
        assert told.status == 403
    assert lake.tables("db") == ["db.t"]
