"""The edge: HTTP as ASGI hands it over, read within limits, and answered from a pool of threads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias
from urllib.parse import parse_qsl

from icetree.errors import InvalidInput
from icetree.serve.http.connection import nonsense
from icetree.serve.http.intake import Gone, Intake, Message, Receive
from icetree.serve.http.limits import Limits
from icetree.serve.protocol.refusals import Refused, refusal, refused
from icetree.serve.protocol.request import JSON, Answer, Request
from icetree.serve.route import Needs, Route
from icetree.serve.server import Server
from icetree.store.stopping import Stop
from icetree.surroundings import new_pool
from icetree.visible import log_of

log = log_of(__name__)

Send: TypeAlias = Callable[[Message], Awaitable[None]]

#: Methods that change nothing.
_SAFE: Final = frozenset({"GET", "HEAD"})
#: How many parameters a query may have.
_MOST_PARAMETERS: Final = 100


class App:
    """An ASGI application over a server.

    Each request is worked on in a thread; when all places are taken some wait, and the rest is turned
    away. Work that was begun is finished even when its client is gone, since it may be a commit.
    """

    def __init__(self, server: Server, limits: Limits | None = None) -> None:
        self._server = server
        self._limits = limits or Limits()
        self._workers = server.workers
        self._workers.allow(self._limits.workers)
        # Who waits for another has a thread, but no place at work.
        self._pool: Executor = new_pool(self._limits.workers + self._limits.waiting, "serve")
        self._intake = Intake(self._limits)
        self._taken = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, or follow the server's start and stop."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    def nonsense(self, peer: str) -> Answer:
        """Return what is answered to what is no request by HTTP."""
        answer = nonsense()
        self._server.tell(Request(method="", path="", peer=peer), answer)
        return answer

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        # What was begun is finished: a commit is not left in the midst.
        await asyncio.to_thread(self._pool.shutdown)
        await asyncio.to_thread(self._server.close)
        await send({"type": "lifespan.shutdown.complete"})

    async def _http(self, scope: Message, receive: Receive, send: Send) -> None:
        head = _first_line(scope)
        try:
            head = self._head(scope)
            # Who is refused whatever the body says gets no room for one.
            route = self._server.admits(head)
            body = b""
            if route is not None:
                limits = self._limits
                most = limits.small_body_bytes if route.is_small else limits.body_bytes
                most = min(most, limits.body_bytes)
                body = await self._intake.read(head.headers, receive, most=most)
        except Gone:
            return
        except (Refused, InvalidInput) as error:
            await self._refuse(send, head, error)
            return
        except asyncio.CancelledError:
            stops = Refused(503, "ServiceUnavailableException", "the server stops: try again")
            await self._refuse(send, head, stops)
            return
        request = replace(head, body=body)
        # The body of who is refused is not read, so that nothing is heard of its going either.
        listening = asyncio.ensure_future(_heard(receive, request.stop)) if route else None
        try:
            answer, told = await self._worked(request, tells=_only_tells(head, route))
        finally:
            if listening is not None:
                listening.cancel()
        await self._send(send, answer, told, close=route is None and head.has_body)

    async def _refuse(self, send: Send, head: Request, error: Refused | InvalidInput) -> None:
        """Refuse before the body is read, so that the connection cannot be used again."""
        answer = refusal(error)
        self._server.tell(head, answer)
        await self._send(send, answer, answer.body(), close=True)

    def _head(self, scope: Message) -> Request:
        size = len(scope["raw_path"]) + len(scope["query_string"])
        size += sum(len(name) + len(value) for name, value in scope["headers"])
        if size > self._limits.head_bytes:
            raise Refused(
                431,
                "RequestHeaderFieldsTooLargeException",
                f"the head of a request has {self._limits.head_bytes:,} bytes at most",
            )
        headers = _headers(scope["headers"])
        if headers.keys() >= {"content-length", "transfer-encoding"}:
            # A proxy may go by the other one, and see one request where here are two.
            raise Refused(
                400, "BadRequestException", "a request has one length: leave out the other"
            )
        host = headers.get("host", "")
        return replace(
            _first_line(scope),
            query=_query(scope["query_string"]),
            headers=headers,
            base=f"{scope['scheme']}://{host}" if host else "",
        )

    async def _worked(self, request: Request, *, tells: bool) -> tuple[Answer, bytes]:
        limits = self._limits
        if self._taken >= limits.workers + limits.waiting:
            self._intake.let_go(request.body)
            answer = refused(503, "ServiceUnavailableException", "the server is busy: try again")
            self._server.tell(request, answer)
            return answer, answer.body()
        self._taken += 1
        work = asyncio.get_running_loop().run_in_executor(self._pool, self._work, request)
        work.add_done_callback(partial(self._done, request.body))
        try:
            return await asyncio.wait_for(asyncio.shield(work), limits.work_s)
        except (asyncio.TimeoutError, asyncio.CancelledError):
            # Cancelled is who is not answered in time when the server stops.
            if tells:
                request.stop.now("nobody waits for it any more")
                answer = refused(503, "ServiceUnavailableException", "the answer takes too long")
            else:
                answer = refused(
                    504,
                    "CommitStateUnknownException",
                    "this takes too long, and goes on: look whether it was done before trying again",
                )
            return answer, answer.body()

    def _done(self, body: bytes, work: asyncio.Future[tuple[Answer, bytes]]) -> None:
        self._taken -= 1
        self._intake.let_go(body)
        if not work.cancelled():
            # Seen, whether or not somebody still waits for it.
            work.exception()

    def _work(self, request: Request) -> tuple[Answer, bytes]:
        with self._workers.at_work():
            return self._answered(request)

    def _answered(self, request: Request) -> tuple[Answer, bytes]:
        answer = self._server.answer(request)
        try:
            return answer, answer.body()
        except Exception as error:
            log.exception("%s %s has no answer that can be sent", request.method, request.path)
            told = refusal(error)
            return told, told.body()

    async def _send(self, send: Send, answer: Answer, body: bytes, *, close: bool = False) -> None:
        headers = {"content-length": str(len(body)), **answer.headers}
        if body:
            headers.setdefault("content-type", JSON)
        if close:
            headers["connection"] = "close"
        if answer.status in (204, 304):
            del headers["content-length"]
        encoded = [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()
        ]
        await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
        await send({"type": "http.response.body", "body": body})


def _first_line(scope: Message) -> Request:
    return Request(
        method=scope["method"],
        path=scope["raw_path"].decode("latin-1"),
        peer=scope["client"][0] if scope.get("client") else "",
    )


def _headers(given: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Read headers; one that is there several times is a list, and none of them where one is meant."""
    found: dict[str, list[str]] = {}
    for name, value in given:
        found.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    return {name: ", ".join(values) for name, values in found.items()}


def _only_tells(request: Request, route: Route | None) -> bool:
    """Tell whether a request changes nothing, so that its work can end, and be begun again."""
    return request.method in _SAFE or (route is not None and route.needs is Needs.READ)


async def _heard(receive: Receive, stop: Stop) -> None:
    """Have work end that looks at `stop`, once its client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
    stop.now("its client has gone")


def _query(given: bytes) -> dict[str, str]:
    """Read a query; of a name that is there twice, the last counts."""
    try:
        pairs = parse_qsl(
            given.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MOST_PARAMETERS,
        )
    except (ValueError, UnicodeDecodeError):
        raise InvalidInput("the query cannot be read") from None
    return dict(pairs)
