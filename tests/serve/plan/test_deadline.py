"""Planning that takes too long is ended, and so is what nobody waits for any more."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from typing_extensions import override

from icetree.catalog.memory import MemoryCatalog
from icetree.serve.http.app import App
from icetree.serve.http.limits import Limits
from icetree.serve.server import Server
from icetree.store.memory import MemoryStore
from icetree.surroundings import within
from icetree.table.lake import Lake
from tests.hasty import Hasty
from tests.serve.asking import Client
from tests.serve.listening import listening
from tests.serve.plan.planning import PLAN, ask
from tests.store.wrapped import Request, WrappedStore
from tests.table.changing import ARROW, some

T = TypeVar("T")
LEAVES = 40
#: Each append becomes a leaf.
IN_LEAVES = {
    "write.root.max-data-entries": "1",
    "write.flush.affinity-min-entries": "1",
    "write.commit.compact-min-leaves": "1000",
}


class SlowStore(WrappedStore):
    """Tells of each leaf before it is read, and counts those that are."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.leaves = 0
        self.before: Callable[[], None] = lambda: None

    @override
    def _pass(self, request: Request, effect: Callable[[], T]) -> T:
        if request.operation == "read" and request.location.endswith("-f0.parquet"):
            self.before()
            self.leaves += 1
        return effect()


def new_lake(store: SlowStore) -> Lake:
    """Return a lake with a table of many leaves, of which nothing is cached."""
    catalog = MemoryCatalog("m")
    lake = Lake(catalog=catalog, store=store, warehouse="memory://w")
    lake.create_namespace("db")
    table = lake.create_table("db.t", ARROW, properties=IN_LEAVES)
    for number in range(LEAVES):
        table.append(some((number, "a")))
    store.leaves = 0
    return Lake(catalog=catalog, store=store, warehouse="memory://w")


def test_a_plan_that_takes_too_long_is_ended_and_the_next_goes_on_from_there() -> None:
    store, hasty = SlowStore(), Hasty()
    lake = new_lake(store)
    store.before = lambda: hasty.wait(7.0)
    client = Client(Server(lake, plan_s=60.0))
    with within(hasty):
        told = ask(client)
        assert told.error == (503, "ServiceUnavailableException")
        assert told.headers["retry-after"] == "1"
        assert "more than 60 s" in told.json["error"]["message"]
        # Nine take 63 seconds; as many as are read side by side were under way by then.
        seen = store.leaves
        assert 9 <= seen <= 9 + 4
        tries = 1
        while told.status == 503:
            told = ask(client)
            tries += 1
            assert tries < 10
    assert len(told.json["file-scan-tasks"]) == LEAVES
    # What was read before it was ended is not read again, but for what was on its way.
    assert store.leaves <= LEAVES + 4 * tries


def test_a_plan_of_leaves_that_are_known_is_ended_too() -> None:
    store, hasty = SlowStore(), Hasty()
    client = Client(Server(new_lake(store), plan_s=60.0))
    with within(hasty):
        assert ask(client).status == 200
        read = store.leaves
        server = Server(client.server.serving.lake, plan_s=0.0)
        assert ask(Client(server)).error == (503, "ServiceUnavailableException")
    assert store.leaves == read


def test_planning_ends_when_its_client_has_gone() -> None:
    store = SlowStore()
    lake = new_lake(store)
    begun, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        assert go_on.wait(timeout=30)

    store.before = hold
    messages = iter([{"type": "http.request", "body": b"{}"}, {"type": "http.disconnect"}])

    async def receive() -> Any:
        message = next(messages)
        if message["type"] == "http.disconnect":
            assert await asyncio.to_thread(begun.wait, 30)
            # Once whoever listens has heard of it.
            asyncio.get_running_loop().call_soon(go_on.set)
        return message

    async def send(message: Any) -> None:
        del message  # nobody is there

    scope = {
        "type": "http", "method": "POST", "scheme": "http", "raw_path": PLAN.encode(),
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    }  # fmt: skip
    asyncio.run(asyncio.wait_for(App(Server(lake))(scope, receive, send), 30))
    assert 0 < store.leaves <= 4


def test_a_client_that_waits_too_long_for_a_plan_is_told_that_nothing_is_in_doubt() -> None:
    store = SlowStore()
    lake = new_lake(store)
    go_on = threading.Event()

    def hold() -> None:
        assert go_on.wait(timeout=30)

    store.before = hold
    with listening(Server(lake), Limits(work_s=0.2)) as at:
        told = at.ask("POST", PLAN, b"{}")
        assert told.status == 503
        assert json.load(told)["error"]["type"] == "ServiceUnavailableException"
        go_on.set()
    # The stop of the server waits for all work: it ended, though there were more leaves.
    assert store.leaves <= 4
