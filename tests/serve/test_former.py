"""What a load shows has its manifests: of former snapshots, too, at a cost that follows what is new."""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from icetree.catalog.memory import MemoryCatalog
from icetree.codec.legacy.encode_list import read_listed
from icetree.errors import Unavailable
from icetree.serve.server import Server
from icetree.table.export import former
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.serve.asking import Client
from tests.serve.exporting import Asked, exports, missing
from tests.serve.test_requirements import lake_on, request
from tests.store.wrapped import Request
from tests.table.changing import ARROW, LEAFY, now, some

T = TypeVar("T")
PLACE = "/v1/namespaces/db/tables/t"
PYICEBERG = {"user_agent": "PyIceberg/0.12.0"}


@pytest.fixture
def store() -> Asked:
    return Asked()


@pytest.fixture
def lake(store: Asked) -> Lake:
    lake = lake_on(store, MemoryCatalog("m"))
    lake.create_namespace("db")
    return lake


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.create_table("db.t", ARROW, properties=LEAFY)


@pytest.fixture
def client(lake: Lake) -> Client:
    return Client(Server(lake, former_s=60))


def loaded(client: Client, query: str = "", **headers: str) -> dict[str, Any]:
    told = client.get(f"{PLACE}{query}", **headers)
    assert told.status == 200, told.json
    found: dict[str, Any] = told.json["metadata"]
    return found


