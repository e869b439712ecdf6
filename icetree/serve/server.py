"""From a request to its answer, without a socket: find the route, ask who it is, call, tell."""

from __future__ import annotations

import logging
from dataclasses import replace

from icetree.serve.call import Call, Serving
from icetree.serve.idempotency import Answered
from icetree.serve.refusals import refusal, refused
from icetree.serve.request import Answer, Request
from icetree.serve.route import NotFoundHere, Route, find
from icetree.serve.routes import ENDPOINTS, ROUTES
from icetree.table.lake import Lake

log = logging.getLogger(__name__)


class Server:
    """Answers requests about the tables of a lake; threads may ask at the same time."""

    def __init__(self, lake: Lake) -> None:
        self.serving = Serving(lake=lake, endpoints=ENDPOINTS)
        self._answered = Answered()

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request; never raises."""
        try:
            answer = self._answer(request)
        except Exception as error:
            answer = _told(request, error, about="namespace")
        return replace(answer, document=None) if request.method == "HEAD" else answer

    def _answer(self, request: Request) -> Answer:
        found = find(ROUTES, request.method, request.path)
        if isinstance(found, NotFoundHere):
            return _nowhere(request, found)
        call = Call(serving=self.serving, request=request, named=found.named)
        return self._answered.once("", request, lambda: _called(found.route, call))


def _called(route: Route, call: Call) -> Answer:
    try:
        return route.function(call)
    except Exception as error:
        return _told(call.request, error, about=route.about)


def _nowhere(request: Request, found: NotFoundHere) -> Answer:
    if found.methods:
        told = refused(405, "MethodNotAllowedException", f"{request.method} is not asked here")
        return replace(told, headers={"allow": ", ".join(found.methods)})
    return refused(404, "NotFoundException", "there is no such route: /v1/config lists them")


def _told(request: Request, error: Exception, *, about: str) -> Answer:
    answer = refusal(error, about=about)
    if answer.status == 500:
        log.error("%s %s failed", request.method, request.path, exc_info=error)
    return answer
