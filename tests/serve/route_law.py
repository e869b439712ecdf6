"""What holds of every route, whatever it does: each law tells what is wrong with one.

A route that is new is looked at as those before. Only what it takes, a body that it would carry out, has
to be written down here: without one, that is told.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from typing_extensions import override

from icetree.catalog.memory import MemoryCatalog
from icetree.serve.access.access import Access
from icetree.serve.access.grants import digest_of, grants_in
from icetree.serve.route import Route
from icetree.serve.server import Server
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from tests.serve.asking import Client, Told
from tests.store.wrapped import Request, WrappedStore
from tests.table.changing import ARROW, some

T = TypeVar("T")
Law = Callable[["World", Route], Iterator[str]]

#: What may be asked by anybody, and tells nothing of any table.
OPEN = frozenset(
    {
        "GET /healthz",
        "POST /v1/oauth/tokens",
        "GET /ui",
        "GET /ui/explorer.js",
        "GET /ui/explorer.css",
    }
)
#: Who knows of `treasure`: the chief changes it, the reader reads it, the stranger reads another place.
GRANTS = f"""
clients:
  chief:
    token: {digest_of("chief token")}
    write: "*"
  reader:
    token: {digest_of("reader token")}
    read: treasure
  stranger:
    token: {digest_of("stranger token")}
    read: elsewhere
"""
#: What stands in a path for what a route names.
NAMES = {"namespace": "treasure", "table": "gem", "view": "glint", "plan-id": "0" * 32}
#: Words that nobody is told who may not know of them.
SECRETS = ("treasure", "gem", "glint")
#: Names that lead elsewhere, or that could be read in two ways.
BAD_NAMES = (
    "..", ".", "%2e%2e", "..%2F..%2Fetc", "a%2Fb", "%2Fetc%2Fpasswd", "a%5Cb", "a.b", "a%00", "%0a", "%ff", "%ud800",
    "gem%2F..%2Fgem", "%e2%80%ae", "%1f", "a%1f%1fb",
)  # fmt: skip
#: Places that are not the table's, nor its namespace's.
OUTSIDE = (
    "/etc/passwd", "file:///etc/passwd", "s3://b/k", "memory://other/x/metadata/1.metadata.json", "../../x",
    "memory://w/treasure/../../other/metadata/1.metadata.json", "memory://w2/treasure/gem",
)  # fmt: skip
#: What is no body of any request.
MALFORMED = (
    b"", b"{", b"[]", b"null", b'"x"', b"1", b"\xff\xfe{}", b"{}{}", b"[" * 100_000, b'{"a":' * 50_000, b"name=x&a=b",
    b"{'name': 'x'}", b'{"name": NaN}', b"\x1f\x8b\x08\x00",
)  # fmt: skip
_SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
}
_LONGEST_SENTENCE = 1_500


class Confined(WrappedStore):
    """Takes note of what it is asked for beside the warehouse."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.outside: list[str] = []

    @override
    def _pass(self, request: Request, effect: Callable[[], T]) -> T:
        if not request.location.startswith("memory://w/") or "/../" in request.location:
            self.outside.append(f"{request.operation} {request.location}")
        return effect()


@dataclass
class World:
    """A namespace with a table and a view, one of which most know nothing, and a server."""

    routes: Sequence[Route]
    store: Confined = field(default_factory=Confined)

    def __post_init__(self) -> None:
        catalog = MemoryCatalog("m")
        self.lake = Lake(catalog=catalog, store=self.store, warehouse="memory://w")
        for name in ("treasure", "elsewhere"):
            self.lake.create_namespace(name)
        table = self.lake.create_table("treasure.gem", ARROW)
        table.append(some((1, "a")))
        self.former = table.state.metadata_location
        table.append(some((2, "a")))
        left = self.lake.create_view("treasure.left", "SELECT 2 AS id", "id int", namespace="x")
        self.left = left.state.metadata_location
        self.lake.drop_view("treasure.left")
        self.lake.create_view("treasure.glint", "SELECT 1 AS id", "id int", namespace="x")
        self.server = Server(
            self.lake, Access(grants=grants_in(GRANTS, "grants")), routes=self.routes
        )

    def ask(self, who: str | None, route: Route, path: str, body: bytes = b"") -> Told:
        headers = {} if who is None else {"authorization": f"Bearer {who} token"}
        return Client(self.server, headers).ask(route.method, path, body)

    def state(self) -> Any:
        """Return all that a request could change."""
        lake = self.lake
        spaces = lake.namespaces() + lake.namespaces("treasure")
        return (
            {name: lake.namespace_properties(name) for name in spaces},
            {name: lake.table(name).state.metadata_location for name in lake.tables()},
            {name: lake.view(name).state.metadata_location for name in lake.views()},
        )

    def lives(self) -> bool:
        """Tell whether the next who asks is answered."""
        chief = Client(self.server, {"authorization": "Bearer chief token"})
        return chief.get("/healthz").status == 200 and chief.get("/v1/namespaces").status == 200