def grow(table: Table, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        table.append(some((number, "a"), (1000 + number, "b")))


def test_every_snapshot_that_is_shown_has_its_manifests(
    client: Client, lake: Lake, table: Table
) -> None:
    grow(table, 3)
    table.create_tag("early")
    table.create_branch("side")
    table.append(some((50, "s")), branch="side")
    table.append(some((51, "s")), branch="side")
    with table.edit_schema() as schema:
        schema.add("note", "string")
    table.delete("v = 'a'")
    table.maintenance.rewrite_manifests()
    table.append(pa.table({"id": [60], "v": ["x"]}))
    for headers in ({}, PYICEBERG):
        shown = loaded(client, **headers)
        assert len(shown["snapshots"]) == 8
        assert missing(lake, shown) == []


def test_snapshots_of_before_an_upgrade_and_after_it_are_there(
    client: Client, lake: Lake, table: Table
) -> None:
    grow(table, 2)
    lake.downgrade_table("db.t")
    lake.upgrade_table("db.t")
    grow(table.refresh(), 3, start=10)
    assert missing(lake, loaded(client)) == []


def test_a_load_costs_what_is_new_and_nothing_is_asked_twice(
    client: Client, lake: Lake, table: Table, store: Asked
) -> None:
    grow(table, 6)
    loaded(client)
    grow(table, 4, start=10)
    store.counts.clear()
    shown = loaded(client)
    # Of each a list and a manifest of its own; a leaf that is new with it has a twin.
    assert store.counts["write_new export"] <= 4 * 3
    # Whether the list is there; and the lists of two that are, for what they name.
    assert store.counts["exists export"] == 4
    assert store.counts["read export"] <= 3
    assert store.counts["list export"] == 0
    assert missing(lake, shown) == []
    store.counts.clear()
    loaded(client)
    assert {name for name in store.counts if name.endswith("export")} == set()


def test_another_server_sees_at_a_look_what_is_there(
    client: Client, lake: Lake, table: Table, store: Asked
) -> None:
    grow(table, 12)
    loaded(client)
    store.counts.clear()
    loaded(Client(Server(lake, former_s=60)))
    assert store.counts["exists export"] == 1
    assert store.counts["list export"] == 1
    assert store.counts["write_new export"] == 0


def test_twins_are_made_once_for_all_snapshots_that_have_them(
    client: Client, lake: Lake, table: Table, store: Asked
) -> None:
    grow(table, 10)
    shown = loaded(client)
    lists = [each["manifest-list"] for each in shown["snapshots"]]
    named = [m.location for at in lists for m in read_listed(lake.store.read(at), file=at)]
    assert len(named) > 2 * len({*named})
    written = {each for each in exports(table) if each.endswith(".avro")}
    assert written == {*named, *lists}
    assert store.counts["write_new export"] == len(written)


def test_of_long_histories_the_newest_have_manifests(
    client: Client, lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(former, "MOST", 8)
    table.set_properties({"write.metadata.inline-snapshots": "2"})
    grow(table, 1)
    table.create_tag("first")
    grow(table, 29, start=1)
    assert table.metadata.snapshot_pages
    shown = loaded(client)
    assert len(shown["snapshots"]) == 30
    by_age = sorted(shown["snapshots"], key=lambda each: each["sequence-number"])
    old = [each["snapshot-id"] for each in by_age[1:-8]]
    assert sorted(missing(lake, shown)) == sorted(old)


def test_who_asks_for_refs_alone_has_no_others_exported(
    client: Client, lake: Lake, table: Table
) -> None:
    grow(table, 4)
    loaded(client, "?snapshots=refs")
    assert len(missing(lake, loaded(Client(Server(lake, former_s=0)), "?snapshots=refs"))) == 0
    lists = [each for each in exports(table) if each.rpartition("/")[2].count("-") == 2]
    assert len([each for each in lists if "snap-" in each]) == 1


def test_who_commits_is_shown_manifests_of_all_that_came_before(
    client: Client, lake: Lake, table: Table
) -> None:
    grow(table, 3)
    told = client.post(PLACE, request(table, 7))
    assert told.status == 200
    assert len(told.json["metadata"]["snapshots"]) == 4
    assert missing(lake, told.json["metadata"]) == []


def test_a_load_waits_for_so_long_and_the_rest_is_made_without_it(
    lake: Lake, table: Table, store: Asked
) -> None:
    grow(table, 5)
    go_on = Event()

    def stand_still(request: Request) -> None:
        # Heads are exported by who is shown them; the rest is not this thread's.
        if request.operation == "write_new" and now_former(request):
            assert go_on.wait(30)

    head = now(table)

    def now_former(request: Request) -> bool:
        return "/snap-" in request.location and f"/snap-{head}" not in request.location

    store.before = stand_still
    server = Server(lake, former_s=0.05)
    shown = loaded(Client(server))
    assert len(missing(lake, shown)) == 4
    # Nobody waits twice for the same.
    assert len(missing(lake, loaded(Client(server)))) == 4
    go_on.set()
    until_s = time.monotonic() + 30
    while missing(lake, shown) and time.monotonic() < until_s:
        time.sleep(0.01)
    assert missing(lake, shown) == []
    server.close()


def test_a_server_that_stops_ends_what_is_exported_beside_requests(
    lake: Lake, table: Table, store: Asked
) -> None:
    grow(table, 8)
    head, begun, stopped = now(table), Event(), Event()
    server = Server(lake, former_s=0)

    def before(request: Request) -> None:
        own = "/snap-" in request.location and f"/snap-{head}" not in request.location
        if request.operation == "write_new" and own:
            begun.set()
            assert stopped.wait(30)

    store.before = before
    shown = loaded(Client(server))
    assert begun.wait(30)
    server.serving.showing.exports.end()
    stopped.set()
    server.close()
    left = missing(lake, shown)
    assert len(left) >= 6
    # And nothing is begun any more.
    grow(table, 2, start=20)
    assert len(missing(lake, loaded(Client(server)))) == len(left) + 1


def test_what_cannot_be_exported_fails_no_load(
    lake: Lake, table: Table, store: Asked, caplog: pytest.LogCaptureFixture
) -> None:
    grow(table, 3)
    head = now(table)

    def fail(request: Request) -> None:
        own = "/snap-" in request.location and f"/snap-{head}" not in request.location
        if request.operation == "write_new" and own:
            raise Unavailable("the store is full")

    store.before = fail
    client = Client(Server(lake, former_s=60))
    with caplog.at_level(logging.WARNING):
        shown = loaded(client)
    assert len(missing(lake, shown)) == 2
    assert "the store is full" in caplog.text
    store.before = lambda _: None
    assert missing(lake, loaded(client)) == []


def test_exports_stay_with_their_snapshots_and_go_with_them(
    client: Client, lake: Lake, table: Table
) -> None:
    grow(table, 4)
    table.delete("v = 'a'")
    grow(table, 2, start=10)
    shown = loaded(client)
    ids = [each["snapshot-id"] for each in shown["snapshots"]]
    table.maintenance.remove_orphan_files(older_than="2100-01-01", force=True)
    assert missing(lake, shown) == []
    table.maintenance.expire_snapshots(snapshot_ids=ids[1:4])
    assert not [each for each in exports(table) for id in ids[1:4] if f"/snap-{id}" in each]
    left = loaded(client)
    assert len(left["snapshots"]) == len(ids) - 3
    assert missing(lake, left) == []


def test_nothing_is_left_of_a_snapshot_that_expires_while_it_is_exported(
    lake: Lake, table: Table, store: Asked
) -> None:
    """Whichever write it is that the expiry comes before, to its end."""
    grow(table, 6)
    head = now(table)
    going = [each.snapshot_id for each in table.history() if each.snapshot_id != head]
    others = lake.table("db.t")
    writes = 0

    def expire(request: Request) -> None:
        nonlocal writes
        own = "/snap-" in request.location and f"/snap-{head}" not in request.location
        if request.operation == "write_new" and own:
            writes += 1
            if writes == 4:
                others.maintenance.expire_snapshots(snapshot_ids=going)

    store.before = expire
    loaded(Client(Server(lake, former_s=60)))
    assert writes == 4
    store.before = lambda _: None
    assert not [each for each in exports(table) for id in going if f"/snap-{id}" in each]
    named = read_listed(lake.store.read(shown_list(lake)), file="list")
    kept = {each.location for each in named} | {shown_list(lake)}
    assert {each for each in exports(table) if "/snap-" in each} <= kept
    table.refresh().maintenance.remove_orphan_files(older_than="2100-01-01", force=True)
    assert {each for each in exports(table) if each.endswith(".avro")} <= kept


def shown_list(lake: Lake) -> str:
    shown = loaded(Client(Server(lake, former_s=60)))
    [only] = shown["snapshots"]
    found: str = only["manifest-list"]
    return found


def test_a_table_that_is_dropped_meanwhile_is_left_alone(
    lake: Lake, table: Table, store: Asked
) -> None:
    grow(table, 4)
    head = now(table)

    def drop(request: Request) -> None:
        own = "/snap-" in request.location and f"/snap-{head}" not in request.location
        if request.operation == "write_new" and own:
            store.before = lambda _: None
            lake.drop_table("db.t", purge=True)

    store.before = drop
    loaded(Client(Server(lake, former_s=60)))
    assert exports(table) == set()


def test_of_appends_that_land_together_the_last_is_exported_and_others_once_somebody_looks(
    lake: Lake, table: Table, store: Asked
) -> None:
    """Exports of each would cost what landing together has saved."""
    grow(table, 1)
    handles = [lake.table("db.t")]
    for number in (5, 6):
        table.append(some((number, "a")))
        handles.append(lake.table("db.t"))
    server = Server(lake, former_s=60)
    showing = server.serving.showing
    begun, go_on = Event(), Event()

    def stand_still(request: Request) -> None:
        if request.operation == "write_new" and not begun.is_set():
            begun.set()
            assert go_on.wait(30)

    store.before = stand_still
    with ThreadPoolExecutor() as pool:
        shown = [pool.submit(showing.show_landed, handles[0], 3)]
        assert begun.wait(30)
        shown += [pool.submit(showing.show_landed, each, 3) for each in handles[1:]]
        [line] = showing._landed._lines.values()
        while len(line.waiting) < 2:
            time.sleep(0.01)
        go_on.set()
    assert {each.result().metadata_location for each in shown[1:]} == {
        handles[2].state.metadata_location
    }
    newest = loaded(Client(Server(lake, former_s=60)), "?snapshots=refs")["current-snapshot-id"]
    lists = [each for each in exports(table) if each.rpartition("-")[2] != "0.avro"]
    assert sorted(id for id in ids(table) if any(f"/snap-{id}-" in each for each in lists)) == (
        sorted([now(handles[0]), newest])
    )
    assert missing(lake, loaded(Client(server))) == []


def test_who_lands_alone_after_those_that_landed_together_has_no_others_exported(
    lake: Lake, table: Table
) -> None:
    """Else one that comes too late for its group would do what the group was spared."""
    grow(table, 4)
    showing = Server(lake, former_s=60).serving.showing

    def lists() -> int:
        return sum(not each.endswith("-0.avro") and "/snap-" in each for each in exports(table))

    showing.show_landed(table, 3, together=True)
    grow(table, 1, start=10)
    showing.show_landed(table, 3)
    showing.close()
    assert lists() == 2
    grow(table, 1, start=20)
    showing = Server(lake, former_s=60).serving.showing
    showing.show_landed(table, 3)
    assert lists() == 6
    showing.close()


def ids(table: Table) -> list[int]:
    return [each.snapshot_id for each in table.refresh().history()]
