"""From a request to its answer, without a socket: find the route, ask who it is, call, tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from icetree.serve.access.access import Access
from icetree.serve.access.who import ANYONE
from icetree.serve.call import PLAN_PAGE, PLAN_S, SUBMIT_S, Call, Serving
from icetree.serve.protocol.idempotency import Answered
from icetree.serve.protocol.refusals import refusal, refused
from icetree.serve.protocol.request import Answer, Request
from icetree.serve.route import Needs, NotFoundHere, Route, find
from icetree.serve.routes import ENDPOINTS, ROUTES
from icetree.serve.showing.exporting import FORMER_S
from icetree.serve.showing.showing import Showing
from icetree.serve.waiting.groups import PATIENCE_S, Groups
from icetree.serve.waiting.held import Held
from icetree.serve.waiting.submitted import Submitted
from icetree.serve.waiting.workers import Workers
from icetree.surroundings import elapsed_s
from icetree.table.lake import Lake
from icetree.visible import log_of

log = log_of(__name__)

#: What ends the process. All else is answered, also what no exception should be: libraries in other
#: languages raise their panics beside `Exception`.
_STOPS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit)


class Server:
    """Answers requests about the tables of a lake; threads may ask at the same time."""

    def __init__(
        self,
        lake: Lake,
        access: Access | None = None,
        *,
        plans: Held[Any] | None = None,
        plan_page: int = PLAN_PAGE,
        plan_s: float = PLAN_S,
        submit_s: float = SUBMIT_S,
        former_s: float = FORMER_S,
        routes: Sequence[Route] = ROUTES,
    ) -> None:
        #: Places at work, of which requests have one each while they are answered.
        self.workers = Workers()
        self.serving = Serving(
            lake=lake,
            access=access or Access(),
            endpoints=ENDPOINTS,
            plans=Held() if plans is None else plans,
            plan_page=plan_page,
            plan_s=plan_s,
            submit_s=submit_s,
            submitted=Submitted(self.workers),
            groups=Groups(self.workers.waiting, patience=PATIENCE_S),
            showing=Showing(self.workers.waiting, former_s=former_s),
        )
        self._answered = Answered()
        self._routes = routes

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request; never raises."""
        began = elapsed_s()
        told = _Told()
        try:
            answer = self._answer(request, told)
        except _STOPS:
            raise
        except BaseException as error:
            answer = _refusal(request, error, about="namespace")
        if request.method == "HEAD":
            answer = replace(answer, document=None)
        seconds = elapsed_s() - began
        self.serving.watching.tell(request, answer, route=told.route, who=told.who, seconds=seconds)
        return answer

    def tell(self, request: Request, answer: Answer) -> None:
        """Take note of a request that was refused before anybody looked at what it asks for."""
        self.serving.watching.tell(request, answer, route="none", who="", seconds=0.0)

    def close(self) -> None:
        """End what goes on without a request; those that were begun are done by now."""
        self.serving.submitted.close()
        self.serving.showing.close()

    def admits(self, head: Request) -> Route | None:
        """Return the route of a request that has come without its body yet; never raises.

        None where it will be refused whatever the body says: then that need not be read.
        """
        try:
            found = self._admitted(head, _Told())
        except Exception:
            return None
        return None if isinstance(found, Answer) else found[0]

    def _answer(self, request: Request, told: _Told) -> Answer:
        found = self._admitted(request, told)
        if isinstance(found, Answer):
            return found
        route, call = found
        if route.needs is Needs.NOTHING or route.is_question:
            # Where nobody is known a key is anyone's, and would tell one what another was told; and plans
            # that are kept would take the room of what has been changed.
            return _called(route, call)
        return self._answered.once(call.who.name, request, lambda: _called(route, call))

    def _admitted(self, request: Request, told: _Told) -> tuple[Route, Call] | Answer:
        """Return a request's route, and its call by who may make it; Refused, or a refusal."""
        found = find(self._routes, request.method, request.path)
        takes_json = not isinstance(found, NotFoundHere) and found.route.takes_json
        self.serving.access.require_no_page(request, takes_json=takes_json)
        if isinstance(found, NotFoundHere):
            return _nowhere(request, found)
        told.route = found.route.path
        who = ANYONE
        if found.route.needs is not Needs.NOTHING:
            who = self.serving.access.who(request)
            told.who = who.name
        call = Call(serving=self.serving, request=request, named=found.named, who=who)
        _require_granted(found.route, call)
        return found.route, call


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
    except _STOPS:
        raise
    except BaseException as error:
        return _refusal(call.request, error, about=route.about)


def _nowhere(request: Request, found: NotFoundHere) -> Answer:
    if found.methods:
        told = refused(405, "MethodNotAllowedException", f"{request.method} is not asked here")
        return replace(told, headers={"allow": ", ".join(found.methods)})
    return refused(404, "NotFoundException", "there is no such route: /v1/config lists them")


def _refusal(request: Request, error: BaseException, *, about: str) -> Answer:
    answer = refusal(error, about=about)
    if answer.status == 500:
        log.error("%s %s failed", request.method, request.path, exc_info=error)
    return answer
