"""The server's edge under attack: sizes, slowness, nonsense, hurry and stops, on real sockets."""

from __future__ import annotations

import json
import resource
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from icetree.catalog.base import Namespace
from icetree.catalog.memory import MemoryCatalog
from icetree.errors import InvalidInput, NotFound
from icetree.serve.access.access import Access
from icetree.serve.access.grants import digest_of, grants_in
from icetree.serve.door import room_for
from icetree.serve.limits import Limits
from icetree.serve.request import Answer, Request
from icetree.serve.run import Address, Tls
from icetree.serve.server import Server
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from tests.serve.listening import Listening, listening, read_all, trusting

SMALL = Limits(body_bytes=10_000, head_bytes=8_000, head_s=0.4, body_s=0.4, answer_s=0.5)
TLS = Path(__file__).parent / "tls"
OURS = Tls(certificate=str(TLS / "localhost.pem"), key=str(TLS / "localhost.key"))


class Slow(MemoryCatalog):
    """A catalog that makes no namespace before it is told to go on."""

    def __init__(self) -> None:
        super().__init__("slow")
        self.asked, self.go = threading.Event(), threading.Event()

    @override
    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        self.asked.set()
        assert self.go.wait(10)
        super().create_namespace(namespace, properties)


@pytest.fixture
def slow() -> Iterator[Slow]:
    catalog = Slow()
    yield catalog
    catalog.go.set()


POST = b"POST /v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def server(catalog: MemoryCatalog | None = None) -> Server:
    return Server(Lake(catalog=catalog or MemoryCatalog("m"), store=MemoryStore()))


def create(name: str) -> bytes:
    return json.dumps({"namespace": [name]}).encode()


def is_well(at: Listening) -> bool:
    return at.ask("GET", "/healthz").status == 200


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
            _until(lambda: not at.inner.server_state.connections)
        assert time.monotonic() - began < 5
        assert _is_open(at, trusted)


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
            _until(lambda: at.raw(head + b" " * 9_500).startswith(b"HTTP/1.1 503 "))
        # What is worked on counts as well.
        body = create("a").ljust(9_500)
        begun = _in_thread(lambda: at.ask("POST", "/v1/namespaces", body).status)
        assert slow.asked.wait(5)
        assert at.ask("POST", "/v1/namespaces", body).status == 503
        slow.go.set()
        assert begun() == 200
        _until(lambda: at.ask("POST", "/v1/namespaces", body).status == 409)


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
            _until(lambda: at.inner.server_state.connections)
            _until(lambda: not at.inner.server_state.connections)
        assert is_well(at)


def test_no_answer_waits_for_the_client_to_acknowledge_its_head() -> None:
    with listening(server(), SMALL) as at, at.connect():
        _until(lambda: at.inner.server_state.connections)
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


def test_who_comes_when_all_hands_are_full_is_turned_away(slow: Slow) -> None:
    with listening(server(slow), Limits(workers=1, waiting=0)) as at:
        begun = _in_thread(lambda: at.ask("POST", "/v1/namespaces", create("a")).status)
        assert slow.asked.wait(5)
        refused = at.ask("GET", "/v1/config")
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        slow.go.set()
        assert begun() == 200
        _until(lambda: is_well(at))


def test_work_that_takes_too_long_goes_on_and_its_client_is_told_that(slow: Slow) -> None:
    with listening(server(slow), Limits(work_s=0.2)) as at:
        told = at.ask("POST", "/v1/namespaces", create("a"))
        assert told.status == 504
        assert json.load(told)["error"]["type"] == "CommitStateUnknownException"
        slow.go.set()
        _until(lambda: at.ask("GET", "/v1/namespaces/a").status == 200)


def test_work_is_finished_for_a_client_that_went_away(slow: Slow) -> None:
    with listening(server(slow)) as at:
        with at.connect() as connection:
            body = create("a")
            head = POST.decode() + f"Content-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            assert slow.asked.wait(5)
        slow.go.set()
        _until(lambda: at.ask("GET", "/v1/namespaces/a").status == 200)


