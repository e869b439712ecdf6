"""A connection with deadlines: uvicorn's own waits for a head, or for a reader, as long as it takes."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Final

from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from icetree.serve.http.limits import Limits

#: How long a client may take to agree that a connection is over.
_FAREWELL_S: Final = 0.5


class Connection(H11Protocol):
    """An HTTP connection that ends when no whole head arrives in time, or no answer is read."""

    #: Set by who makes the class.
    limits: Limits = Limits()
    #: Whether a request has ever come, and since when one is waited for; None while one is answered.
    has_asked = False
    waits_since: float | None
    _deadline: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    @override
    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        # TLS comes before there is a connection.
        self.waits_since = self.loop.time()

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # A head and a body are two writes: the second would wait for the client to own to the first.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._await_head()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        self.resume_writing()
        super().connection_lost(exc)

    @override
    def handle_events(self) -> None:
        super().handle_events()
        if self._is_answering():
            self.has_asked, self.waits_since = True, None
            self._forget_deadline()
        elif self._deadline is None:
            self._await_head()

    @override
    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._part()
        elif not self._is_answering():
            self._await_head()

    @override
    def shutdown(self) -> None:
        super().shutdown()
        if not self._is_answering():
            self._part()

    def _part(self) -> None:
        """Do not wait long for a client to say goodbye, as TLS would."""
        self.loop.call_later(_FAREWELL_S, self.transport.abort)

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(self.limits.answer_s, self.transport.abort)

    @override
    def resume_writing(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        super().resume_writing()

    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _await_head(self) -> None:
        self._forget_deadline()
        self.waits_since = self.loop.time()
        self._deadline = self.loop.call_later(self.limits.head_s, self._close)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close(self) -> None:
        self._deadline = None
        if not self.transport.is_closing() and not self._is_answering():
            self.transport.close()
            if not self.has_asked:
                self._part()


def connections(limits: Limits) -> type[Connection]:
    """Return the class of connections within limits."""
    return type("Connection", (Connection,), {"limits": limits})
