"""Appends that reach the server at the same time land with one swap."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from typing import Any, TypeVar

from typing_extensions import override

from icetree.catalog.base import Outcome, TableName
from icetree.catalog.memory import MemoryCatalog
from icetree.serve.server import Server
from icetree.serve.waiting.groups import CarryOut, Groups
from icetree.store.memory import MemoryStore
from icetree.table.foreign import commit_foreign, foreign_ahead
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.serve.asking import Client, Told
from tests.serve.test_requirements import REBASE, Body, lake_on, request, rows
from tests.store.wrapped import Request, WrappedStore
from tests.table.changing import ARROW, some
from tests.table.export.stock_client import StockClient
from tests.table.export.test_foreign import new_file

T = TypeVar("T")
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


class Turns:
    """Counts who stands in line or is having its turn: one that is refused alone holds nobody up."""

    def __init__(self, groups: Groups[Any, Any]) -> None:
        self._lines, self._join = groups._lines, groups.join
        self._taken = self._gone = 0
        self._lock = threading.Lock()
        groups.join = self._counted  # type: ignore[method-assign]

    def standing(self) -> int:
        waiting = sum(len(line.waiting) for line in [*self._lines.values()])
        with self._lock:
            return waiting + self._taken - self._gone

    def _counted(self, key: object, what: Any, carry_out: CarryOut[Any, Any]) -> Any:
        def counted(group: Sequence[Any]) -> Sequence[Any]:
            with self._lock:
                self._taken += len(group)
            return carry_out(group)

        try:
            return self._join(key, what, counted)
        finally:
            with self._lock:
                self._gone += 1


def sent_at_once(
    server: Server,
    catalog: Slow,
    bodies: Sequence[Body],
    *,
    is_over: Callable[[], bool] = lambda: False,
    around: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> list[Told]:
    """Send requests: the first that swaps is held up in it until all others wait for it, or all is over."""
    told: list[Any] = [None] * len(bodies)
    turns = Turns(server.serving.groups)

    def send(number: int) -> None:
        # A server that is killed ends its threads.
        with suppress(SystemExit), around():
            told[number] = Client(server).post("/v1/namespaces/db/tables/t", bodies[number])

    catalog.all_there.clear()
    threads = [threading.Thread(target=send, args=(number,)) for number in range(len(bodies))]
    for thread in threads:
        thread.start()
    waits = threading.Event()
    for _ in range(3_000):
        answered = sum(each is not None for each in told)
        if turns.standing() + answered == len(bodies) or is_over():
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


class HeldUp(MemoryCatalog):
    """Holds up the swap of the thread that is named first."""

    def __init__(self) -> None:
        super().__init__("m")
        self.goes_on = threading.Event()
        self.is_held = False

    @override
    def swap(self, table: TableName, *, expected: str, to: str) -> Outcome:
        if threading.current_thread().name == "first":
            self.is_held = True
            assert self.goes_on.wait(timeout=60)
        return super().swap(table, expected=expected, to=to)


def test_who_appends_to_a_table_that_took_the_name_of_another_goes_with_nobody_of_that_one() -> (
    None
):
    catalog = HeldUp()
    lake = lake_on(MemoryStore(), catalog)
    lake.create_namespace("db")
    server, told, threads = Server(lake), dict[str, Told](), list[threading.Thread]()

    def made(*ids: int) -> list[Body]:
        table = lake.create_table("db.t", ARROW, properties=REBASE)
        table.append(some((0, "a")))
        return [request(table, id, id=1000 + id) for id in ids]

    def start(name: str, body: Body, *, waiting: int) -> None:
        """Send in a thread; go on when so many wait for the first."""

        def send() -> None:
            told[name] = Client(server).post("/v1/namespaces/db/tables/t", body)

        threads.append(threading.Thread(target=send, name=name))
        threads[-1].start()
        lines, pause = server.serving.groups._lines, threading.Event()
        for _ in range(3_000):
            if catalog.is_held and sum(len(each.waiting) for each in [*lines.values()]) >= waiting:
                break
            if not threads[-1].is_alive():
                break
            pause.wait(0.01)

    first, second = made(1, 2)
    start("first", first, waiting=0)
    start("second", second, waiting=1)
    catalog.drop(TableName(("db",), "t"))
    [new] = made(3)
    start("new", new, waiting=2)
    catalog.goes_on.set()
    for thread in threads:
        thread.join(timeout=60)
    assert {told["first"].status, told["second"].status} <= {404, 409}
    assert told["new"].status == 200
    assert rows(lake) == [0, 3]


class Counting(WrappedStore):
    """Counts what is read, by name; may have something done before a file is made."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.read_of: Counter[str] = Counter()
        self.made: list[str] = []
        self.before_new: Callable[[str], None] = lambda _: None

    @override
    def _pass(self, request: Request, effect: Callable[[], T]) -> T:
        name = request.location.rpartition("/")[2]
        if request.operation == "read":
            self.read_of[name] += 1
        if request.operation == "write_new":
            self.before_new(request.location)
            self.made.append(request.location)
        return effect()


