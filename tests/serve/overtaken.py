"""icetree is faster than a stock Spark: it changes a table between Spark's load and its commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from typing_extensions import override

from icetree.catalog.memory import MemoryCatalog
from icetree.serve.protocol.request import Answer, Request
from icetree.serve.server import Server
from icetree.store.local import LocalStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.serve.listening import listening
from tests.serve.stock_spark import told

Rows = dict[int, int]
ALL = {"rewrite-all": "true"}
FEW = {"write.root.max-data-entries": "2", "write.root.max-delete-entries": "1"}
#: What Java says where its validation fails, of whichever kind; and where it gives up trying.
CONFLICTS = ("ValidationException", "CommitFailedException")


def some(ids: range, n: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array([n] * len(ids), pa.int32())})


@dataclass(frozen=True, slots=True, kw_only=True)
class Meanwhile:
    """What icetree does to the table, and to a model of it."""

    does: Callable[[Table], Any]
    leaves: Callable[[Rows], Rows]


def without(*ids: int) -> Callable[[Rows], Rows]:
    """Return what takes rows away."""
    return lambda rows: {id: n for id, n in rows.items() if id not in ids}


def _compact(table: Table) -> None:
    table.maintenance.rewrite_data_files(options=ALL)


def _compact_without_4(table: Table) -> None:
    table.delete("id = 4")
    _compact(table)


MEANWHILE = {
    "deletes another row": Meanwhile(does=lambda t: t.delete("id = 4"), leaves=without(4)),
    "deletes the same row": Meanwhile(does=lambda t: t.delete("id = 3"), leaves=without(3)),
    "deletes the file": Meanwhile(does=lambda t: t.delete("id < 10"), leaves=without(*range(10))),
    "compacts": Meanwhile(does=_compact, leaves=without()),
    "deletes and compacts": Meanwhile(does=_compact_without_4, leaves=without(4)),
    "updates another row": Meanwhile(
        does=lambda t: t.update({"n": 50}, "id = 4"),
        leaves=lambda rows: {id: 50 if id == 4 else n for id, n in rows.items()},
    ),
    "overwrites": Meanwhile(
        does=lambda t: t.overwrite("id < 10", some(range(10), 50)),
        leaves=lambda rows: {**rows, **dict.fromkeys(range(10), 50)},
    ),
    "deletes elsewhere": Meanwhile(does=lambda t: t.delete("id = 14"), leaves=without(14)),
}


@dataclass
class World:
    """A server, and what comes before the next commit of a kind."""

    folder: Path
    lake: Lake
    uri: str = ""
    #: What a commit says of itself before which `then` is done.
    word: bytes = b"add-snapshot"
    then: Callable[[], Any] | None = None
    statuses: list[int] = field(default_factory=list)


class Overtaken(Server):
    """Has something done just before the first commit of a kind."""

    def __init__(self, world: World) -> None:
        super().__init__(world.lake)
        self._world = world

    @override
    def answer(self, request: Request) -> Answer:
        if self._world.word not in request.body:
            return super().answer(request)
        then, self._world.then = self._world.then, None
        if then is not None:
            then()
        answer = super().answer(request)
        self._world.statuses.append(answer.status)
        return answer


@contextmanager
def new_world(folder: Path) -> Iterator[World]:
    """Serve a lake in a folder, with a namespace `db`, until the block ends."""
    catalog, store = MemoryCatalog("m"), LocalStore()
    with Lake(catalog=catalog, store=store, warehouse=str(folder / "lake")) as lake:
        lake.create_namespace("db")
        world = World(folder, lake)
        with listening(Overtaken(world)) as at:
            world.uri = f"http://127.0.0.1:{at.port}"
            yield world


def wrong_with(
    world: World, *statements: str, settings: Mapping[str, str] | None = None
) -> str | None:
    """Run statements; return what is wrong, None where they were carried out."""
    try:
        told(world.folder, world.uri, [*statements], settings=settings)
    except AssertionError as error:
        return str(error)
    return None


def shown_as(version: int) -> dict[str, str]:
    """Return the settings of a session that is shown tables in a format version."""
    return {"spark.sql.catalog.lake.header.X-Icetree-Format-Version": str(version)}
