"""From a request to its answer, without a socket: find the route, ask who it is, call, tell."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

from icetree.serve.access import Access
from icetree.serve.call import PLAN_PAGE, Call, Serving
from icetree.serve.held import Held
from icetree.serve.idempotency import Answered
from icetree.serve.refusals import refusal, refused
from icetree.serve.request import Answer, Request
from icetree.serve.route import Needs, NotFoundHere, Route, find
from icetree.serve.routes import ENDPOINTS, ROUTES
from icetree.serve.who import ANYONE
from icetree.surroundings import elapsed_s
from icetree.table.lake import Lake

log = logging.getLogger(__name__)


class Server:
    """Answers requests about the tables of a lake; threads may ask at the same time."""

    def __init__(
        self,
        lake: Lake,
        access: Access | None = None,
        *,
        plans: Held[Any] | None = None,
        plan_page: int = PLAN_PAGE,
    ) -> None:
        self.serving = Serving(
            lake=lake,
            access=access or Access(),
            endpoints=ENDPOINTS,
            plans=Held() if plans is None else plans,
            plan_page=plan_page,
        )
        self._answered = Answered()

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request; never raises."""
        began = elapsed_s()
        told = _Told()
        try:
            answer = self._answer(request, told)
        except Exception as error:
            answer = _refusal(request, error, about="namespace")
        if request.method == "HEAD":
            answer = replace(answer, document=None)
        seconds = elapsed_s() - began
        self.serving.watching.tell(request, answer, route=told.route, who=told.who, seconds=seconds)
        return answer

    def _answer(self, request: Request, told: _Told) -> Answer:
        found = find(ROUTES, request.method, request.path)
        if isinstance(found, NotFoundHere):
            return _nowhere(request, found)
        told.route = found.route.path
        who = ANYONE
        if found.route.needs is not Needs.NOTHING:
            who = self.serving.access.who(request)
            told.who = who.name
        call = Call(serving=self.serving, request=request, named=found.named, who=who)
        _require_granted(found.route, call)
        return self._answered.once(who.name, request, lambda: _called(found.route, call))


@dataclass(slots=True)
class _Told:
    """What the log is told of a request."""

    route: str = "none"
    who: str = ""


def _require_granted(route: Route, call: Call) -> None:
    match route.needs:
        case Needs.READ:
            call.require_read(call.namespace)
        case Needs.WRITE:
            call.require_write(call.namespace)


def _called(route: Route, call: Call) -> Answer:
    try:
        return route.function(call)
    except Exception as error:
        return _refusal(call.request, error, about=route.about)


def _nowhere(request: Request, found: NotFoundHere) -> Answer:
    if found.methods:
        told = refused(405, "MethodNotAllowedException", f"{request.method} is not asked here")
        return replace(told, headers={"allow": ", ".join(found.methods)})
    return refused(404, "NotFoundException", "there is no such route: /v1/config lists them")


def _refusal(request: Request, error: Exception, *, about: str) -> Answer:
    answer = refusal(error, about=about)
    if answer.status == 500:
        log.error("%s %s failed", request.method, request.path, exc_info=error)
    return answer
