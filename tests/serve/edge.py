"""What tests of the server's edge share: small limits, a catalog that waits, and clients that ask."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any

from typing_extensions import override

from icetree.catalog.base import Namespace
from icetree.catalog.memory import MemoryCatalog
from icetree.serve.http.limits import Limits
from icetree.serve.http.run import Tls
from icetree.serve.server import Server
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from tests.serve.listening import Listening

SMALL = Limits(body_bytes=10_000, head_bytes=8_000, head_s=0.4, body_s=0.4, answer_s=0.5)
TLS = Path(__file__).parent / "tls"
OURS = Tls(certificate=str(TLS / "localhost.pem"), key=str(TLS / "localhost.key"))
POST = b"POST /v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


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


def server(catalog: MemoryCatalog | None = None) -> Server:
    return Server(Lake(catalog=catalog or MemoryCatalog("m"), store=MemoryStore()))


def create(name: str) -> bytes:
    return json.dumps({"namespace": [name]}).encode()


def is_well(at: Listening) -> bool:
    return at.ask("GET", "/healthz").status == 200


def asked(connection: HTTPConnection) -> int:
    """Ask, and return the answer's status."""
    connection.request("GET", "/healthz")
    answer = connection.getresponse()
    answer.read()
    return answer.status


@contextmanager
def asking(at: Listening, tls: ssl.SSLContext | None) -> Iterator[HTTPConnection]:
    """Connect, ask, and stay."""
    found = HTTPConnection("127.0.0.1", at.port, timeout=10)
    if tls is not None:
        found = HTTPSConnection("localhost", at.port, timeout=10, context=tls)
    try:
        assert asked(found) == 200
        yield found
    finally:
        found.close()


def is_open(at: Listening, tls: ssl.SSLContext | None) -> bool:
    """Tell whether one who comes now is answered."""
    with asking(at, tls):
        return True


def in_thread(do: Any) -> Any:
    """Begin to do something; return what waits for it and returns what it returned."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(do()))
    thread.start()

    def result() -> Any:
        thread.join(10)
        return found[0]

    return result


def until(is_so: Any) -> None:
    """Wait until something is so."""
    give_up = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < give_up
        time.sleep(0.02)