def test_a_stop_waits_for_what_was_begun_and_takes_nothing_new(slow: Slow) -> None:
    with listening(server(slow)) as at:
        begun = _in_thread(lambda: at.ask("POST", "/v1/namespaces", create("a")).status)
        assert slow.asked.wait(5)
        at.stop()
        _until(lambda: not _takes_connections(at))
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
            kept = held.enter_context(_asking(at, trusted))
            for number in range(40):
                # With TLS some agree on it, and say nothing then.
                silent = at.connect(trusted if number % 4 == 0 else None)
                held.enter_context(silent)
                if number % 5 == 0:
                    assert _is_open(at, trusted)
            # Who has asked before is let go after all who have not.
            assert _asked(kept) == 200
            assert len(at.inner.server_state.connections) <= 8
        _until(lambda: not at.inner.server_state.connections)


def test_who_is_answered_stays_whoever_comes(slow: Slow) -> None:
    with listening(server(slow), Limits(connections=2)) as at:
        begun = [
            _in_thread(lambda: at.ask("POST", "/v1/namespaces", create("a")).status)
            for _ in range(2)
        ]
        assert slow.asked.wait(5)
        _until(lambda: at.inner.server_state.total_requests + len(at.inner.server_state.tasks) == 2)
        with at.connect() as third:
            assert read_all(third) == b""
        slow.go.set()
        assert sorted(each() for each in begun) == [200, 409]
        _until(lambda: is_well(at))


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


def test_a_server_with_a_certificate_speaks_tls_alone() -> None:
    certificate, key = str(TLS / "localhost.pem"), str(TLS / "localhost.key")
    with listening(server(), tls=Tls(certificate=certificate, key=key)) as at:
        connection = HTTPSConnection(
            "localhost", at.port, timeout=10, context=trusting(certificate)
        )
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        connection.close()
        with pytest.raises((HTTPException, OSError)):
            at.ask("GET", "/healthz")


def test_clients_without_a_certificate_are_not_let_in_where_one_is_asked_for() -> None:
    certificate, key = str(TLS / "localhost.pem"), str(TLS / "localhost.key")
    tls = Tls(certificate=certificate, key=key, client_authority=certificate)
    with listening(server(), tls=tls) as at:
        context = trusting(certificate)
        connection = HTTPSConnection("localhost", at.port, timeout=10, context=context)
        with pytest.raises((HTTPException, OSError)):
            _asked(connection)
        connection.close()
        context.load_cert_chain(certificate, key)
        connection = HTTPSConnection("localhost", at.port, timeout=10, context=context)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        connection.close()


def test_files_for_tls_that_cannot_be_used_are_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("nothing")
    with pytest.raises(InvalidInput, match="cannot be used"):
        Tls(certificate=str(tmp_path / "x"), key=str(tmp_path / "x")).check()
    with pytest.raises(NotFound, match="is not there"):
        Tls(certificate=str(tmp_path / "no"), key=str(tmp_path / "no")).check()
    with pytest.raises(InvalidInput, match="no port"):
        Address(port=70_000).listen()


def _asked(connection: HTTPConnection) -> int:
    connection.request("GET", "/healthz")
    answer = connection.getresponse()
    answer.read()
    return answer.status


@contextmanager
def _asking(at: Listening, tls: ssl.SSLContext | None) -> Iterator[HTTPConnection]:
    """Connect, ask, and stay."""
    found = HTTPConnection("127.0.0.1", at.port, timeout=10)
    if tls is not None:
        found = HTTPSConnection("localhost", at.port, timeout=10, context=tls)
    try:
        assert _asked(found) == 200
        yield found
    finally:
        found.close()


def _is_open(at: Listening, tls: ssl.SSLContext | None) -> bool:
    """Tell whether one who comes now is answered."""
    with _asking(at, tls):
        return True


def _takes_connections(at: Listening) -> bool:
    try:
        at.connect().close()
    except OSError:
        return False
    return True


def _in_thread(do: Any) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(do()))
    thread.start()

    def result() -> Any:
        thread.join(10)
        return found[0]

    return result


def _until(is_so: Any) -> None:
    until = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)
