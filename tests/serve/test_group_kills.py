"""A server killed while commits of rows land together, of one table or of two: each is there once, or not yet."""

from __future__ import annotations

from typing import Any

import pytest

from icetree.catalog.memory import MemoryCatalog
from icetree.serve.server import Server
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from tests.effort import EFFORT
from tests.serve.asking import Client
from tests.serve.dying import DyingCatalog, DyingStore, Killed, Steps
from tests.serve.test_groups import Slow, sent_at_once
from tests.serve.test_requirements import REBASE, Body, lake_on, request
from tests.table.changing import ARROW, some


def _ids(lake: Lake, name: str) -> list[int]:
    table = lake.table(name)
    assert table.verify(deep=True).findings == ()
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def _dying(catalog: MemoryCatalog, store: MemoryStore, steps: Steps) -> Server:
    wrapped: Any = DyingCatalog(catalog, steps)
    return Server(lake_on(DyingStore(store, steps), wrapped))


class Pair:
    """Two tables with a row each, and a transaction that appends one to both."""

    def __init__(self) -> None:
        self.catalog, self.store = MemoryCatalog("m"), MemoryStore()
        self.lake = lake_on(self.store, self.catalog)
        self.lake.create_namespace("db")
        self.changes: list[Body] = []
        for at, name in enumerate("tu"):
            table = self.lake.create_table(f"db.{name}", ARROW)
            table.append(some((at, "a")))
            body = request(self.lake.table(f"db.{name}"), 10 + at, id=4711 + at)
            named = {"namespace": ["db"], "name": name}
            self.changes.append({"identifier": named, **body})

    def send(self, steps: Steps) -> int:
        client = Client(_dying(self.catalog, self.store, steps))
        return client.post("/v1/transactions/commit", {"table-changes": self.changes}).status

    def ids(self) -> tuple[list[int], list[int]]:
        fresh = lake_on(self.store, self.catalog)
        return _ids(fresh, "db.t"), _ids(fresh, "db.u")


@pytest.mark.law
def test_a_transaction_with_rows_lands_in_both_tables_or_in_none() -> None:
    whole, pair = Steps(), Pair()
    before, after = ([0], [1]), ([0, 10], [1, 11])
    assert pair.ids() == before
    assert pair.send(whole) == 204
    assert pair.ids() == after
    for die_at in range(0, whole.count, 1 + whole.count // (4 * EFFORT)):
        for done in (False, True):
            pair = Pair()
            with pytest.raises(Killed):
                pair.send(Steps(die_at, after=done))
            assert pair.ids() in (before, after), (die_at, done)
            for _ in range(2):
                assert pair.send(Steps()) in (204, 409), (die_at, done)
            assert pair.ids() == after, (die_at, done)


class Crowd:
    """A table with a row, and appends that reach a server at once."""

    def __init__(self) -> None:
        self.catalog, self.store = Slow(), MemoryStore()
        lake = lake_on(self.store, self.catalog)
        lake.create_namespace("db")
        table = lake.create_table("db.t", ARROW, properties=REBASE)
        table.append(some((0, "a")))
        self.bodies = [request(table, number, id=1000 + number) for number in range(1, 5)]

    def send(self, steps: Steps) -> None:
        server = _dying(self.catalog, self.store, steps)
        sent_at_once(server, self.catalog, self.bodies, is_over=lambda: steps.is_over)

    def ids(self) -> list[int]:
        return _ids(lake_on(self.store, self.catalog), "db.t")


@pytest.mark.law
def test_appends_that_were_to_land_together_are_each_there_once_when_sent_again() -> None:
    whole, crowd = Steps(), Crowd()
    crowd.send(whole)
    assert crowd.ids() == [0, 1, 2, 3, 4]
    seen = set()
    for die_at in range(0, whole.count, 1 + whole.count // (4 * EFFORT)):
        crowd = Crowd()
        crowd.send(Steps(die_at, after=die_at % 2 == 0))
        found = crowd.ids()
        seen.add(len(found))
        assert found[0] == 0
        assert len({*found}) == len(found), die_at
        server = Server(lake_on(crowd.store, crowd.catalog))
        for body in crowd.bodies:
            assert Client(server).post("/v1/namespaces/db/tables/t", body).status == 200
        assert crowd.ids() == [0, 1, 2, 3, 4], die_at
    # Some died with nothing done, and some when the first had landed.
    assert len(seen) > 1
