"""Bodies on their way in: read within a time and a size, and all together within a budget."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

from icetree.serve.http.limits import Limits
from icetree.serve.protocol.refusals import Refused

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]


class Gone(Exception):
    """The client went away."""


class Intake:
    """Reads bodies; what it returned counts until it is let go. For one event loop alone."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held_bytes = 0

    async def read(self, headers: Mapping[str, str], receive: Receive, *, most: int) -> bytes:
        """Return a request's body; Refused where it is too large, too slow, or one too many."""
        told = headers.get("content-length", "0")
        if told.isascii() and told.isdigit() and int(told[:20]) > most:
            raise _too_large(most)
        parts: list[bytes] = []
        try:
            await asyncio.wait_for(self._fill(parts, receive, most), self._limits.body_s)
        except BaseException as error:
            self._let_go(sum(map(len, parts)))
            if isinstance(error, asyncio.TimeoutError):
                raise Refused(
                    408, "RequestTimeoutException", "the request took too long to arrive"
                ) from None
            raise
        return b"".join(parts)

    def let_go(self, body: bytes) -> None:
        """Make room for others: a body is not needed any more."""
        self._let_go(len(body))

    async def _fill(self, parts: list[bytes], receive: Receive, most: int) -> None:
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Gone
            part = message.get("body", b"")
            size += len(part)
            if size > most:
                raise _too_large(most)
            if self._held_bytes + len(part) > self._limits.bodies_bytes:
                raise Refused(
                    503, "ServiceUnavailableException", "the server is busy reading: try again"
                )
            parts.append(part)
            self._held_bytes += len(part)
            if not message.get("more_body"):
                return

    def _let_go(self, size: int) -> None:
        self._held_bytes -= size


def _too_large(most: int) -> Refused:
    return Refused(413, "PayloadTooLargeException", f"a request has {most:,} bytes at most here")
