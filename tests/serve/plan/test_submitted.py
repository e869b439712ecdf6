"""Plans that take long go on beside requests: they are asked for by id, cancelled, and forgotten."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyiceberg.catalog.rest.scan_planning import PlanSubmitted

from icetree.serve.access.access import Access
from icetree.serve.access.grants import digest_of, grants_in
from icetree.serve.server import Server
from icetree.serve.waiting.submitted import HOLD_S
from icetree.surroundings import within
from icetree.table.lake import Lake
from tests.hasty import Hasty
from tests.serve.asking import Client, Told
from tests.serve.listening import listening
from tests.serve.plan.planning import PLAN, ask, paths, whole
from tests.serve.plan.test_deadline import LEAVES, SlowStore, new_lake
from tests.table.changing import ARROW

JAVA = {"x-client-version": "Apache Iceberg 1.11.0 (commit 1c0d6e1)"}
PYICEBERG = {"x-client-version": "PyIceberg/0.12.0"}
NO_PLAN = (404, "NoSuchPlanIdException")


class Held:
    """A lake whose leaves are read when somebody says so."""

    def __init__(self, store: SlowStore, lake: Lake) -> None:
        self.store = store
        # Of which nothing is cached.
        self.lake = Lake(catalog=lake.catalog, store=store, warehouse=lake.warehouse)
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.store.leaves, self.store.before = 0, self._hold

    def _hold(self) -> None:
        self.begun.set()
        assert self.go_on.wait(timeout=30)


@pytest.fixture(scope="module")
def made() -> tuple[SlowStore, Lake]:
    """A lake for all, which each opens anew."""
    store = SlowStore()
    lake = new_lake(store)
    lake.create_namespace("other")
    lake.create_table("other.t", ARROW)
    lake.create_table("db.u", ARROW)
    return store, lake


@pytest.fixture
def held(made: tuple[SlowStore, Lake]) -> Iterator[Held]:
    found = Held(*made)
    yield found
    found.go_on.set()


@contextmanager
def server_of(held: Held, **how: Any) -> Iterator[Server]:
    server = Server(held.lake, **{"submit_s": 0.0, **how})
    try:
        yield server
    finally:
        held.go_on.set()
        server.close()


def submitted(client: Client, **body: Any) -> str:
    """Return the id of a plan that takes long."""
    told = ask(client, **body)
    assert told.json.keys() == {"status", "plan-id"}
    return PlanSubmitted.model_validate_json(told.body).plan_id or ""


def look(client: Client, id: str) -> Told:
    return client.get(f"{PLAN}/{id}")


def fetched(client: Client, id: str) -> Any:
    """Return a plan, asked for until it is there."""
    for _ in range(3_000):
        told = look(client, id)
        assert told.status == 200
        if told.json["status"] != "submitted":
            return told.json
        threading.Event().wait(0.01)
    raise AssertionError("the plan does not end")


def test_a_plan_that_takes_long_is_submitted_and_fetched_by_its_id(held: Held) -> None:
    with server_of(held) as server:
        client = Client(server, JAVA)
        id = submitted(client)
        assert look(client, id).json == {"status": "submitted"}
        held.go_on.set()
        told = fetched(client, id)
        assert told["status"] == "completed"
        assert len(told["file-scan-tasks"]) == LEAVES
        # What was planned once is told at once, also to who would wait.
        assert ask(client).json["status"] == "completed"
        assert sorted(paths(whole(client))) == sorted(
            each["data-file"]["file-path"] for each in told["file-scan-tasks"]
        )
        assert client.delete(f"{PLAN}/{id}").status == 204


@pytest.mark.parametrize(
    "headers", [{}, PYICEBERG, {**PYICEBERG, "prefer": "respond-async"}, {"user-agent": "duckdb"}]
)
def test_who_cannot_ask_again_waits_for_its_plan(held: Held, headers: dict[str, str]) -> None:
    held.go_on.set()
    with server_of(held) as server:
        told = ask(Client(server, headers)).json
        assert (told["status"], len(told["file-scan-tasks"])) == ("completed", LEAVES)


def test_any_client_may_say_that_it_can_ask_again(held: Held) -> None:
    with server_of(held) as server:
        assert submitted(Client(server, {"prefer": "wait=5, respond-async"}))


def test_a_plan_that_is_made_in_time_is_told_at_once(held: Held) -> None:
    held.go_on.set()
    with server_of(held, submit_s=60.0) as server:
        assert ask(Client(server, JAVA)).json["status"] == "completed"


def test_a_cancel_ends_the_work(held: Held) -> None:
    with server_of(held) as server:
        client = Client(server, JAVA)
        id = submitted(client)
        assert held.begun.wait(timeout=30)
        assert client.delete(f"{PLAN}/{id}").status == 204
        assert look(client, id).json == {"status": "cancelled"}
        assert client.delete(f"{PLAN}/{id}").status == 204
        held.go_on.set()
    # What was being read is read; of all the others nothing.
    assert held.store.leaves <= 4


def test_two_who_ask_the_same_have_ids_of_their_own_and_end_nobody_elses_work(held: Held) -> None:
    with server_of(held) as server:
        client = Client(server, JAVA)
        mine, other = submitted(client), submitted(client)
        assert mine != other
        assert client.delete(f"{PLAN}/{mine}").status == 204
        held.go_on.set()
        assert fetched(client, other)["status"] == "completed"
        assert look(client, mine).json == {"status": "cancelled"}


def test_a_plan_that_fails_says_why(held: Held) -> None:
    hasty = Hasty()
    with within(hasty), server_of(held, plan_s=60.0) as server:
        client = Client(server, JAVA)
        id = submitted(client)
        assert held.begun.wait(timeout=30)
        hasty.wait(61.0)
        held.go_on.set()
        told = fetched(client, id)
        assert told["status"] == "failed"
        assert told["error"]["code"] == 503
        assert "more than 60 s" in told["error"]["message"]


def test_a_plan_of_an_unforeseen_failure_tells_nothing_of_it(
    held: Held, caplog: pytest.LogCaptureFixture
) -> None:
    with server_of(held) as server:
        client = Client(server, JAVA)

        def fail() -> None:
            held.begun.set()
            assert held.go_on.wait(timeout=30)
            raise TimeoutError("secret")

        held.store.before = fail
        id = submitted(client)
        held.go_on.set()
        told = fetched(client, id)
        assert told["status"] == "failed"
        assert told["error"]["code"] == 500
        assert "secret" not in str(told)
        for _ in range(3_000):
            if "secret" in caplog.text:
                return
            threading.Event().wait(0.01)
        raise AssertionError("nothing is logged")


def test_a_plan_that_nobody_asks_for_ends(held: Held) -> None:
    hasty = Hasty()
    with within(hasty), server_of(held, plan_s=1e9) as server:
        client = Client(server, JAVA)
        id = submitted(client)
        assert held.begun.wait(timeout=30)
        hasty.wait(HOLD_S - 1)
        # Whoever asks for it keeps it alive.
        assert look(client, id).json == {"status": "submitted"}
        hasty.wait(HOLD_S - 1)
        assert look(client, id).json == {"status": "submitted"}
        hasty.wait(HOLD_S + 1)
        held.go_on.set()
        assert look(client, id).error == NO_PLAN
    assert held.store.leaves <= 4


def test_a_server_that_stops_ends_plans_that_nobody_waits_for(held: Held) -> None:
    server = Server(held.lake, submit_s=0.0)
    submitted(Client(server, JAVA))
    assert held.begun.wait(timeout=30)
    [stop] = server.serving.submitted._stops
    closing = threading.Thread(target=server.close)
    closing.start()
    for _ in range(3_000):
        if stop._why is not None:
            break
        threading.Event().wait(0.01)
    held.go_on.set()
    closing.join(timeout=30)
    assert not closing.is_alive()
    assert held.store.leaves <= 4


# --- attacks ---------------------------------------------------------------------------------

GRANTS = f"""
clients:
  one:
    token: {digest_of("one token")}
    read: db
  two:
    token: {digest_of("two token")}
    read: db
  three:
    token: {digest_of("three token")}
    write: other
