"""How much a client may ask of the server, and for how long."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of a server; what is beyond is refused with a status that says so."""

    #: The largest body of a request, in bytes.
    body_bytes: int = 32 << 20
    #: The largest where no large one is due: whoever asks for a token, and what changes nothing.
    small_body_bytes: int = 64 << 10
    #: How many bytes the bodies of all requests may take together.
    bodies_bytes: int = 256 << 20
    #: The largest head of a request: its first line and its headers.
    head_bytes: int = 32 << 10
    #: How long a client may take to agree on TLS, and to send a head; the connection is closed after.
    head_s: float = 10.0
    #: How long a client may take to send a body.
    body_s: float = 30.0
    #: How long a client may take to read an answer.
    answer_s: float = 60.0
    #: How long the work for an answer may take, before the client is told that it goes on.
    work_s: float = 120.0
    #: How many requests are worked on at a time, and how many may wait for that.
    workers: int = 16
    waiting: int = 128
    #: How many connections may be open, and half as many as files at most; then those go first that
    #: wait for their client.
    connections: int = 1_000
    #: How long a stop waits for clients to have their answers; work that was begun is finished even
    #: if that takes longer.
    stop_s: float = 30.0
