"""What is exported of appends that land together: what the last of them leaves, and no more."""

from __future__ import annotations

import threading
from typing import Any

from icetree.catalog.memory import MemoryCatalog
from icetree.serve.server import Server
from tests.serve.asking import Client
from tests.serve.exporting import Asked, exports, missing
from tests.serve.test_groups import Counting, Slow, sent_at_once, table_of
from tests.serve.test_requirements import lake_on, request, rows


def test_of_those_that_landed_meanwhile_only_the_newest_is_exported() -> None:
    store = Counting()
    lake = lake_on(store, MemoryCatalog("m"))
    table = table_of(lake)
    bodies = [request(table, number, id=1000 + number) for number in range(1, 6)]
    server = Server(lake)
    told: list[Any] = [None] * 5
    others = threading.Event()

    def send(number: int) -> None:
        told[number] = Client(server).post("/v1/namespaces/db/tables/t", bodies[number])

    threads = [threading.Thread(target=send, args=(number,)) for number in range(1, 5)]

    def have_others_land(location: str) -> None:
        """While the first is exported the others land, and wait to be shown the table."""
        if "/snap-1001-" not in location or others.is_set():
            return
        others.set()
        for each in threads:
            each.start()
        lines = server.serving.showing._landed._lines
        for _ in range(3_000):
            if sum(len(line.waiting) for line in [*lines.values()]) == 4:
                return
            threading.Event().wait(0.01)

    store.before_new = have_others_land
    send(0)
    for each in threads:
        each.join(timeout=60)
    assert [each.status for each in told] == [200] * 5
    assert rows(lake) == [0, 1, 2, 3, 4, 5]
    newest = lake.table("db.t").metadata
    assert [each.json["metadata"]["current-snapshot-id"] for each in told] == [
        1001,
        *[newest.current_snapshot_id] * 4,
    ]
    lists = [each for each in store.made if "/export/" in each and each.endswith(".avro")]
    exported = {each.rpartition("/")[2].split("-")[1] for each in lists if "/snap-" in each}
    first = {str(table.metadata.current_snapshot_id)}
    assert exported - first == {"1001", str(newest.current_snapshot_id)}


def test_of_a_group_the_newest_alone_is_exported_until_somebody_looks() -> None:
    """Exports of each would cost what landing together has saved."""
    store, catalog = Asked(), Slow()
    lake = lake_on(store, catalog)
    table = table_of(lake)
    bodies = [request(table, number, id=1000 + number) for number in range(1, 7)]
    server = Server(lake, former_s=60)
    told = sent_at_once(server, catalog, bodies)
    assert [each.status for each in told] == [200] * 6
    server.serving.showing.close()
    newest = lake.table("db.t").metadata.current_snapshot_id
    base = bodies[0]["updates"][0]["snapshot"]["parent-snapshot-id"]
    lists = [each for each in exports(table) if "/snap-" in each]
    there = {int(each.rpartition("/snap-")[2].split("-")[0]) for each in lists}
    assert {base, newest} <= there
    # The first one landed alone.
    assert len(there - {base, newest}) <= 1
    shown = Client(Server(lake, former_s=60)).get("/v1/namespaces/db/tables/t").json["metadata"]
    assert missing(lake, shown) == []
