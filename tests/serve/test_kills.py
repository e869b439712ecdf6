"""A server killed at any step of any kind of request: old or new, and the next try is answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from typing_extensions import override

from icetree.catalog.memory import MemoryCatalog
from icetree.serve.protocol.request import Answer, Request
from icetree.serve.route import NotFoundHere, find
from icetree.serve.routes import ROUTES
from icetree.serve.server import Server
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from tests.serve.asking import Client, Told
from tests.serve.dying import DyingCatalog, DyingStore, Killed, Steps

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}  # fmt: skip
WIDER = {**SCHEMA, "fields": [*SCHEMA["fields"], {"id": 9, "name": "n", "required": False, "type": "int"}]}  # type: ignore[misc]  # fmt: skip
HERE = "/v1/namespaces/db"


class World:
    """What outlives a server: files and names."""

    def __init__(self) -> None:
        self.store, self.catalog = MemoryStore(), MemoryCatalog("m")
        client = self.client()
        client.post("/v1/namespaces", {"namespace": ["db"]})
        client.post("/v1/namespaces", {"namespace": ["empty"]})
        for name in ("t", "u"):
            assert client.post(f"{HERE}/tables", {"name": name, "schema": SCHEMA}).status == 200
        assert client.post(f"{HERE}/views", _view("v")).status == 200
        self._left = {kind: self._dropped(client, kind) for kind in ("tables", "views")}

    def _dropped(self, client: Client, kind: str) -> str:
        """Return the metadata file that one leaves behind that was made and dropped."""
        made = _view("left")
        if kind == "tables":
            made = {"name": "left", "schema": SCHEMA, "properties": {"a": "left"}}
        told = client.post(f"{HERE}/{kind}", made)
        assert client.delete(f"{HERE}/{kind}/left").status == 204
        location: str = told.json["metadata-location"]
        return location

    def lake(self) -> Lake:
        return Lake(catalog=self.catalog, store=self.store, warehouse="memory://w")

    def client(self, die_at: int | None = None, *, after: bool = False) -> Client:
        steps = Steps(die_at, after=after)
        catalog: Any = DyingCatalog(self.catalog, steps)
        lake = Lake(catalog=catalog, store=DyingStore(self.store, steps), warehouse="memory://w")
        client = Client(Server(lake))
        client.steps = steps  # type: ignore[attr-defined]
        client.left = getattr(self, "_left", {})  # type: ignore[attr-defined]
        return client

    def view(self) -> dict[str, Any]:
        """Return all that a client can see, having checked every table."""
        lake = self.lake()
        found: dict[str, Any] = {
            name: lake.namespace_properties(name) for name in lake.namespaces()
        }
        for name in lake.tables():
            table = lake.table(name)
            assert table.verify().findings == ()
            found[name] = (table.schema.column_names, dict(table.properties), table.spec)
        for name in lake.views():
            view = lake.view(name)
            found[name] = (view.text, view.schema.column_names, len(view.metadata.version_log))
        return found


def _change(name: str) -> dict[str, Any]:
    return {
        "identifier": {"namespace": ["db"], "name": name},
        "requirements": [{"type": "assert-current-schema-id", "current-schema-id": 0}],
        "updates": [
            {"action": "add-schema", "schema": WIDER},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "set-properties", "updates": {"a": "1"}},
        ],
    }


def _view(name: str, text: str = "SELECT 1 AS id") -> dict[str, Any]:
    version = {
        "version-id": 1, "schema-id": 0, "timestamp-ms": 0, "summary": {},
        "representations": [{"type": "sql", "sql": text, "dialect": "spark"}],
        "default-namespace": [],
    }  # fmt: skip
    return {"name": name, "schema": SCHEMA, "view-version": version, "properties": {}}


REPLACE_VIEW = [
    {"action": "add-view-version", "view-version": _view("v", "SELECT 2 AS id")["view-version"]},
    {"action": "set-current-view-version", "view-version-id": -1},
]


def _staged(client: Client) -> Told:
    staged = client.post(f"{HERE}/tables", {"name": "new", "schema": SCHEMA, "stage-create": True})
    if staged.status != 200:
        return staged
    shown = staged.json["metadata"]
    updates = [
        {"action": "add-schema", "schema": shown["schemas"][0]},
        {"action": "set-location", "location": shown["location"]},
        {"action": "set-properties", "updates": {"a": "1"}},
    ]
    body = {"requirements": [{"type": "assert-create"}], "updates": updates}
    return client.post(f"{HERE}/tables/new", body)


def _register(client: Client, kind: str, path: str, **more: Any) -> Told:
    left = client.left[kind]  # type: ignore[attr-defined]
    return client.post(f"{HERE}/{path}", {"name": "back", "metadata-location": left, **more})


RENAME_VIEW = {"source": {"namespace": ["db"], "name": "v"}, "destination": {"namespace": ["db"], "name": "x"}}  # fmt: skip
RENAME = {"source": {"namespace": ["db"], "name": "t"}, "destination": {"namespace": ["db"], "name": "x"}}  # fmt: skip
#: Each kind of request that changes something, and what a try after the kill may be answered.
KINDS: dict[str, tuple[Callable[[Client], Told], tuple[int, ...]]] = {
    "namespace": (lambda c: c.post("/v1/namespaces", {"namespace": ["n"]}), (200, 409)),
    "properties": (lambda c: c.post(f"{HERE}/properties", {"updates": {"a": "1"}}), (200,)),
    "drop namespace": (lambda c: c.delete("/v1/namespaces/empty"), (204, 404)),
    "create": (lambda c: c.post(f"{HERE}/tables", {"name": "new", "schema": SCHEMA}), (200, 409)),
    "staged": (_staged, (200, 409)),
    "commit": (lambda c: c.post(f"{HERE}/tables/t", _change("t")), (200, 409)),
    "transaction": (
        lambda c: c.post("/v1/transactions/commit", {"table-changes": [_change("t"), _change("u")]}),
        (204, 409),
    ),
    "register": (lambda c: _register(c, "tables", "register"), (200, 409)),
    "register over": (lambda c: _register(c, "tables", "register", name="t", overwrite=True), (200,)),
    "register view": (lambda c: _register(c, "views", "register-view"), (200, 409)),
    "create view": (lambda c: c.post(f"{HERE}/views", _view("new")), (200, 409)),
    "replace view": (lambda c: c.post(f"{HERE}/views/v", {"updates": REPLACE_VIEW}), (200,)),
    "rename view": (lambda c: c.post("/v1/views/rename", RENAME_VIEW), (204, 404)),
    "drop view": (lambda c: c.delete(f"{HERE}/views/v"), (204, 404)),
    "rename": (lambda c: c.post("/v1/tables/rename", RENAME), (204, 404)),
    "drop": (lambda c: c.delete(f"{HERE}/tables/t"), (204, 404)),
    "purge": (lambda c: c.delete(f"{HERE}/tables/t?purgeRequested=true"), (204, 404)),
}  # fmt: skip


#: What is asked by POST and changes nothing that anybody could see afterwards.
CHANGES_NOTHING = {
    "POST /v1/oauth/tokens",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan",
    "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/tasks",
}


class Noting(Server):
    """Takes note of the routes that are asked."""

    def __init__(self, lake: Lake) -> None:
        super().__init__(lake)
        self.asked: set[str] = set()

    @override
    def answer(self, request: Request) -> Answer:
        found = find(ROUTES, request.method, request.path)
        assert not isinstance(found, NotFoundHere)
        self.asked.add(found.route.endpoint)
        return super().answer(request)


def test_every_route_that_changes_something_is_among_the_kinds() -> None:
    asked: set[str] = set()
    for ask, _ in KINDS.values():
        world = World()
        client = world.client()
        client.server = noting = Noting(world.lake())
        ask(client)
        asked |= noting.asked
    changing = {each.endpoint for each in ROUTES if each.method not in ("GET", "HEAD")}
    assert asked | CHANGES_NOTHING == changing
    assert not asked & CHANGES_NOTHING


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_killed_at_any_step_leaves_the_old_or_the_new(kind: str) -> None:
    ask, answers = KINDS[kind]
    whole = World()
    before = whole.view()
    counting = whole.client()
    ask(counting)
    after = whole.view()
    assert after != before
    for die_at in range(counting.steps.count):  # type: ignore[attr-defined]
        for done in (False, True):
            world = World()
            with pytest.raises(Killed):
                ask(world.client(die_at, after=done))
            assert world.view() in (before, after), (kind, die_at, done)
            told = ask(world.client())
            assert told.status in answers, told.body
            assert world.view() == after
