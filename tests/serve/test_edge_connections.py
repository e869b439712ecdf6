"""The server's edge under attack: clients that are slow, many or in a hurry, and stops, on real sockets."""

from __future__ import annotations

import json
import resource
import socket
import time
from contextlib import ExitStack, suppress
from http.client import HTTPConnection

import pytest
from typing_extensions import override

from icetree.catalog.memory import MemoryCatalog
from icetree.serve.http.door import room_for
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
    asked,
    asking,
    create,
    in_thread,
    is_open,
    is_well,
    server,
    until,
)
from tests.serve.listening import Listening, listening, read_all, trusting


@pytest.mark.parametrize("tls", [None, OURS])
def test_a_client_that_does_not_say_what_it_wants_is_let_go(tls: Tls | None) -> None:
    with listening(server(), SMALL, tls) as at:
        trusted = trusting(OURS.certificate) if tls else None
        # Without TLS the first two are alike; with it one does not even agree on that.
        mute, silent, dripping = at.connect(), at.connect(trusted), at.connect(trusted)
        began = time.monotonic()
        with mute, silent, dripping:
            with suppress(OSError):
                for letter in b"GET /healthz HTTP" * 3:
                    dripping.sendall(bytes([letter]))
                    time.sleep(0.05)
            for each in (mute, silent, dripping):
                assert read_all(each) == b""
            # And without a word of farewell from them.
            until(lambda: not at.inner.server_state.connections)
        assert time.monotonic() - began < 5
        assert is_open(at, trusted)


def test_a_client_that_does_not_read_its_answer_is_let_go() -> None:
    class Talkative(Server):
        @override
        def answer(self, request: Request) -> Answer:
            told = super().answer(request)
            return told if request.path == "/healthz" else Answer(document=b"x" * (64 << 20))

    lake = Lake(catalog=MemoryCatalog("m"), store=MemoryStore())
    with listening(Talkative(lake), SMALL) as at:
        with at.connect() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(b"GET /v1/config HTTP/1.1\r\nHost: localhost\r\n\r\n")
            until(lambda: at.inner.server_state.connections)
            until(lambda: not at.inner.server_state.connections)
        assert is_well(at)


def test_no_answer_waits_for_the_client_to_acknowledge_its_head() -> None:
    with listening(server(), SMALL) as at, at.connect():
        until(lambda: at.inner.server_state.connections)
        (each,) = at.inner.server_state.connections
        inner = each.transport.get_extra_info("socket")
        assert inner.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_connection_serves_one_request_after_the_other() -> None:
    with listening(server(), SMALL) as at:
        connection = HTTPConnection("127.0.0.1", at.port, timeout=10)
        for path, status in (("/healthz", 200), ("/nowhere", 404), ("/v1/namespaces/x", 404)):
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == status
        connection.request("HEAD", "/v1/namespaces/x")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (404, b"")
        connection.close()


def test_who_comes_when_all_hands_are_full_is_turned_away(slow: Slow) -> None:
    with listening(server(slow), Limits(workers=1, waiting=0)) as at:
        begun = in_thread(lambda: at.ask("POST", "/v1/namespaces", create("a")).status)
        assert slow.asked.wait(5)
        refused = at.ask("GET", "/v1/config")
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        slow.go.set()
        assert begun() == 200
        until(lambda: is_well(at))


def test_work_that_takes_too_long_goes_on_and_its_client_is_told_that(slow: Slow) -> None:
    with listening(server(slow), Limits(work_s=0.2)) as at:
        told = at.ask("POST", "/v1/namespaces", create("a"))
        assert told.status == 504
        assert json.load(told)["error"]["type"] == "CommitStateUnknownException"
        slow.go.set()
        until(lambda: at.ask("GET", "/v1/namespaces/a").status == 200)


def test_work_is_finished_for_a_client_that_went_away(slow: Slow) -> None:
    with listening(server(slow)) as at:
        with at.connect() as connection:
            body = create("a")
            head = POST.decode() + f"Content-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            assert slow.asked.wait(5)
        slow.go.set()
        until(lambda: at.ask("GET", "/v1/namespaces/a").status == 200)


def test_a_stop_waits_for_what_was_begun_and_takes_nothing_new(slow: Slow) -> None:
    with listening(server(slow)) as at:
        begun = in_thread(lambda: at.ask("POST", "/v1/namespaces", create("a")).status)
        assert slow.asked.wait(5)
        at.stop()
        until(lambda: not _takes_connections(at))
        assert at.thread.is_alive()
        slow.go.set()
        assert begun() == 200
        at.thread.join(10)
        assert not at.thread.is_alive()
    assert slow.namespaces() == [("a",)]


@pytest.mark.parametrize("tls", [None, OURS])
def test_who_says_nothing_gives_way_to_who_comes(tls: Tls | None) -> None:
    """However many there are: nobody who asks is told to come again."""
    with listening(server(), Limits(connections=8), tls) as at:
        trusted = trusting(OURS.certificate) if tls else None
        with ExitStack() as held:
            kept = held.enter_context(asking(at, trusted))
            for number in range(40):
                # With TLS some agree on it, and say nothing then.
                silent = at.connect(trusted if number % 4 == 0 else None)
                held.enter_context(silent)
                if number % 5 == 0:
                    assert is_open(at, trusted)
            # Who has asked before is let go after all who have not.
            assert asked(kept) == 200
            assert len(at.inner.server_state.connections) <= 8
        until(lambda: not at.inner.server_state.connections)


def test_who_is_answered_stays_whoever_comes(slow: Slow) -> None:
    with listening(server(slow), Limits(connections=2)) as at:
        begun = [
            in_thread(lambda: at.ask("POST", "/v1/namespaces", create("a")).status)
            for _ in range(2)
        ]
        assert slow.asked.wait(5)
        until(lambda: at.inner.server_state.total_requests + len(at.inner.server_state.tasks) == 2)
        with at.connect() as third:
            assert read_all(third) == b""
        slow.go.set()
        assert sorted(each() for each in begun) == [200, 409]
        until(lambda: is_well(at))


def test_connections_leave_files_for_the_work() -> None:
    """Half of the files that a process may open: a commit needs some, too."""
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        assert room_for(10) == 10
        resource.setrlimit(resource.RLIMIT_NOFILE, (files // 2, most))
        assert room_for(files) == min(files, most // 2)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(2 * files, most)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))


def _takes_connections(at: Listening) -> bool:
    try:
        at.connect().close()
    except OSError:
        return False
    return True
