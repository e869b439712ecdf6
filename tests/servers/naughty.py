"""Addresses that are no server: they refuse, stay silent, hang up, talk nonsense or repeat."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Answer = Callable[[socket.socket], None]


def _silence(client: socket.socket) -> None:
    """Read whatever comes and say nothing until the other end leaves."""
    while client.recv(65536):
        pass


def _nothing(client: socket.socket) -> None:
    """Hang up at the first word."""
    client.recv(1)


def _nonsense(client: socket.socket) -> None:
    """Answer the first word with bytes of no protocol, then hang up."""
    client.recv(65536)
    client.sendall(b"\x00\xff\x13 what? \n" * 100)


def _tls(client: socket.socket) -> None:
    """Take the first word for the start of TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with suppress(ssl.SSLError), context.wrap_socket(client, server_side=True):
        pass


def _wrong_protocol(client: socket.socket) -> None:
    """Answer as an SSH server does, before anybody spoke."""
    client.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
    _silence(client)


def _echo(client: socket.socket) -> None:
    """Refuse an HTTP request, and repeat all of it: keys, tokens, everything."""
    request = client.recv(65536)
    head = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    client.sendall(head % len(request) + request)


ANSWERS: dict[str, Answer] = {
    "silent": _silence,
    "closes": _nothing,
    "nonsense": _nonsense,
    "tls": _tls,
    "ssh": _wrong_protocol,
}


@contextmanager
def naughty(kind: str) -> Iterator[int]:
    """Listen on a free port of this machine and answer as the kind does; yields the port.

    `refuses` is a port where nobody listens, `echo` one of HTTP alone.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        if kind == "refuses":
            listener.close()
            yield port
            return
        answer = _echo if kind == "echo" else ANSWERS[kind]
        threading.Thread(target=_serve, args=(listener, answer), daemon=True).start()
        yield port
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def _serve(listener: socket.socket, answer: Answer) -> None:
    clients: list[socket.socket] = []
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            clients.append(client)
            threading.Thread(target=_talk, args=(client, answer), daemon=True).start()
    for each in clients:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def _talk(client: socket.socket, answer: Answer) -> None:
    with suppress(OSError), client:
        answer(client)
