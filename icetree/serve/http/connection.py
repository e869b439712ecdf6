"""A connection with deadlines: uvicorn's own waits for a head, or for a reader, as long as it takes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from http import HTTPStatus
from selectors import EVENT_WRITE, DefaultSelector
from typing import Any, Final, TypeAlias

import h11
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from icetree.serve.http.limits import Limits
from icetree.serve.protocol.refusals import refused
from icetree.serve.protocol.request import JSON, Answer

#: Who sends what is no request is answered so; it is called with the client's address.
Nonsense: TypeAlias = Callable[[str], Answer]

#: How long a client may take to agree that a connection is over.
_FAREWELL_S: Final = 0.5


def nonsense(_: str = "") -> Answer:
    """Return what is answered to what is no request."""
    return refused(400, "BadRequestException", "this is no request by HTTP/1.1")


class Connection(H11Protocol):
    """An HTTP connection that ends when no whole head arrives in time, or no answer is read."""

    #: Set by who makes the class.
    limits: Limits = Limits()
    nonsense: Nonsense = staticmethod(nonsense)
    #: Whether a whole request has ever come, and since when one is waited for; None while one is answered.
    has_asked = False
    waits_since: float | None
    _deadline: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _parting: asyncio.TimerHandle | None = None

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
        if self._parting is not None:
            self._parting.cancel()
        self.resume_writing()
        super().connection_lost(exc)

    @override
    def handle_events(self) -> None:
        super().handle_events()
        if self._is_answering():
            self._forget_deadline()
            if self._has_all():
                self.has_asked, self.waits_since = True, None
        elif self._deadline is None:
            self._await_head()

    @override
    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request; what comes behind a whole one is not heard, and that is answered.

        It is carried out, and who were told of a refusal would take it for refused.
        """
        if self._has_all():
            self.flow.pause_reading()
            return
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._tell(self.nonsense(self.client[0] if self.client else ""))
        if self.cycle is not None:
            self.cycle.disconnected = True
        self.transport.close()
        self._part()

    def _tell(self, answer: Answer) -> None:
        body = answer.body()
        headers = {"content-type": JSON, "content-length": str(len(body)), "connection": "close"}
        head = h11.Response(
            status_code=answer.status,
            headers=[(name.encode(), value.encode()) for name, value in headers.items()],
            reason=HTTPStatus(answer.status).phrase.encode(),
        )
        for event in (head, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event))

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
        """Do not wait long for a client to say goodbye, as TLS would, once it has read what it is told."""
        if self._parting is not None:
            return
        until_s = self.loop.time() + self.limits.answer_s

        def leave() -> None:
            if self._is_unread() and self.loop.time() < until_s:
                self._parting = self.loop.call_later(_FAREWELL_S, leave)
            else:
                self.transport.abort()

        self._parting = self.loop.call_later(_FAREWELL_S, leave)

    def _is_unread(self) -> bool:
        """Tell whether something of an answer is still to be sent.

        What TLS has made of it waits where nobody can ask, but only while the socket takes no more.
        """
        if self.transport.get_write_buffer_size():
            return True
        with DefaultSelector() as selector:
            selector.register(self.transport.get_extra_info("socket"), EVENT_WRITE)
            return not selector.select(0)

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

    def _has_all(self) -> bool:
        """Tell whether a request has come whole that is not answered yet."""
        cycle: RequestResponseCycle | None = self.cycle
        return self._is_answering() and cycle is not None and not cycle.more_body

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
        if not self._is_answering():
            self.transport.close()
            self._part()


def connections(limits: Limits, told: Nonsense = nonsense) -> type[Connection]:
    """Return the class of connections within limits."""
    return type("Connection", (Connection,), {"limits": limits, "nonsense": staticmethod(told)})
