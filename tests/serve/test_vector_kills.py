"""A server killed at any step of a commit that deletes rows by vectors, which is then sent again.

The commits are a stock client's: manifests of v3, in which new vectors take the place of old ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from icetree.catalog.base import TableName
from icetree.catalog.memory import MemoryCatalog
from icetree.rows.write.deletes import write_data_vectors
from icetree.serve.server import Server
from icetree.spec.entry.entry import Entries, Status, with_columns
from icetree.store.memory import MemoryStore
from icetree.table.table import Table
from tests.effort import EFFORT
from tests.serve.asking import Client
from tests.serve.dying import DyingCatalog, DyingStore, Killed, Steps
from tests.serve.test_requirements import Body, lake_on
from tests.table.changing import ARROW, LEAFY, delete_rows, some
from tests.table.export.stock_client import StockClient
from tests.table.export.test_foreign import new_file

TABLE = TableName(("db",), "t")
#: About so many steps of a run are died at, and all of them where more effort is made.
TRIED = 3 if EFFORT == 1 else 1000
BEFORE = [0, *range(2, 12)]


def _own(client: StockClient, entries: Entries, status: Status) -> Entries:
    """Return entries as the client's own: files that come, or that go."""
    told: dict[str, Any] = {"status": int(status), "snapshot_id": client.id}
    if status is Status.ADDED:
        age = client.sequence_number
        told |= {"sequence_number": age, "file_sequence_number": age}
    return with_columns(
        entries,
        **{
            name: pa.array([value] * entries.num_rows, entries.schema.field(name).type)
            for name, value in told.items()
        },
    )


def _delete(client: StockClient, ids: Iterable[int]) -> None:
    """Delete rows by vectors, which hold what those before them did; these go."""
    table, wanted = client.table, {*ids}
    rows = table.scan(columns=["id", "_file", "_pos"]).to_arrow().to_pylist()
    positions: dict[str, list[int]] = {}
    for row in rows:
        if row["id"] in wanted:
            name = row["_file"].removeprefix(f"{table.location}/")
            positions.setdefault(name, []).append(row["_pos"])
    old = client.files(holds_data=False)
    gone = pa.array([name in positions for name in old["referenced_file"].to_pylist()])
    assert gone.true_count == len(gone)
    client.kept = [each for each in client.kept if each.holds_data]
    client.write(_own(client, old, Status.DELETED))
    new = write_data_vectors(
        positions,
        tasks=table.scan().plan().tasks,
        metadata=table.metadata,
        store=table.files.store,
    )
    client.write(_own(client, new, Status.ADDED))


def delete(client: StockClient) -> str:
    """Of the file that has a vector, and of one that has none."""
    _delete(client, [2, 4])
    return "delete"


def update(client: StockClient) -> str:
    _delete(client, [2, 4])
    client.add(new_file(client.table, 102, 104))
    return "overwrite"


def rewrite(client: StockClient) -> str:
    """Put another file in the place of the one with a vector, which goes with it."""
    old = client.files(holds_data=False)
    (name,) = old["referenced_file"].to_pylist()
    client.rewritten(name)
    client.kept = [each for each in client.kept if each.holds_data]
    client.write(_own(client, old, Status.DELETED))
    client.add(new_file(client.table, 0, 2, value="a"))
    return "replace"


#: What a client does, and the rows that there are then.
KINDS: dict[str, tuple[Callable[[StockClient], str], list[int]]] = {
    "delete": (delete, [0, 3, *range(5, 12)]),
    "update": (update, [0, 3, *range(5, 12), 102, 104]),
    "rewrite": (rewrite, BEFORE),
}


@dataclass(frozen=True)
class World:
    """A table as it was, and a client's commit to it."""

    files: dict[str, bytes]
    head: str
    body: Body

    @staticmethod
    def of(kind: str) -> World:
        store, catalog = MemoryStore(), MemoryCatalog("m")
        lake = lake_on(store, catalog)
        lake.create_namespace("db")
        table = lake.create_table("db.t", ARROW, properties=LEAFY)
        for start in range(0, 12, 3):
            table.append(some(*((start + at, "a") for at in range(3))))
        delete_rows(table, [1])
        client = StockClient(table)
        snapshot = client.snapshot(KINDS[kind][0](client))
        moved = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch"}
        head = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": client.parent}
        return World(
            files={each.location: store.read(each.location) for each in store.list("memory://w")},
            head=catalog.load(TABLE),
            body={
                "requirements": [head],
                "updates": [
                    {"action": "add-snapshot", "snapshot": snapshot},
                    {**moved, "snapshot-id": client.id},
                ],
            },
        )

    def again(self) -> Now:
        """Return the table as it was, for nobody has committed to it yet."""
        store, catalog = MemoryStore(), MemoryCatalog("m")
        for location, content in self.files.items():
            store.write_new(location, content)
        catalog.create_namespace(("db",), {})
        catalog.create(TABLE, self.head)
        return Now(store, catalog, self.body)


@dataclass(frozen=True)
class Now:
    """What outlives a server: files and names."""

    store: MemoryStore
    catalog: MemoryCatalog
    body: Body

    def send(self, steps: Steps | None = None) -> int:
        """Send the commit to a server that is gone at a step."""
        store, catalog = (
            (self.store, self.catalog)
            if steps is None
            else (DyingStore(self.store, steps), DyingCatalog(self.catalog, steps))
        )
        server = Server(lake_on(store, catalog))  # type: ignore[arg-type]
        # Former snapshots are exported by a thread beside it, which would take steps, too.
        server.serving.showing.exports.end()
        return Client(server).post("/v1/namespaces/db/tables/t", self.body).status

    def table(self) -> Table:
        return lake_on(self.store, self.catalog).table("db.t")

    def ids(self) -> list[int]:
        return sorted(self.table().scan(columns=["id"]).to_arrow()["id"].to_pylist())


def _tried(count: int) -> Iterator[tuple[int, bool]]:
    """Yield steps to die at, and whether they are done: the last ones are when it lands, and after."""
    for at in sorted({*range(0, count, 1 + count // TRIED), *range(count - 3, count)}):
        if EFFORT > 1 or at >= count - 3:
            yield from ((at, False), (at, True))
        else:
            yield at, bool(at % 2)


@pytest.mark.law
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_deleted_once_however_often_a_killed_commit_is_sent(kind: str) -> None:
    world, (_, after) = World.of(kind), KINDS[kind]
    whole, now = Steps(), world.again()
    assert now.ids() == BEFORE
    assert now.send(whole) == 200
    assert now.ids() == after
    vectors = {"rewrite": 0}.get(kind, 2)
    assert now.table().inspect.delete_files().num_rows == vectors
    landed = set()
    for die_at, done in _tried(whole.count):
        now = world.again()
        with pytest.raises(Killed):
            now.send(Steps(die_at, after=done))
        is_there = now.table().current_snapshot.snapshot_id == 4711  # type: ignore[union-attr]
        landed.add(is_there)
        assert now.ids() == (after if is_there else BEFORE), (die_at, done)
        if done:
            # Somebody else comes before it is sent again.
            now.table().append(some((99, "a")))
            assert now.send() == (200 if is_there else 409), die_at
            assert now.ids() == sorted([*(after if is_there else BEFORE), 99]), die_at
        else:
            assert [now.send(), now.send()] == [200, 200], die_at
            assert now.ids() == after, die_at
        assert now.table().verify(deep=True).findings == (), (die_at, done)
    assert landed == {False, True}
