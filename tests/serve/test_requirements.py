"""What a client requires of a table holds when its rows land, or nothing happens at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from icetree.catalog.memory import MemoryCatalog
from icetree.serve.server import Server
from icetree.store.base import Store
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.serve.asking import Client, Told
from tests.store.wrapped import Request, WrappedStore
from tests.table.changing import ARROW, some
from tests.table.export.stock_client import StockClient
from tests.table.export.test_foreign import new_file

T = TypeVar("T")
Body = dict[str, Any]
REBASE = {"commit.rebase-appends": "true"}


def lake_on(store: Store, catalog: MemoryCatalog) -> Lake:
    return Lake(catalog=catalog, store=store, warehouse="memory://w")


def new_lake(**properties: str) -> Lake:
    lake = lake_on(MemoryStore(), MemoryCatalog("m"))
    lake.create_namespace("db")
    lake.create_table("db.t", ARROW, properties=properties)
    return lake


def request(table: Table, *ids: int, id: int = 4711, require: Any = ()) -> Body:
    """Return what a client sends that appends rows to the table as it is now."""
    client = StockClient(table, id=id)
    client.add(new_file(table, *ids))
    head = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": client.parent}
    moved = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": id}
    return {
        "requirements": [head, *require],
        "updates": [{"action": "add-snapshot", "snapshot": client.snapshot()}, moved],
    }


def send(lake: Lake, body: Body, **headers: str) -> Told:
    return Client(Server(lake)).post("/v1/namespaces/db/tables/t", body, **headers)


def rows(lake: Lake) -> list[int]:
    again = lake_on(lake.store, lake.catalog)  # type: ignore[arg-type]
    return sorted(again.table("db.t").scan().to_arrow()["id"].to_pylist())


def forget(table: Table) -> None:
    table.maintenance.expire_snapshots(older_than="2100-01-01T00:00:00Z", retain_last=1)


def test_an_append_lands_only_where_its_client_saw_the_branch() -> None:
    lake = new_lake()
    table = lake.table("db.t")
    table.append(some((1, "a")))
    body = request(table, 2)
    table.append(some((3, "a")))
    assert send(lake, body).error == (409, "CommitFailedException")
    assert rows(lake) == [1, 3]
    assert send(lake, request(lake.table("db.t"), 4, id=4712)).status == 200
    assert rows(lake) == [1, 3, 4]


def first(table: Table) -> Body:
    return request(table, 2)


def second(table: Table) -> Body:
    table.append(some((1, "a")))
    return request(table, 2)


@pytest.mark.parametrize("properties", [{}, REBASE], ids=["strict", "rebase"])
@pytest.mark.parametrize("ask", [first, second])
@pytest.mark.parametrize("later", ["delete", "rewrite", "roll back"])
def test_an_append_that_is_sent_again_after_its_snapshot_expired_changes_nothing(
    ask: Callable[[Table], Body], later: str, properties: dict[str, str]
) -> None:
    lake = new_lake(**properties)
    body = ask(lake.table("db.t"))
    assert send(lake, body).status == 200
    table = lake.table("db.t")
    if later == "delete":
        table.delete("id = 2")
    elif later == "rewrite":
        table.overwrite("id = 2", some((2, "anew")))
    elif table.current_snapshot is not None and table.current_snapshot.parent_snapshot_id:
        table.rollback(table.current_snapshot.parent_snapshot_id)
    else:
        table.delete("id = 2")
    if later != "roll back":
        table.append(some((3, "a")))
    forget(table)
    before = rows(lake)
    assert send(lake, body).status in (400, 409)
    assert rows(lake) == before
    assert lake.table("db.t").verify(deep=True).findings == ()


class Meanwhile(WrappedStore):
    """A store in which something happens just as a file is read that a client wrote."""

    def __init__(self, store: Store, happens: Callable[[], object]) -> None:
        super().__init__(store)
        self._happens: Callable[[], object] | None = happens

    def _pass(self, request: Request, effect: Callable[[], T]) -> T:
        if "-client.avro" in request.location and self._happens is not None:
            happens, self._happens = self._happens, None
            happens()
        return effect()


def _widen(table: Table) -> None:
    with table.edit_schema() as schema:
        schema.add("y", "long")


@pytest.mark.parametrize("properties", [{}, REBASE], ids=["strict", "rebase"])
@pytest.mark.parametrize(
    ("required", "change"),
    [
        ({"type": "assert-current-schema-id", "current-schema-id": 0}, _widen),
        ({"type": "assert-last-assigned-field-id", "last-assigned-field-id": 4}, _widen),
        (
            {"type": "assert-ref-snapshot-id", "ref": "other", "snapshot-id": None},
            lambda table: table.create_branch("other"),
        ),
    ],
)
def test_what_a_client_requires_holds_until_its_rows_land(
    required: Body, change: Callable[[Table], object], properties: dict[str, str]
) -> None:
    lake = new_lake(**properties)
    table = lake.table("db.t")
    table.append(some((1, "a")))
    body = request(table, 2, require=[required])
    racing = Meanwhile(lake.store, lambda: change(lake.table("db.t")))
    assert send(lake_on(racing, lake.catalog), body).error == (409, "CommitFailedException")  # type: ignore[arg-type]
    assert rows(lake) == [1]


def test_a_file_that_is_not_there_is_not_added() -> None:
    lake = new_lake()
    table = lake.table("db.t")
    table.append(some((1, "a")))
    before = {each.location for each in lake.store.list(table.location)}
    body = request(table, 2)
    new = {each.location for each in lake.store.list(table.location)} - before
    lake.store.delete([each for each in new if each.endswith(".parquet")])
    told = send(lake, body)
    assert told.error == (400, "BadRequestException")
    assert "does not exist" in told.json["error"]["message"]
    assert rows(lake) == [1]


# --- where a table asks for it ------------------------------------------------------------------


def test_appends_are_rebased_on_appends_where_the_table_asks_for_it() -> None:
    lake = new_lake(**REBASE)
    table = lake.table("db.t")
    table.append(some((1, "a")))
    body, raced = request(table, 2), request(table, 5, id=4712)
    table.append(some((3, "a")))
    assert send(lake, body).status == 200
    assert rows(lake) == [1, 2, 3]
    racing = Meanwhile(lake.store, lambda: lake.append("db.t", some((4, "a"))))
    assert send(lake_on(racing, lake.catalog), raced).status == 200  # type: ignore[arg-type]
    assert rows(lake) == [1, 2, 3, 4, 5]
    assert lake.table("db.t").verify(deep=True).findings == ()


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.delete("id = 1"),
        lambda table: table.rollback(table.current_snapshot.parent_snapshot_id),
        lambda table: table.overwrite("id = 7", some((7, "b"))),
    ],
    ids=["delete", "roll back", "overwrite"],
)
def test_appends_are_rebased_on_nothing_but_appends(change: Callable[[Table], object]) -> None:
    lake = new_lake(**REBASE)
    table = lake.table("db.t")
    for id in (1, 7):
        table.append(some((id, "a")))
    body = request(table, 2)
    change(table)
    before = rows(lake)
    assert send(lake, body).error == (409, "CommitFailedException")
    assert rows(lake) == before


def test_the_first_append_of_a_table_is_not_rebased() -> None:
    lake = new_lake(**REBASE)
    table = lake.table("db.t")
    body = request(table, 2)
    table.append(some((1, "a")))
    assert send(lake, body).error == (409, "CommitFailedException")
    assert rows(lake) == [1]
