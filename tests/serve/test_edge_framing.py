"""The server's edge under attack: where a request ends and an answer does, on real sockets."""

from __future__ import annotations

import json
import logging
import socket
from contextlib import ExitStack
from typing import Any

import pytest
from typing_extensions import override

from icetree.catalog.memory import MemoryCatalog
from icetree.serve.access.access import Access
from icetree.serve.access.grants import digest_of, grants_in
from icetree.serve.http import connection as edge_connection
from icetree.serve.http.limits import Limits
from icetree.serve.http.run import Tls
from icetree.serve.protocol.request import Answer, Request
from icetree.serve.server import Server
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from tests.serve.edge import (
    OURS,
    POST,
    SMALL,
    Slow,
    create,
    in_thread,
    is_open,
    is_well,
    server,
    until,
)
from tests.serve.listening import listening, read_all, trusting

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


class Talkative(Server):
    """Answers at length."""

    size_bytes = 6 << 20

    @override
    def answer(self, request: Request) -> Answer:
        told = super().answer(request)
        return told if request.path == "/healthz" else Answer(document=b"x" * self.size_bytes)


def talkative() -> Talkative:
    return Talkative(Lake(catalog=MemoryCatalog("m"), store=MemoryStore()))


def answers(told: bytes) -> list[tuple[int, Any]]:
    """Return the status and the document of each answer."""
    found = []
    while told:
        head, _, told = told.partition(b"\r\n\r\n")
        headers = dict(
            line.split(": ", 1) for line in head.decode().lower().split("\r\n")[1:] if line
        )
        size = int(headers.get("content-length", "0"))
        body, told = told[:size], told[size:]
        assert len(body) == size
        found.append((int(head[9:12]), json.loads(body) if body else None))
    return found


@pytest.mark.parametrize("follows", [b"\r\n", GET + b"\r\n"])
@pytest.mark.parametrize("last", [b"HTTP/1.1\r\nConnection: close\r\n", b"HTTP/1.0\r\n"])
def test_a_request_that_is_carried_out_is_not_told_as_refused_for_what_follows_it(
    slow: Slow, follows: bytes, last: bytes
) -> None:
    body = create("a")
    head = POST.replace(b"HTTP/1.1\r\n", last) + b"Content-Length: %d\r\n\r\n" % len(body)
    with listening(server(slow)) as at, at.connect() as connection:
        connection.sendall(head + body)
        assert slow.asked.wait(5)
        connection.sendall(follows)
        assert at.ask("GET", "/v1/config").status == 200
        slow.go.set()
        assert connection.recv(12)[9:] == b"200"


@pytest.mark.parametrize("tls", [None, OURS])
def test_a_client_that_is_the_last_to_ask_may_take_its_time_to_read(
    tls: Tls | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_connection, "_FAREWELL_S", 0.01)
    with listening(talkative(), tls=tls) as at:
        trusted = trusting(OURS.certificate) if tls else None
        with at.connect(trusted) as connection:
            connection.sendall(GET.replace(b"healthz", b"v1/config") + b"Connection: close\r\n\r\n")
            # Many farewells long.
            for _ in range(5):
                assert is_open(at, trusted)
            told = read_all(connection)
        assert len(told) > Talkative.size_bytes
        until(lambda: not at.inner.server_state.connections)


@pytest.mark.parametrize("tls", [None, OURS])
def test_who_never_reads_a_short_answer_is_let_go_in_the_end(
    tls: Tls | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Talkative, "size_bytes", 48 << 10)
    with listening(talkative(), SMALL, tls) as at:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        connection.connect(("127.0.0.1", at.port))
        if tls is not None:
            trusted = trusting(OURS.certificate)
            connection = trusted.wrap_socket(connection, server_hostname="localhost")
        with connection:
            until(lambda: at.inner.server_state.connections)
            (each,) = at.inner.server_state.connections
            inner = each.transport.get_extra_info("socket")
            inner.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1024)
            connection.sendall(GET.replace(b"healthz", b"v1/config") + b"\r\n")
            until(lambda: at.inner.server_state.total_requests)
            until(lambda: not at.inner.server_state.connections)


@pytest.mark.parametrize(
    "content",
    [
        b"\x16\x03\x01 hello\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        GET + b"X: \x00\r\n\r\n",
        GET + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        GET + b"Transfer-Encoding: gzip\r\n\r\n",
        GET + b"X: " + b"x" * 9_000,
        POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n: no name\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n" + b"X: y\r\n" * 9_000,
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused_in_the_words_of_the_protocol(
    content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "icetree.access")
    with listening(server(), SMALL) as at:
        (told,) = answers(at.raw(content))
        assert told[0] == told[1]["error"]["code"] == 400
        assert (told[1]["error"]["type"], set(told[1])) == ("BadRequestException", {"error"})
        assert is_well(at)
    # Each is told in the log as all are: a line of JSON.
    lines = [json.loads(each.getMessage()) for each in caplog.records]
    assert [each["status"] for each in lines] == [400, 200]
    assert lines[0]["peer"] == "127.0.0.1"


@pytest.mark.parametrize(
    "lengths",
    [
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
    ],
)
def test_a_request_with_two_lengths_is_refused_and_what_follows_is_not_heard(
    lengths: bytes,
) -> None:
    """A proxy that goes by the other one would have taken it for the body, or let it pass as another's."""
    with listening(server(), SMALL) as at:
        body = b"0\r\n\r\n"
        told = answers(at.raw(POST + lengths + b"\r\n" + body + GET + b"\r\n"))
        assert [status for status, _ in told] == [400]


def test_of_headers_that_are_there_twice_none_counts_where_one_is_meant() -> None:
    """Whoever stands before us may have looked at the other."""
    grants = grants_in(f"clients:\n  a:\n    token: {digest_of('x')}\n    read: a\n", "grants")
    lake = Lake(catalog=MemoryCatalog("m"), store=MemoryStore())
    asked = b"GET /v1/config HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    good, bad = b"Authorization: Bearer x\r\n", b"Authorization: Bearer y\r\n"
    with listening(Server(lake, Access(grants=grants)), SMALL) as at:
        for headers, status in ((good, 200), (good + bad, 401), (bad + good, 401), (good * 2, 401)):
            assert answers(at.raw(asked + headers + b"\r\n"))[0][0] == status


def test_whose_body_does_not_come_gives_way_to_who_comes() -> None:
    limits = Limits(connections=4)
    with listening(server(), limits) as at, ExitStack() as held:
        for number in range(6):
            slow = held.enter_context(at.connect())
            slow.sendall(POST + b"Content-Length: 100\r\n\r\n{")
            there = min(number, 2)
            until(lambda there=there: len(at.inner.server_state.tasks) > there)
            assert is_well(at)


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (POST + b"Content-Length: %d\r\n\r\n" % len(create("a")) + create("a"), 504),
        (POST + b"Content-Length: 100\r\n\r\n{", 503),
    ],
)
def test_who_is_not_answered_when_the_server_stops_is_told_so(
    slow: Slow, content: bytes, status: int
) -> None:
    with listening(server(slow)) as at, at.connect() as connection:
        at.inner.config.timeout_graceful_shutdown = 0
        connection.sendall(content)
        if status == 504:
            assert slow.asked.wait(5)
        else:
            until(lambda: at.inner.server_state.tasks)
        at.stop()
        told = in_thread(lambda: answers(read_all(connection)))()
        slow.go.set()
        assert [each for each, _ in told] == [status]
        assert told[0][1]["error"]["code"] == status