def path_of(route: Route, **names: str) -> str:
    """Return a path that a route answers to; a view of the explorer is one of its own."""
    shown = {"view": "history"} if route.path.startswith("/ui") else {}
    path = route.path.replace("/{prefix}", "")
    for name, value in {**NAMES, **shown, **names}.items():
        path = path.replace(f"{{{name}}}", value)
    return path


def _named(route: Route) -> list[str]:
    return [name for name in NAMES if f"{{{name}}}" in route.path]


def body_of(world: World, route: Route) -> Any:
    """Return what a route would carry out for who may; KeyError where nobody wrote that down."""
    if route.method != "POST":
        return None
    named = {"namespace": ["treasure"], "name": "gem"}
    view = {**named, "name": "glint"}
    change = {
        "identifier": named,
        "requirements": [],
        "updates": [{"action": "set-properties", "updates": {"a": "1"}}],
    }
    version = {
        "version-id": 1, "schema-id": 0, "timestamp-ms": 0, "summary": {}, "default-namespace": ["x"],
        "representations": [{"type": "sql", "sql": "SELECT 1 AS id", "dialect": "spark"}],
    }  # fmt: skip
    bodies: dict[str, Any] = {
        "oauth/tokens": {},
        "/namespaces": {"namespace": ["treasure", "new"], "properties": {"a": "1"}},
        "/properties": {"updates": {"a": "1"}, "removals": ["b"]},
        "/tables": {"name": "new", "schema": _SCHEMA, "properties": {"a": "1"}},
        "/register": {"name": "gem", "metadata-location": world.former, "overwrite": True},
        "/tables/{table}": change,
        "/metrics": {"report-type": "scan-report", "snapshot-id": 1, "metrics": {}},
        "/sign": {"region": "us-east-1", "uri": "https://b.s3.amazonaws.com/x", "method": "PUT", "headers": {}},
        "/tables/rename": {"source": named, "destination": {**named, "name": "new"}},
        "/views": {"name": "new", "schema": _SCHEMA, "view-version": version, "properties": {}},
        "/register-view": {"name": "new", "metadata-location": world.left},
        "/views/{view}": {"updates": [{"action": "set-properties", "updates": {"a": "1"}}]},
        "/views/rename": {"source": view, "destination": {**view, "name": "new"}},
        "/transactions/commit": {"table-changes": [change]},
        "/plan": {"select": ["id"], "filter": {"type": "eq", "term": "id", "value": 1}},
        "/tasks": {"plan-task": "x"},
    }  # fmt: skip
    ends = [each for each in bodies if route.path.endswith(each)]
    return bodies[max(ends, key=len)] if ends else bodies[route.endpoint]


def _sent(world: World, route: Route) -> bytes:
    body = body_of(world, route)
    return b"" if body is None else json.dumps(body).encode()


# --- the laws ----------------------------------------------------------------------------------


def nobody_comes_in(world: World, route: Route) -> Iterator[str]:
    """Without a token that is good there is 401, but where all may ask."""
    if route.endpoint in OPEN:
        return
    for who in (None, "no"):
        told = world.ask(who, route, path_of(route), _sent(world, route))
        if told.status != 401:
            yield f"answers {told.status} to who has {who or 'no'} token"


def strangers_learn_nothing(world: World, route: Route) -> Iterator[str]:
    """Who is granted another place is told 403, whether it is there or not, and nothing happens."""
    if route.endpoint in OPEN:
        return
    before = world.state()
    names = ("treasure", "nowhere") if "namespace" in _named(route) else ("treasure",)
    for name in names:
        told = world.ask("stranger", route, path_of(route, namespace=name), _sent(world, route))
        is_asked_of = "namespace" in _named(route) or route.method != "GET"
        if is_asked_of and told.status != 403:
            yield f"answers {told.status} to a stranger who asks of {name}"
        if route.method != "HEAD" and told.status == 403:
            yield from _unclear(told)
        if any(each.encode() in told.body for each in SECRETS if told.status != 403):
            yield "tells a stranger what is there"
    if world.state() != before:
        yield "lets a stranger change something"


