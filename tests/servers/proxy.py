"""A wire between a client and a server that can be cut, or held up, at a chosen moment."""

from __future__ import annotations

import queue
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

_PATIENCE_S: Final = 60.0
_REQUEST: Final = re.compile(rb"^[A-Z]+ /\S* HTTP/1\.1\r$", re.MULTILINE)


@dataclass
class Hold:
    """Requests that hold all of `words` wait until `go` is set."""

    words: tuple[bytes, ...]
    go: threading.Event = field(default_factory=threading.Event)
    #: The ports of clients that wait.
    held: queue.Queue[int] = field(default_factory=queue.Queue)

    def look_at(self, message: bytes, client: socket.socket) -> None:
        if all(each in message for each in self.words):
            self.held.put(client.getpeername()[1])
            self.go.wait(_PATIENCE_S)


@dataclass
class Wire:
    """Passes bytes on. `cut_request` loses a client's message, `cut_answer` the server's to it.

    Either happens once, at the first message that holds the given bytes, and ends the connection.
    """

    target: tuple[str, int]
    port: int = 0
    cut_request: bytes | None = None
    cut_answer: bytes | None = None
    hold: Hold | None = None
    #: How many requests have passed, of whatever method.
    requests: int = 0
    _open: list[socket.socket] = field(default_factory=list)

    def serve(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(self.target)
                self._open += [client, server]
                threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
                threading.Thread(target=self._answers, args=(server, client), daemon=True).start()

    def close(self) -> None:
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while message := client.recv(65536):
                self.requests += len(_REQUEST.findall(message))
                if self.hold is not None:
                    self.hold.look_at(message, client)
                if self.cut_request is not None and self.cut_request in message:
                    self.cut_request = None
                    _hang_up(client, server)
                    return
                if self.cut_answer is not None and self.cut_answer in message:
                    self.cut_answer = None
                    # The other thread would pass the answer on: the client's side goes first.
                    _hang_up(client)
                server.sendall(message)
        # The server is left to finish what it was asked; it sees the end after that.
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _answers(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while message := server.recv(65536):
                client.sendall(message)
        _hang_up(client)


def _hang_up(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def wire_to(port: int) -> Iterator[Wire]:
    """Listen on a free port and pass everything on to another of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        wire = Wire(target=("127.0.0.1", port), port=listener.getsockname()[1])
        thread = threading.Thread(target=wire.serve, args=(listener,), daemon=True)
        thread.start()
        yield wire
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)
        wire.close()