def table_of(lake: Lake) -> Table:
    lake.create_namespace("db")
    table = lake.create_table("db.t", ARROW, properties=REBASE)
    table.append(some((0, "a")))
    return table


def test_what_a_group_brings_is_read_once_and_what_it_starts_from_too() -> None:
    store, catalog = Counting(), Slow()
    lake = lake_on(store, catalog)
    table = table_of(lake)
    bodies = [request(table, number, id=1000 + number) for number in range(1, 7)]
    store.read_of.clear()
    told = sent_at_once(Server(lake), catalog, bodies)
    assert [each.status for each in told] == [200] * 6
    brought = {name: times for name, times in store.read_of.items() if name.startswith("100")}
    assert brought == {f"100{number}-m0.avro": 1 for number in range(1, 7)}
    lists = {name: times for name, times in store.read_of.items() if name.endswith("-client.avro")}
    assert lists == {f"snap-100{number}-client.avro": 1 for number in range(1, 7)}
    parent = table.metadata.current_snapshot_id
    [base] = {name for name in store.read_of if name.startswith(f"snap-{parent}-")}
    # Once for who appends, and once for the export that follows.
    assert store.read_of[base] <= 2


class Pairs(WrappedStore):
    """Tells of a data file whether it exists once somebody asks for another as well."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.pair: threading.Barrier | None = None

    @override
    def _pass(self, request: Request, effect: Callable[[], T]) -> T:
        if self.pair is not None and request.operation == "exists" and "/data/" in request.location:
            self.pair.wait(timeout=30)
        return effect()


def test_new_files_of_a_group_are_looked_for_side_by_side() -> None:
    store, catalog = Pairs(), Slow()
    lake = lake_on(store, catalog)
    table = table_of(lake)
    bodies = [request(table, number, id=1000 + number) for number in range(1, 5)]
    store.delete([f"{table.location}/{_file_of(lake, bodies[2])}"])
    store.pair = threading.Barrier(2)
    snapshots = [each["updates"][0]["snapshot"] for each in bodies]
    found = foreign_ahead(table, snapshots).looked(table.metadata, table.files)
    store.pair = None
    assert len(found.there) == 3
    # And those that are not there are refused, alone.
    told = sent_at_once(Server(lake), catalog, bodies)
    assert [each.status for each in told] == [200, 200, 400, 200]
    assert rows(lake) == [0, 1, 2, 4]


class Losing(Slow):
    """Has something happen before the second swap."""

    meanwhile: Callable[[], object] | None = None

    @override
    def swap(self, table: TableName, *, expected: str, to: str) -> Outcome:
        if self.swaps == 1 and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return super().swap(table, expected=expected, to=to)


def test_new_files_of_a_group_are_looked_for_again_when_it_is_made_anew() -> None:
    """A client that was told of a conflict by another server deletes them meanwhile."""
    catalog = Losing()
    lake = lake_on(MemoryStore(), catalog)
    table = table_of(lake)
    bodies = [request(table, number, id=1000 + number) for number in range(1, 4)]

    def meanwhile() -> None:
        other = lake_on(lake.store, catalog).table("db.t")
        other.append(some((9, "a")))
        landed = {each.snapshot_id for each in other.history()}
        waiting = (
            each for each in bodies if each["updates"][0]["snapshot"]["snapshot-id"] not in landed
        )
        lake.store.delete([f"{table.location}/{_file_of(lake, next(waiting))}"])

    catalog.swaps, catalog.meanwhile = 0, meanwhile
    told = sent_at_once(Server(lake), catalog, bodies)
    assert sorted(each.status for each in told) == [200, 200, 400]
    assert len(rows(lake)) == 4


def test_what_lies_outside_of_the_table_is_not_looked_for() -> None:
    store, asked = Pairs(), list[str]()
    lake = lake_on(store, MemoryCatalog("m"))
    table = table_of(lake)
    client = StockClient(table, id=1001)
    client.add(replace(new_file(table, 1), location="memory://w/secret/data/1.parquet"))

    class Telling(WrappedStore):
        @override
        def _pass(self, request: Request, effect: Callable[[], T]) -> T:
            asked.append(request.location)
            return effect()

    files = replace(table.files, store=Telling(store))
    seen = Table(catalog=table.catalog, files=files, state=table.state)
    found = foreign_ahead(seen, [client.snapshot()]).looked(seen.metadata, seen.files)
    assert found.there == frozenset()
    assert asked
    assert not any("secret" in each for each in asked)


def _file_of(lake: Lake, body: Body) -> str:
    """Return the data file that a request adds."""
    table = lake.table("db.t")
    found = foreign_ahead(table, [body["updates"][0]["snapshot"]])
    [entries] = found.entries.values()
    [name] = entries["location"].to_pylist()
    return str(name)


def test_one_that_cannot_be_read_is_refused_alone() -> None:
    store, catalog = MemoryStore(), Slow()
    lake = lake_on(store, catalog)
    table = table_of(lake)
    bodies = [request(table, number, id=1000 + number) for number in range(1, 7)]
    for name, content in (("1003-m0.avro", b"Obj no more"), ("snap-1005-client.avro", b"nothing")):
        at = f"{table.location}/metadata/{name}"
        store.delete([at])
        store.write_new(at, content)
    told = sent_at_once(Server(lake), catalog, bodies)
    assert [each.status for each in told] == [200, 200, 400, 200, 400, 200]
    assert rows(lake) == [0, 1, 2, 4, 6]


def test_what_was_read_before_the_columns_changed_is_read_again() -> None:
    lake = lake_on(MemoryStore(), MemoryCatalog("m"))
    table = table_of(lake)
    bodies = [request(table, number, id=1000 + number) for number in (1, 2)]
    snapshots = [each["updates"][0]["snapshot"] for each in bodies]
    ahead = foreign_ahead(table, snapshots)
    assert len(ahead.lists) == len(ahead.entries) == 2
    changed = lake.table("db.t")
    assert ahead.goes_for(changed.metadata)
    with changed.edit_schema() as schema:
        schema.add("note", "string")
    assert not ahead.goes_for(changed.metadata)
    for each in snapshots:
        commit_foreign(changed, each, ahead=ahead)
    assert rows(lake) == [0, 1, 2]
    assert lake.table("db.t").verify(deep=True).is_clean


def test_who_waits_for_others_has_no_place_at_work() -> None:
    """Beside the one that commits there is one place, and all others gather by it."""
    catalog = Slow()
    lake = lake_on(MemoryStore(), catalog)
    table = table_of(lake)
    bodies = [request(table, number, id=1000 + number) for number in range(1, 7)]
    server = Server(lake)
    server.workers.allow(2)
    catalog.swaps = 0
    told = sent_at_once(server, catalog, bodies, around=server.workers.at_work)
    assert [each.status for each in told] == [200] * 6
    assert catalog.swaps == 2