def readers_change_nothing(world: World, route: Route) -> Iterator[str]:
    before = world.state()
    told = world.ask("reader", route, path_of(route), _sent(world, route))
    if world.state() != before:
        yield f"lets a reader change something, and answers {told.status}"
    if told.status >= 500:
        yield f"fails for a reader: {told.status}"


def chiefs_are_served(world: World, route: Route) -> Iterator[str]:
    """So that what others are refused is what would be done: the bodies are good ones."""
    told = world.ask("chief", route, path_of(route), _sent(world, route))
    if route.endpoint not in OPEN and told.status in (400, 401, 403, 405, 415, 422, 500):
        yield f"answers {told.status} to who may do all: {told.body!r}"


def nonsense_is_refused_in_a_sentence(world: World, route: Route) -> Iterator[str]:
    before = world.state()
    for body in MALFORMED:
        told = world.ask("chief", route, path_of(route), body)
        if told.status >= 500:
            yield f"answers {told.status} to {body[:20]!r}"
        if route.method != "POST":
            # Nobody looks at a body there.
            break
        if not 400 <= told.status < 500:
            yield f"answers {told.status} to {body[:20]!r}"
        elif route.endpoint in OPEN:
            if not told.json["error_description"]:
                yield "does not say what is wrong"
        else:
            yield from _unclear(told)
    if route.method == "POST" and world.state() != before:
        yield "carries nonsense out"


def no_name_leads_elsewhere(world: World, route: Route) -> Iterator[str]:
    before = world.state()
    for name in _named(route):
        if route.path.startswith("/ui") and name == "view":
            continue
        for bad in BAD_NAMES:
            told = world.ask("chief", route, path_of(route, **{name: bad}), _sent(world, route))
            if not 400 <= told.status < 500:
                yield f"answers {told.status} to {name} {bad!r}"
            elif route.method != "HEAD":
                yield from _unclear(told)
    if world.state() != before:
        yield "carries out what a bad name asks for"
    yield from _asked_outside(world)


def no_place_leads_elsewhere(world: World, route: Route) -> Iterator[str]:
    """Whatever stands for a text in a body, no file is asked for beside the warehouse's."""
    body = body_of(world, route)
    for place in OUTSIDE:
        for changed in _with_each_text(body, place):
            told = world.ask("chief", route, path_of(route), json.dumps(changed).encode())
            if told.status >= 500:
                yield f"answers {told.status} to {changed}"
    yield from _asked_outside(world)


LAWS: tuple[Law, ...] = (
    nobody_comes_in,
    strangers_learn_nothing,
    readers_change_nothing,
    chiefs_are_served,
    nonsense_is_refused_in_a_sentence,
    no_name_leads_elsewhere,
    no_place_leads_elsewhere,
)


def broken(law: Law, route: Route, routes: Sequence[Route]) -> list[str]:
    """Return what is wrong with a route by a law, in a world of its own."""
    world = World(routes)
    try:
        found = [*law(world, route)]
    except KeyError as error:
        return [f"{route.endpoint}: write down in {__name__} what it would carry out ({error})"]
    if not world.lives():
        found.append("leaves a server that answers nobody")
    return [f"{route.endpoint} {each}" for each in found]


def _unclear(told: Told) -> Iterator[str]:
    """Tell what is wrong with the words of a refusal: it has one sentence for people."""
    message = told.json["error"]["message"]
    if not 10 <= len(message) <= _LONGEST_SENTENCE:
        yield f"says too little or too much: {message[:200]!r}"
    if any(each in message for each in ("\n", "Traceback", " object at 0x", "Error(")):
        yield f"says what is for programmers: {message[:200]!r}"


def _asked_outside(world: World) -> Iterator[str]:
    if world.store.outside:
        yield f"asks for files outside: {world.store.outside[:3]}"


def _with_each_text(body: Any, text: str) -> Iterator[Any]:
    """Yield a body with a text in the place of each text in it, one at a time."""
    if isinstance(body, str):
        yield text
    elif isinstance(body, dict):
        for name, value in body.items():
            yield from ({**body, name: each} for each in _with_each_text(value, text))
    elif isinstance(body, list):
        for at, value in enumerate(body):
            for each in _with_each_text(value, text):
                yield [*body[:at], each, *body[at + 1 :]]
