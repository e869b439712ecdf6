"""Appends that reach the server at the same time land with one swap."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from typing_extensions import override

from icetree.catalog.base import Outcome, TableName
from icetree.catalog.memory import MemoryCatalog
from icetree.serve.groups import Groups
from icetree.serve.server import Server
from icetree.store.memory import MemoryStore
from tests.serve.asking import Client, Told
from tests.serve.test_requirements import REBASE, Body, lake_on, request, rows
from tests.table.changing import ARROW, some

NAME = ("db", "t")


class Slow(MemoryCatalog):
    """Lets nobody's swap happen before so many requests are there."""

    def __init__(self) -> None:
        super().__init__("m")
        self.all_there = threading.Event()
        self.all_there.set()
        self.swaps = 0

    @override
    def swap(self, table: TableName, *, expected: str, to: str) -> Outcome:
        assert self.all_there.wait(timeout=30)
        self.swaps += 1
        return super().swap(table, expected=expected, to=to)


def sent_at_once(
    server: Server,
    catalog: Slow,
    bodies: Sequence[Body],
    *,
    is_over: Callable[[], bool] = lambda: False,
) -> list[Told]:
    """Send requests: the first is held up in its swap until all others wait for it, or all is over."""
    told: list[Any] = [None] * len(bodies)

    def send(number: int) -> None:
        # A server that is killed ends its threads.
        with suppress(SystemExit):
            told[number] = Client(server).post("/v1/namespaces/db/tables/t", bodies[number])

    catalog.all_there.clear()
    threads = [threading.Thread(target=send, args=(number,)) for number in range(len(bodies))]
    for thread in threads:
        thread.start()
    lines = server.serving.groups._lines
    waits = threading.Event()
    for _ in range(3_000):
        waiting = sum(len(line.waiting) for line in [*lines.values()])
        if waiting == len(bodies) - 1 or is_over():
            break
        waits.wait(0.01)
    catalog.all_there.set()
    for thread in threads:
        thread.join(timeout=60)
    return told


def test_appends_that_wait_for_each_other_land_with_one_swap() -> None:
    catalog = Slow()
    lake = lake_on(MemoryStore(), catalog)
    lake.create_namespace("db")
    table = lake.create_table("db.t", ARROW, properties=REBASE)
    table.append(some((0, "a")))
    bodies = [request(table, number, id=1000 + number) for number in range(1, 7)]
    # One of them is sent twice, and one requires what does not hold.
    other = {"type": "assert-current-schema-id", "current-schema-id": 7}
    bad = request(table, 99, id=1099, require=[other])
    catalog.swaps = 0
    told = sent_at_once(Server(lake), catalog, [*bodies, bodies[0], bad])
    assert [each.status for each in told] == [200] * 7 + [409]
    assert catalog.swaps == 2
    assert rows(lake) == [*range(7)]
    known = {each.snapshot_id for each in lake.table("db.t").history()}
    assert known >= {1000 + number for number in range(1, 7)}
    for each in told[:7]:
        assert each.json["metadata"]["current-snapshot-id"] in known
    assert lake.table("db.t").verify(deep=True).is_clean


def test_whoever_has_its_turn_does_what_all_that_wait_have_asked_for() -> None:
    groups: Groups[int, int] = Groups()
    begun, go_on = threading.Event(), threading.Event()
    done: list[list[int]] = []

    def carry_out(what: Sequence[int]) -> list[BaseException | int]:
        begun.set()
        assert go_on.wait(timeout=30)
        done.append(sorted(what))
        return [ValueError("odd") if each % 2 else each for each in what]

    wrong: list[int] = []

    def join(number: int) -> None:
        try:
            groups.join("key", number, carry_out)
        except ValueError:
            wrong.append(number)

    threads = [threading.Thread(target=join, args=(number,)) for number in range(6)]
    threads[0].start()
    assert begun.wait(timeout=30)
    for thread in threads[1:]:
        thread.start()
    line = groups._lines["key"]
    for _ in range(3_000):
        if len(line.waiting) == 5:
            break
        threading.Event().wait(0.01)
    del line
    go_on.set()
    for thread in threads:
        thread.join(timeout=30)
    assert done == [[0], [1, 2, 3, 4, 5]]
    assert sorted(wrong) == [1, 3, 5]
    gc.collect()
    assert not groups._lines


def test_what_befalls_the_group_befalls_each() -> None:
    groups: Groups[int, int] = Groups()

    def fail(_: Sequence[int]) -> list[BaseException | int]:
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        groups.join("key", 1, fail)
    assert groups.join("key", 1, lambda what: [each + 1 for each in what]) == 2
