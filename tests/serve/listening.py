"""A server on a socket in a thread of this process, with whatever limits a test needs."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse

import uvicorn

from icetree.serve.http.limits import Limits
from icetree.serve.http.run import Address, Tls, serving
from icetree.serve.protocol.request import JSON
from icetree.serve.server import Server


@dataclass
class Listening:
    """A server that listens, and its thread."""

    port: int
    inner: uvicorn.Server
    thread: threading.Thread

    def connect(self, tls: ssl.SSLContext | None = None) -> socket.socket:
        found = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        return found if tls is None else tls.wrap_socket(found, server_hostname="localhost")

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> HTTPResponse:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path, body, {"Content-Type": JSON, **headers})
        return connection.getresponse()

    def raw(self, content: bytes) -> bytes:
        """Send bytes, and return all that comes back until the server closes."""
        with self.connect() as connection:
            connection.sendall(content)
            return read_all(connection)

    def stop(self) -> None:
        self.inner.should_exit = True


def read_all(connection: socket.socket) -> bytes:
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


@contextmanager
def listening(
    server: Server, limits: Limits | None = None, tls: Tls | None = None, *, port: int = 0
) -> Iterator[Listening]:
    """Answer until the block ends; without a port on any that is free."""
    on = Address(port=port).listen()
    inner = serving(server, limits, tls)
    thread = threading.Thread(target=inner.run, kwargs={"sockets": [on]}, daemon=True)
    thread.start()
    while not inner.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield Listening(on.getsockname()[1], inner, thread)
    finally:
        inner.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


def trusting(certificate: str) -> ssl.SSLContext:
    """Return what connects to a server with this certificate alone."""
    return ssl.create_default_context(cafile=certificate)
