"""A route: method, path as the protocol writes it, and the function that answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from icetree.serve.call import Call
from icetree.serve.protocol.names import decoded
from icetree.serve.protocol.request import Answer


class Needs(Enum):
    """What a client must be granted, on the namespace that the path names."""

    #: Not even to say who it is.
    NOTHING = "nothing"
    #: To be known; what names in the body ask for, the function checks.
    A_NAME = "a name"
    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, kw_only=True)
class Route:
    """One line of the table of routes."""

    method: str
    #: From the REST specification, `{prefix}` and all: `/v1/{prefix}/namespaces/{namespace}`.
    path: str
    function: Callable[[Call], Answer]
    needs: Needs

    @property
    def endpoint(self) -> str:
        """The route as `config` tells it to clients."""
        return f"{self.method} {self.path}"

    @property
    def is_small(self) -> bool:
        """Whether no request has a large body: it changes nothing, or comes from anyone."""
        return self.method != "POST" or self.needs is Needs.NOTHING

    @property
    def is_question(self) -> bool:
        """Whether it only asks, however often: a plan, the tasks of one."""
        return self.method == "POST" and self.needs is Needs.READ

    @property
    def takes_json(self) -> bool:
        """Whether a body is JSON; the one that asks for a token is a form."""
        return self.method == "POST" and self.needs is not Needs.NOTHING

    @property
    def about(self) -> str:
        """What is missing when something is not found."""
        if "/views/" in self.path:
            return "view"
        return "namespace" if re.search(r"/namespaces(?!.*\{table\})", self.path) else "table"

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What the path matches, not decoded; a server of one catalog has no prefix."""
        path = re.escape(self.path.replace("/{prefix}", ""))
        return re.compile(re.sub(r"\\\{([a-z]+)(?:\\-)?([a-z]*)\\\}", r"(?P<\1\2>[^/]+)", path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The route of a request, and the parts of the path that it names, decoded."""

    route: Route
    named: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotFoundHere:
    """No route has this path; or those that have take other methods."""

    methods: tuple[str, ...]


def find(routes: Sequence[Route], method: str, path: str) -> Found | NotFoundHere:
    """Return the route of a method and a path that is not decoded yet."""
    others = []
    for route in routes:
        if match := route.pattern.fullmatch(path):
            if route.method == method:
                named = {name: decoded(part) for name, part in match.groupdict().items()}
                return Found(route=route, named=named)
            others.append(route.method)
    return NotFoundHere(methods=tuple(others))
