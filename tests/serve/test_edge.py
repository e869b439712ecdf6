"""The server's edge under attack: sizes, nonsense and paths that lead elsewhere, on real sockets."""

from __future__ import annotations

import pytest
from typing_extensions import override

from icetree.catalog.base import Namespace
from icetree.catalog.memory import MemoryCatalog
from icetree.serve.access.access import Access
from icetree.serve.access.grants import digest_of, grants_in
from icetree.serve.http.limits import Limits
from icetree.serve.protocol.request import Request
from icetree.serve.server import Server
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from tests.serve.edge import POST, SMALL, Slow, create, in_thread, is_well, server, until
from tests.serve.listening import listening


@pytest.mark.parametrize(
    "content",
    [
        POST + b"Content-Length: 10001\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n4000\r\n"
        b"%b\r\n" % (b"x" * 0x4000),
    ],
)  # fmt: skip
def test_a_body_that_is_too_large_is_refused_before_it_is_read(content: bytes) -> None:
    with listening(server(), SMALL) as at:
        told = at.raw(content)
        assert told.startswith(b"HTTP/1.1 413 ")
        assert b"PayloadTooLargeException" in told
        assert is_well(at)


@pytest.mark.parametrize(
    "content",
    [
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 9_000 + b"\r\n\r\n",
        b"GET /" + b"x" * 9_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x00\x01\x02\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        b"GET / healthz HTTP/9.9\r\n\r\n",
        b"GET /healthz\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_request_is_refused(content: bytes) -> None:
    with listening(server(), SMALL) as at:
        told = at.raw(content)
        assert told.startswith(b"HTTP/1.1 4") or told == b""
        assert is_well(at)


def test_a_client_whose_body_does_not_come_is_told_so() -> None:
    with listening(server(), SMALL) as at:
        told = at.raw(POST + b"Content-Length: 100\r\n\r\n{")
        assert told.startswith(b"HTTP/1.1 408 ")
        assert is_well(at)


def test_bodies_of_strangers_are_not_read() -> None:
    grants = grants_in(f"clients:\n  a:\n    token: {digest_of('x')}\n    read: a\n", "grants")
    lake = Lake(catalog=MemoryCatalog("m"), store=MemoryStore())
    with listening(Server(lake, Access(grants=grants)), SMALL) as at:
        for path, token, status in (
            ("/v1/namespaces", "y", b"401"),
            ("/v1/namespaces/a/tables", "x", b"403"),
            ("/v1/nowhere", "x", b"404"),
        ):
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n"
            told = at.raw(f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
            assert told[9:12] == status, told
        assert is_well(at)


def test_what_is_raised_beside_all_exceptions_is_answered_too() -> None:
    """As libraries in Rust raise their panics."""

    class Panic(BaseException):
        pass

    class Panicking(MemoryCatalog):
        @override
        def namespaces(self, parent: Namespace = ()) -> list[Namespace]:
            raise Panic

    told = server(Panicking("p")).answer(
        Request(method="GET", path="/v1/namespaces", base="http://localhost")
    )
    assert told.status == 500


def test_who_needs_no_name_has_little_to_say() -> None:
    with listening(server(), Limits(small_body_bytes=100)) as at:
        for route in (b"POST /v1/oauth/tokens", b"DELETE /v1/namespaces/x", b"GET /healthz"):
            told = at.raw(route + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 101\r\n\r\n")
            assert told.startswith(b"HTTP/1.1 413 ")


def test_bodies_of_all_clients_together_have_a_limit(slow: Slow) -> None:
    limits = Limits(body_bytes=10_000, bodies_bytes=15_000)
    head = POST + b"Content-Length: 9500\r\n\r\n"
    with listening(server(slow), limits) as at:
        with at.connect() as first:
            first.sendall(head + b" " * 9_000)
            until(lambda: at.raw(head + b" " * 9_500).startswith(b"HTTP/1.1 503 "))
        # What is worked on counts as well.
        body = create("a").ljust(9_500)
        begun = in_thread(lambda: at.ask("POST", "/v1/namespaces", body).status)
        assert slow.asked.wait(5)
        assert at.ask("POST", "/v1/namespaces", body).status == 503
        slow.go.set()
        assert begun() == 200
        until(lambda: at.ask("POST", "/v1/namespaces", body).status == 409)


@pytest.mark.parametrize(
    "target",
    [
        "/v1/namespaces/../config", "//v1/config", "/v1//config", "/v1/config/",
        "/v1/namespaces/db/tables/..%2F..%2Fetc%2Fpasswd", "/v1/namespaces/%2e%2e/tables",
        "/v1/namespaces/db%00/tables", "/v1/namespaces/a%252Fb%2F", "/%2e%2e/%2e%2e/etc/passwd",
        "http://elsewhere/v1/config", "/v1/namespaces/x?parent=%ff", "/v1/namespaces?pageToken=%00",
    ],
)  # fmt: skip
def test_paths_that_lead_elsewhere_lead_nowhere(target: str) -> None:
    with listening(server(), SMALL) as at:
        told = at.raw(
            f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        assert told[9:12] in (b"400", b"404"), told
