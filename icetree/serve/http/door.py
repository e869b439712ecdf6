"""Connections on their way in: so many at a time, and who says nothing gives way to who comes.

uvicorn counts a connection once TLS is agreed upon, waits a minute for that, and where there are too many
refuses requests of whoever has one. Here each counts from the start and has as long as for a head; where
there is no room, one goes that nothing is done for: first who has never asked. Who is answered stays.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

import uvicorn
from typing_extensions import override
from uvicorn.config import STARTUP_FAILURE

from icetree.serve.http.connection import Connection
from icetree.serve.http.limits import Limits
from icetree.visible import log_of

log = log_of(__name__)

#: How long nobody is let in where this process can open no more files.
_PAUSE_S: Final = 0.2


class Door(uvicorn.Server):
    """Lets in as many connections as limits say; on sockets that listen, which it is run with."""

    def __init__(self, config: uvicorn.Config, limits: Limits, kind: type[Connection]) -> None:
        super().__init__(config)
        self._limits = limits
        self._kind = kind
        self._most = room_for(limits.connections)
        self._arriving: dict[Connection, asyncio.Task[None]] = {}
        self._open: list[asyncio.Task[None]] = []

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            sys.exit(STARTUP_FAILURE)
        self.servers = []
        new = partial(
            self._kind,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        for each in sockets or []:
            each.setblocking(False)
            self._open.append(asyncio.create_task(self._accept(each, new)))
        self.started = True

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for each in (*self._open, *self._arriving.values()):
            each.cancel()
        await super().shutdown(sockets)

    async def _accept(self, listening: socket.socket, new: Callable[[], Connection]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                guest, _ = await loop.sock_accept(listening)
            except OSError as error:
                log.warning("nobody is let in for a moment: %s", error)
                await asyncio.sleep(_PAUSE_S)
                continue
            if self._makes_room():
                connection = new()
                coming = loop.create_task(self._let_in(guest, connection))
                self._arriving[connection] = coming
                coming.add_done_callback(partial(self._arrived, connection))
            else:
                with suppress(OSError):
                    guest.close()
            # Who is in already has its turn, however many come.
            await asyncio.sleep(0)

    async def _let_in(self, guest: socket.socket, connection: Connection) -> None:
        tls = self.config.ssl
        # What goes wrong on the way in is the client's matter.
        with suppress(OSError):
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                guest,
                ssl=tls,
                ssl_handshake_timeout=self._limits.head_s if tls else None,
            )

    def _arrived(self, connection: Connection, _: asyncio.Task[None]) -> None:
        del self._arriving[connection]

    def _makes_room(self) -> bool:
        """Make sure that one more may come in; False where all who are in are being answered."""
        connections: set[Connection] = self.server_state.connections  # type: ignore[assignment]
        if len(self._arriving) + len(connections) < self._most:
            return True
        there = (*self._arriving, *connections)
        waiting = [each for each in there if each.waits_since is not None]
        if not waiting:
            return False
        goes = min(waiting, key=lambda each: (each.has_asked, each.waits_since))
        goes.waits_since = None
        if (coming := self._arriving.get(goes)) is not None:
            coming.cancel()
        else:
            goes.transport.abort()
        return True


def room_for(connections: int) -> int:
    """Return how many connections there may be, of so many: half of all files are for other things.

    As many files as may be are asked for. Without one left, no commit could be carried out.
    """
    try:
        import resource
    except ImportError:  # pragma: no cover - Windows counts no files
        return connections
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return connections
    if files < 2 * connections:
        wanted = 2 * connections if most == resource.RLIM_INFINITY else min(most, 2 * connections)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
            files = wanted
    return min(connections, files // 2)
