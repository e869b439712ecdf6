"""A server on a port: uvicorn with our limits, and no log of its own."""

from __future__ import annotations

import socket
from dataclasses import dataclass

import uvicorn

from icetree.errors import InvalidInput, Unavailable
from icetree.serve.app import App
from icetree.serve.connection import connections
from icetree.serve.limits import Limits
from icetree.serve.server import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server listens."""

    host: str = "127.0.0.1"
    #: 0 is any that is free.
    port: int = 8181

    def listen(self) -> socket.socket:
        """Return the socket, open; Unavailable, where another has it."""
        if not 0 <= self.port < 1 << 16:
            raise InvalidInput(f"{self.port} is no port: they go from 0 to {(1 << 16) - 1}")
        try:
            family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
            return socket.create_server((self.host, self.port), family=family, backlog=1024)
        except OSError as error:
            raise Unavailable(
                f"cannot listen on {self.host}:{self.port}: {error.strerror}"
            ) from None


def serve(server: Server, listening: socket.socket, limits: Limits | None = None) -> None:
    """Answer until told to stop (SIGINT, SIGTERM); what was begun then is finished first."""
    limits = limits or Limits()
    config = uvicorn.Config(
        App(server, limits),
        http=connections(limits),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=limits.connections,
        h11_max_incomplete_event_size=limits.head_bytes,
        timeout_keep_alive=max(1, int(limits.head_s)),
        timeout_graceful_shutdown=max(1, int(limits.stop_s)),
    )
    uvicorn.Server(config).run(sockets=[listening])
