"""A server killed at any step of a stock client's commit of rows, which is then sent again."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import StaticTable
from typing_extensions import override

from icetree.catalog.base import TableName
from icetree.catalog.memory import MemoryCatalog
from icetree.serve.protocol.request import Answer, Request
from icetree.serve.server import Server
from icetree.store.local import LocalStore
from icetree.table.lake import Lake
from tests.effort import EFFORT
from tests.serve.asking import Client
from tests.serve.dying import DyingCatalog, DyingStore, Killed, Steps
from tests.serve.listening import listening

TABLE = TableName(("db",), "t")
#: About so many steps of a run are died at.
TRIED = 3 if EFFORT == 1 else 6 * EFFORT


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


KINDS: dict[str, tuple[Callable[[Any], None], list[int]]] = {
    "append": (lambda table: table.append(rows(7, 8)), [1, 2, 3, 4, 7, 8]),
    "delete": (lambda table: table.delete("id = 2"), [1, 3, 4]),
    "overwrite": (lambda table: table.overwrite(rows(9)), [9]),
}


class Listener(Server):
    """A server that keeps the commits of rows it is asked for."""

    def __init__(self, lake: Lake) -> None:
        super().__init__(lake)
        self.commits: list[Request] = []

    @override
    def answer(self, request: Request) -> Answer:
        if b"add-snapshot" in request.body:
            self.commits.append(request)
        return super().answer(request)


class World:
    """A table on a disk, and one client's commit to it as it was sent."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._warehouse = str(folder)
        lake = self.lake(catalog := MemoryCatalog("m"))
        lake.create_namespace("db")
        table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
        table.append(rows(1, 2))
        table.append(rows(3, 4))
        self._before = catalog.load(TABLE)
        server = Listener(lake)
        with listening(server) as at:
            peer = RestCatalog("peer", uri=f"http://127.0.0.1:{at.port}").load_table("db.t")
            KINDS[kind][0](peer)
        (self.request,) = server.commits

    def lake(self, catalog: Any, store: Any = None) -> Lake:
        return Lake(catalog=catalog, store=store or LocalStore(), warehouse=self._warehouse)

    def again(self) -> MemoryCatalog:
        """Return a catalog in which nobody has committed yet; files that are left over do no harm."""
        catalog = MemoryCatalog("m")
        catalog.create_namespace(("db",), {})
        catalog.create(TABLE, self._before)
        return catalog

    def send(self, catalog: MemoryCatalog, steps: Steps) -> Answer:
        dying: Any = DyingCatalog(catalog, steps)
        server = Server(self.lake(dying, DyingStore(LocalStore(), steps)))
        return server.answer(self.request)

    def ids(self, catalog: MemoryCatalog) -> list[int]:
        table = self.lake(catalog).table("db.t")
        assert table.verify().findings == ()
        return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_a_commit_sent_again_long_after_is_known_by_its_snapshot(tmp_path: Path) -> None:
    world = World(tmp_path, "append")
    catalog = world.again()
    table = world.lake(catalog).table("db.t")
    table.create_tag("early")
    table.set_properties({"write.metadata.inline-snapshots": "1"})
    assert world.send(catalog, Steps()).status == 200
    for n in range(100, 130):
        table.append(rows(n))
    ids = world.ids(catalog)
    assert table.metadata.snapshot_pages
    assert world.send(catalog, Steps()).status == 200
    assert world.ids(catalog) == ids


@pytest.mark.filterwarnings("ignore:Delete operation did not match")
@pytest.mark.law
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_there_once_however_often_a_killed_commit_is_sent(
    kind: str, tmp_path: Path
) -> None:
    world, after = World(tmp_path, kind), KINDS[kind][1]
    whole = Steps()
    catalog = world.again()
    assert world.send(catalog, whole).status == 200
    assert world.ids(catalog) == after
    for die_at in range(0, whole.count, 1 + whole.count // TRIED):
        for done in (False, True):
            catalog = world.again()
            with pytest.raises(Killed):
                world.send(catalog, Steps(die_at, after=done))
            assert world.ids(catalog) in ([1, 2, 3, 4], after), (die_at, done)
            for _ in range(2):
                assert world.send(catalog, Steps()).status == 200
                assert world.ids(catalog) == after, (die_at, done)


def _grown(folder: Path) -> MemoryCatalog:
    """Return a catalog with a table whose leaves and root nobody has exported yet."""
    catalog = MemoryCatalog("m")
    lake = Lake(catalog=catalog, store=LocalStore(), warehouse=str(folder))
    lake.create_namespace("db")
    few = {"write.root.max-data-entries": "2"}
    table = lake.create_table("db.t", pa.schema([("id", pa.int64())]), properties=few)
    for id in range(0, 10, 2):
        table.append(rows(id, id + 1))
    table.delete("id = 3")
    return catalog


def _load(folder: Path, catalog: MemoryCatalog, steps: Steps) -> Any:
    dying: Any = DyingCatalog(catalog, steps)
    store = DyingStore(LocalStore(), steps)
    return Client(Server(Lake(catalog=dying, store=store, warehouse=str(folder)))).get(
        "/v1/namespaces/db/tables/t"
    )


def _read_by_manifests(shown: bytes, place: Path, number: int = -1) -> list[int]:
    """Return the rows of the current snapshot, or of one by its number."""
    place.write_bytes(shown)
    table = StaticTable.from_metadata(str(place))
    snapshot = sorted(table.snapshots(), key=lambda each: each.sequence_number or 0)[number]
    return sorted(table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()["id"].to_pylist())


@pytest.mark.law
def test_a_load_killed_while_it_exports_leaves_nothing_half_that_the_next_would_show(
    tmp_path: Path,
) -> None:
    whole, left = Steps(), [id for id in range(10) if id != 3]
    folder = tmp_path / "whole"
    _load(folder, _grown(folder), whole)
    for die_at in range(0, whole.count, 1 + whole.count // TRIED):
        for done in (False, True):
            folder = tmp_path / f"{die_at}-{done}"
            catalog = _grown(folder)
            steps = Steps(die_at, after=done)
            # Former snapshots are exported beside the request, which does not fail with them.
            with suppress(Killed):
                _load(folder, catalog, steps)
            assert steps.is_over
            told = _load(folder, catalog, Steps())
            assert told.status == 200
            shown = json.dumps(told.json["metadata"]).encode()
            place = folder / "v.metadata.json"
            assert _read_by_manifests(shown, place) == left, (die_at, done)
            formerly = [_read_by_manifests(shown, place, at) for at in range(5)]
            assert formerly == [list(range(2 * at + 2)) for at in range(5)], (die_at, done)
