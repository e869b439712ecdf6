"""A change that has landed is never told as if it had not: a client would delete its files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from typing_extensions import override

from icetree.catalog.base import Outcome, Swapped, TableName
from icetree.catalog.memory import MemoryCatalog
from icetree.errors import CorruptTable, InvalidInput, NotFound, Unavailable, Unsupported
from icetree.serve.server import Server
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from tests.serve.asking import Client, Told
from tests.serve.test_requirements import REBASE, Body, forget, lake_on, request, rows, send
from tests.store.wrapped import Request, WrappedStore
from tests.table.changing import ARROW, some

T = TypeVar("T")


class Landing(MemoryCatalog):
    """Has something happen just before the next change lands, or just when it has landed."""

    def __init__(self) -> None:
        super().__init__("m")
        self.then: Callable[[], object] = lambda: None
        self.before: Callable[[], object] = lambda: None

    def _lands(self) -> None:
        before, self.before = self.before, lambda: None
        before()

    def _landed(self) -> None:
        then, self.then = self.then, lambda: None
        then()

    @override
    def swap(self, table: TableName, *, expected: str, to: str) -> Outcome:
        self._lands()
        outcome = super().swap(table, expected=expected, to=to)
        if isinstance(outcome, Swapped):
            self._landed()
        return outcome

    @override
    def swap_all(self, swaps: Any) -> Outcome:
        self._lands()
        outcome = super().swap_all(swaps)
        if isinstance(outcome, Swapped):
            self._landed()
        return outcome

    @override
    def create(self, table: TableName, metadata_location: str) -> None:
        super().create(table, metadata_location)
        self._landed()


class Failing(WrappedStore):
    """Fails at whatever is asked, for as long as there is an error."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.error: Exception | None = None

    @override
    def _pass(self, request: Request, effect: Callable[[], T]) -> T:
        if self.error is not None:
            raise self.error
        return effect()


def new_lake(store: WrappedStore | MemoryStore, **properties: str) -> tuple[Lake, Landing]:
    catalog = Landing()
    lake = lake_on(store, catalog)
    lake.create_namespace("db")
    lake.create_table("db.t", ARROW, properties=properties).append(some((1, "a")))
    return lake, catalog


@pytest.mark.parametrize("properties", [{}, REBASE], ids=["strict", "rebase"])
def test_an_append_is_shown_when_others_came_and_its_own_snapshot_is_gone(
    properties: dict[str, str],
) -> None:
    lake, catalog = new_lake(MemoryStore(), **properties)
    body = request(lake.table("db.t"), 2)

    def others() -> None:
        table = lake_on(lake.store, catalog).table("db.t")
        table.append(some((3, "a")))
        forget(table)

    catalog.then = others
    assert send(lake, body).status == 200
    assert rows(lake) == [1, 2, 3]


def append(lake: Lake) -> Body:
    return request(lake.table("db.t"), 2)


def several(lake: Lake) -> Body:
    body = request(lake.table("db.t"), 2)
    more = {"action": "set-properties", "updates": {"told": "along"}}
    return body | {"updates": [more, *body["updates"]]}


def properties(lake: Lake) -> Body:  # noqa: ARG001
    return {"updates": [{"action": "set-properties", "updates": {"told": "alone"}}]}


@pytest.mark.parametrize("ask", [append, several, properties])
@pytest.mark.parametrize(
    "error",
    [
        NotFound("gone"),
        CorruptTable("file", "broken"),
        Unsupported("cannot be shown"),
        InvalidInput("refused"),
        Unavailable("silent"),
        MemoryError(),
    ],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize("how", [{}, REBASE], ids=["strict", "rebase"])
def test_a_commit_that_landed_and_cannot_be_shown_is_in_doubt_at_the_most(
    ask: Callable[[Lake], Body], error: Exception, how: dict[str, str]
) -> None:
    store = Failing()
    lake, catalog = new_lake(store, **how)
    body = ask(lake)
    seen = lake.table("db.t").state.metadata_location

    def fail() -> None:
        store.error = error

    catalog.then = fail
    told = send(lake, body)
    store.error = None
    # 500 is doubt as well.
    doubt = [(504, "CommitStateUnknownException"), (500, "InternalServerError")]
    assert told.status == 200 or told.error in doubt
    assert lake.table("db.t").state.metadata_location != seen
    again = send(lake, body)
    assert again.status == 200
    assert rows(lake) == ([1] if ask is properties else [1, 2])


@pytest.mark.parametrize("ask", [append, several])
@pytest.mark.parametrize("how", [{}, REBASE], ids=["strict", "rebase"])
def test_a_request_that_lands_while_a_copy_of_it_is_under_way_is_not_told_as_refused(
    ask: Callable[[Lake], Body], how: dict[str, str]
) -> None:
    lake, catalog = new_lake(MemoryStore(), **how)
    body, first = ask(lake), list[Told]()
    catalog.before = lambda: first.append(send(lake, body))
    told = send(lake, body)
    assert [told.status, *(each.status for each in first)] == [200, 200]
    assert rows(lake) == [1, 2]


def test_a_transaction_that_lands_while_a_copy_of_it_is_under_way_is_not_told_as_refused() -> None:
    lake, catalog = new_lake(MemoryStore())
    lake.create_table("db.u", ARROW)
    told = {"action": "set-properties", "updates": {"told": "along"}}
    body = {
        "table-changes": [
            {"identifier": {"namespace": ["db"], "name": "t"}, **append(lake)},
            # Of this one nothing tells whether it was made, but that all were.
            {"identifier": {"namespace": ["db"], "name": "u"}, "updates": [told]},
        ]
    }

    def ask() -> Told:
        return Client(Server(lake)).post("/v1/transactions/commit", body)

    first: list[Told] = []
    catalog.before = lambda: first.append(ask())
    assert [ask().status, *(each.status for each in first)] == [204, 204]
    assert rows(lake) == [1, 2]
    assert ask().status == 204


@pytest.mark.parametrize("how", [{}, REBASE], ids=["strict", "rebase"])
def test_a_refusal_of_what_may_have_been_made_before_is_in_doubt(how: dict[str, str]) -> None:
    store = Failing()
    lake, catalog = new_lake(store, **how)
    body = append(lake)

    def first() -> None:
        assert send(lake, body).status == 200
        store.error = NotFound("gone")

    catalog.before = first
    told = send(lake, body)
    store.error = None
    assert told.error == (504, "CommitStateUnknownException")


@pytest.mark.parametrize("error", [NotFound("gone"), Unavailable("silent")])
def test_a_table_that_was_made_and_cannot_be_shown_is_in_doubt(error: Exception) -> None:
    store = Failing()
    lake, catalog = new_lake(store)

    def fail() -> None:
        store.error = error

    catalog.then = fail
    told = made(lake)
    store.error = None
    assert told.status == 200 or told.error == (504, "CommitStateUnknownException")
    assert made(lake).error == (409, "AlreadyExistsException")


def made(lake: Lake) -> Told:
    column = {"id": 1, "name": "id", "type": "long", "required": False}
    schema = {"type": "struct", "schema-id": 0, "fields": [column]}
    path = "/v1/namespaces/db/tables"
    return Client(Server(lake)).post(path, {"name": "new", "schema": schema})
