"""Stock Iceberg Java on Spark, which icetree comes before at each commit, and whose server is killed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typing_extensions import override

from icetree.catalog.base import TableName
from icetree.catalog.memory import MemoryCatalog
from icetree.serve.protocol.request import Answer, Request
from icetree.serve.server import Server
from icetree.store.local import LocalStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import EFFORT
from tests.serve.dying import DyingCatalog, DyingStore, Killed, Steps
from tests.serve.listening import listening
from tests.serve.stock_spark import told

NAME = TableName(("db",), "t")
#: What each verb does is what it does not do in the tests of every statement.
MODES = {"write.delete.mode": "copy-on-write", "write.update.mode": "merge-on-read"}
#: What icetree writes meanwhile is no conflict, but a reason to try again.
TRIES = {
    "write.delete.isolation-level": "snapshot",
    "write.update.isolation-level": "snapshot",
    "commit.retry.num-retries": "4",
}
FEW = {"write.root.max-data-entries": "4", "write.root.max-delete-entries": "2"}
#: Rows of icetree's own have these ids and more.
OURS = 10_000
STATEMENTS = [
    "INSERT INTO db.t SELECT id, CAST(id % 7 AS INT) FROM range(60, 70)",
    "DELETE FROM db.t WHERE id % 10 = 3",
    "UPDATE db.t SET n = n + 100 WHERE id < 20",
    f"SELECT id, n FROM db.t WHERE id < {OURS} ORDER BY id",
]
#: About so many steps of a commit are died at.
TRIED = 2 if EFFORT == 1 else 6 * EFFORT


def expected() -> dict[int, int]:
    """Return the rows of Spark's after the statements."""
    rows = {id: id % 7 for id in range(70) if id % 10 != 3 and id != 5}
    return {id: n + 100 if id < 20 else n for id, n in rows.items()}


def some(*rows: tuple[int, int]) -> pa.Table:
    ids, ns = zip(*rows, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array(ns, pa.int32())})


@dataclass
class Commit:
    """A commit of rows that was made, the table's head before it, and all manifests that there were.

    A client deletes its own as soon as it sees that the table has others.
    """

    request: Request
    before: str
    manifests: dict[Path, bytes]


class Overtaken(Server):
    """Has icetree write to the table just before each commit of rows that is new."""

    def __init__(self, lake: Lake, meanwhile: list[Callable[[Table], Any]]) -> None:
        super().__init__(lake)
        self._lake, self._meanwhile = lake, meanwhile
        self._seen: set[int] = set()
        self.statuses: list[int] = []
        self.made: list[Commit] = []

    @override
    def answer(self, request: Request) -> Answer:
        if b"add-snapshot" not in request.body:
            return super().answer(request)
        if len(self.statuses) % 2 == 0:
            self._meanwhile.pop(0)(self._lake.table(str(NAME)))
        before = self._lake.catalog.load(NAME)
        folder = Path(self._lake.table(str(NAME)).location) / "metadata"
        manifests = {each: each.read_bytes() for each in folder.glob("*.avro")}
        answer = super().answer(request)
        self.statuses.append(answer.status)
        if answer.status == 200:
            self.made.append(Commit(request, before, manifests))
        return answer


@dataclass
class World:
    """A table that Spark and icetree have written to, and what came of it."""

    folder: Path
    catalog: MemoryCatalog = field(default_factory=lambda: MemoryCatalog("m"))
    answers: list[list[list[Any]]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    made: list[Commit] = field(default_factory=list)

    def lake(self, catalog: Any, store: Any = None) -> Lake:
        return Lake(
            catalog=catalog, store=store or LocalStore(), warehouse=str(self.folder / "lake")
        )

    def rows(self, catalog: MemoryCatalog) -> dict[int, int]:
        table = self.lake(catalog).table("db.t")
        assert table.verify(deep=True).findings == ()
        found = table.scan().to_arrow().to_pylist()
        assert len({each["id"] for each in found}) == len(found)
        return {each["id"]: each["n"] for each in found}

    def at(self, head: str) -> MemoryCatalog:
        """Return a catalog in which the table is as it was; files that are left over do no harm."""
        catalog = MemoryCatalog("m")
        catalog.create_namespace(NAME.namespace, {})
        catalog.create(NAME, head)
        return catalog


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("beside"))
    lake = world.lake(world.catalog)
    lake.create_namespace("db")
    table = lake.create_table("db.t", "id long, n int", properties={**MODES, **TRIES, **FEW})
    for start in range(0, 60, 20):
        table.append(some(*((id, id % 7) for id in range(start, start + 20))))
    table.delete("id = 5")
    server = Overtaken(
        lake,
        [
            lambda table: table.append(some((OURS, 0), (OURS + 1, 0))),
            lambda table: table.delete(f"id = {OURS + 1}"),
            lambda table: table.append(some((OURS + 2, 0))),
        ],
    )
    with listening(server) as at:
        world.answers = told(world.folder, f"http://127.0.0.1:{at.port}", STATEMENTS)
    world.statuses, world.made = server.statuses, server.made
    return world


def test_spark_tries_again_where_icetree_was_faster_and_nothing_is_lost(world: World) -> None:
    assert world.statuses == [409, 200] * 3
    assert world.answers[-1] == [[id, n] for id, n in sorted(expected().items())]
    assert world.rows(world.catalog) == {**expected(), OURS: 0, OURS + 2: 0}
    table = world.lake(world.catalog).table("db.t")
    summaries = [each.summary or {} for each in table.history()]
    theirs = [each for each in summaries if each.get("engine-name") == "spark"]
    # The delete wrote files anew, the update did not.
    assert len(theirs) == 3
    assert ["added-dvs" in each for each in theirs].count(True) == 1


@pytest.mark.law
@pytest.mark.parametrize("number", range(3), ids=["insert", "delete", "update"])
def test_what_spark_commits_is_there_once_however_often_a_killed_server_is_sent_it(
    number: int, world: World
) -> None:
    commit = world.made[number]

    def send(catalog: MemoryCatalog, steps: Steps) -> int:
        dying: Any = DyingCatalog(catalog, steps)
        lake = world.lake(dying, DyingStore(LocalStore(), steps))
        server = Server(lake)
        # Former snapshots are exported by a thread beside it, which would take steps, too.
        server.serving.showing.exports.end()
        return server.answer(commit.request).status

    for place, content in commit.manifests.items():
        place.write_bytes(content)
    whole, catalog = Steps(), world.at(commit.before)
    before = world.rows(catalog)
    assert send(catalog, whole) == 200
    after = world.rows(catalog)
    assert after != before
    for die_at in {*range(0, whole.count, 1 + whole.count // TRIED), whole.count - 1}:
        for done in (False, True):
            catalog = world.at(commit.before)
            with pytest.raises(Killed):
                send(catalog, Steps(die_at, after=done))
            assert world.rows(catalog) in (before, after), (die_at, done)
            for _ in range(2):
                assert send(catalog, Steps()) == 200
            assert world.rows(catalog) == after, (die_at, done)
