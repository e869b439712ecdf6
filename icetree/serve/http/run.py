"""A server on a port: uvicorn with our limits, and no log of its own."""

from __future__ import annotations

import signal
import socket
import ssl
from dataclasses import dataclass
from ipaddress import ip_address

import uvicorn

from icetree.errors import InvalidInput, NotFound, Unavailable
from icetree.serve.http.app import App
from icetree.serve.http.connection import connections
from icetree.serve.http.door import Door
from icetree.serve.http.limits import Limits
from icetree.serve.server import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """The server's certificate and key; with an authority, clients need certificates of it."""

    certificate: str
    key: str
    client_authority: str | None = None

    def check(self) -> None:
        """Refuse files that cannot be used, before anybody connects; InvalidInput, NotFound."""
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate, self.key)
            if self.client_authority is not None:
                context.load_verify_locations(self.client_authority)
        except FileNotFoundError:
            names = ", ".join(filter(None, (self.certificate, self.key, self.client_authority)))
            raise NotFound(f"one of these files for TLS is not there: {names}") from None
        except (ssl.SSLError, OSError) as error:
            raise InvalidInput(f"the files for TLS cannot be used: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server listens."""

    host: str = "127.0.0.1"
    #: 0 is any that is free.
    port: int = 8181

    @property
    def is_loopback(self) -> bool:
        """Whether nobody but this machine reaches it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def listen(self) -> socket.socket:
        """Return the socket, open; Unavailable, where another has it."""
        if not 0 <= self.port < 1 << 16:
            raise InvalidInput(f"{self.port} is no port: they go from 0 to {(1 << 16) - 1}")
        try:
            family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
            return socket.create_server((self.host, self.port), family=family, backlog=1024)
        except OSError as error:
            where = f"{self.host}:{self.port}"
            raise Unavailable(f"cannot listen on {where}: {error.strerror or error}") from None


def serving(server: Server, limits: Limits | None = None, tls: Tls | None = None) -> uvicorn.Server:
    """Return what answers on a socket: `run` it, set `should_exit` to have it stop."""
    limits = limits or Limits()
    app = App(server, limits)
    kind = connections(limits, app.nonsense)
    config = uvicorn.Config(
        app,
        http=kind,
        ws="none",
        lifespan="on",
        log_config=None,
        # What clients do wrong is told as all that they do.
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=limits.head_bytes,
        timeout_keep_alive=max(1, int(limits.head_s)),
        timeout_graceful_shutdown=max(1, int(limits.stop_s)),
        ssl_certfile=tls.certificate if tls else None,
        ssl_keyfile=tls.key if tls else None,
        ssl_ca_certs=tls.client_authority if tls else None,
        ssl_cert_reqs=ssl.CERT_REQUIRED if tls and tls.client_authority else ssl.CERT_NONE,
    )
    return Door(config, limits, kind)


def serve(
    server: Server,
    listening: socket.socket,
    limits: Limits | None = None,
    tls: Tls | None = None,
) -> None:
    """Answer until told to stop (SIGINT, SIGTERM); what was begun then is finished first."""
    inner = serving(server, limits, tls)

    def stop(*_: object) -> None:
        # uvicorn ends with the signal by which it was stopped: this process goes on to its own end.
        inner.should_exit = True

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        inner.run(sockets=[listening])
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