"""


def client_of(server: Server, name: str) -> Client:
    return Client(server, {**JAVA, "authorization": f"Bearer {name} token"})


def test_an_id_means_nothing_to_others_nor_of_another_table(held: Held) -> None:
    with server_of(held, access=Access(grants=grants_in(GRANTS, "grants"))) as server:
        one = client_of(server, "one")
        id = submitted(one)
        assert len(id) == 32
        for name in ("two", "three"):
            stranger = client_of(server, name)
            for told in (look(stranger, id), stranger.delete(f"{PLAN}/{id}")):
                assert told.status == (404 if name == "two" else 403)
            elsewhere = PLAN.replace("/db/", "/other/")
            for told in (stranger.get(f"{elsewhere}/{id}"), stranger.delete(f"{elsewhere}/{id}")):
                assert told.status == (403 if name == "two" else 404)
        for other in (PLAN.replace("/t/", "/u/"), PLAN.replace("/t/", "/none/")):
            assert one.get(f"{other}/{id}").status == 404
            assert one.delete(f"{other}/{id}").status == 404
        # Nobody has ended it.
        held.go_on.set()
        assert fetched(one, id)["status"] == "completed"


def test_ids_cannot_be_told_from_what_is_asked_nor_from_others(held: Held) -> None:
    with server_of(held) as server:
        client = Client(server, JAVA)
        ids = [submitted(client) for _ in range(3)]
        assert len({*ids}) == 3
        held.go_on.set()
        known = ask(client).json["plan-id"]
        assert known not in ids
        for id in (
            "",
            "x",
            "0" * 32,
            "%00",
            "é",
            "../t",
            f"{ids[0]}0",
            ids[0][:-1],
            ids[0].upper(),
        ):
            told = client.delete(f"{PLAN}/{id}")
            assert told.status == 404 or id.upper() == ids[0].upper() == ids[0]
        assert fetched(client, ids[0])["status"] == "completed"


def test_a_flood_of_plans_goes_on_in_few_and_others_get_their_turn(held: Held) -> None:
    with server_of(held, access=Access(grants=grants_in(GRANTS, "grants"))) as server:
        server.workers.allow(16)
        one, two = client_of(server, "one"), client_of(server, "two")
        ids = [submitted(one, filter=_from(number)) for number in range(4)]
        waiting: list[Told] = []

        def wait_for(number: int) -> None:
            with server.workers.at_work():
                waiting.append(ask(one, filter=_from(number)))

        threads = [threading.Thread(target=wait_for, args=(number,)) for number in range(4, 8)]
        for each in threads:
            each.start()
        # Those of others are not held up by that.
        id = submitted(two)
        assert look(two, id).json == {"status": "submitted"}
        held.go_on.set()
        for each in threads:
            each.join(timeout=30)
        # Whoever has too many waits, as without any of this.
        assert [each.json["status"] for each in waiting] == ["completed"] * 4
        for each in (*ids, id):
            assert fetched(two if each == id else one, each)["status"] == "completed"
        # And then there is room again.
        assert not server.serving.submitted._under_way


def _from(number: int) -> Any:
    return {"type": "gt-eq", "term": "id", "value": number}


def test_a_plan_that_is_asked_for_at_length_is_waited_for(held: Held) -> None:
    """No id is given that would not be known when it is asked for."""
    with server_of(held) as server:
        client, told = Client(server, JAVA), list[Told]()
        long = {"type": "in", "term": "id", "values": [*range(200_000)]}
        asking = threading.Thread(target=lambda: told.append(ask(client, filter=long)))
        asking.start()
        assert held.begun.wait(timeout=30)
        held.go_on.set()
        asking.join(timeout=30)
        assert told[0].json["status"] == "completed"


def test_a_cancelled_plan_has_its_place_until_its_work_has_ended(held: Held) -> None:
    """Else one could begin and cancel without end, and all of it would go on."""
    with server_of(held) as server:
        client = Client(server, JAVA)
        for number in range(4):
            held.begun.clear()
            id = submitted(client, filter=_from(number))
            assert held.begun.wait(timeout=30)
            assert client.delete(f"{PLAN}/{id}").status == 204
        assert server.serving.submitted._under_way.total() == 4
        held.go_on.set()
        for _ in range(3_000):
            if not server.serving.submitted._under_way:
                return
            threading.Event().wait(0.01)
        raise AssertionError("the work goes on")


def test_over_a_socket_a_plan_goes_on_when_its_request_is_answered(held: Held) -> None:
    server = Server(held.lake, submit_s=0.0)
    with listening(server) as at:
        told = at.ask("POST", PLAN, b"{}", **JAVA)
        id = json.load(told)["plan-id"]
        held.go_on.set()
        for _ in range(3_000):
            told = json.load(at.ask("GET", f"{PLAN}/{id}", **JAVA))
            if told["status"] != "submitted":
                break
            threading.Event().wait(0.01)
        assert told["status"] == "completed"
        assert len(told["file-scan-tasks"]) == LEAVES
