"""Stock Spark changes a data file that icetree changes first, between Spark's load and its commit.

Java's own validation goes by what exports tell of the snapshots in between: either it sees a conflict, and
the table is as icetree left it, or Spark's change lands on top of icetree's. No deleted row comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typing_extensions import override

from icetree.catalog.memory import MemoryCatalog
from icetree.serve.protocol.request import Answer, Request
from icetree.serve.server import Server
from icetree.store.local import LocalStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import usually
from tests.serve.listening import listening
from tests.serve.stock_spark import told

Rows = dict[int, int]
ALL = {"rewrite-all": "true"}
FEW = {"write.root.max-data-entries": "2", "write.root.max-delete-entries": "1"}
#: What Java says where its validation fails, of whichever kind; and where it gives up trying.
_CONFLICTS = ("ValidationException", "CommitFailedException")
#: Spark's statements, all of the table's first file, by verb.
STATEMENTS = {
    "delete": "DELETE FROM {} WHERE id = 3",
    "update": "UPDATE {} SET n = 99 WHERE id = 3",
    "merge": (
        "MERGE INTO {} t USING (SELECT explode(array(3L, 6L, 40L)) id) s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 6 THEN DELETE WHEN MATCHED THEN UPDATE SET n = 99 "
        "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, 7)"
    ),
}


def with_statement(verb: str, rows: Rows) -> Rows:
    """Return the rows after a statement that finds these."""
    if verb == "delete":
        return {id: n for id, n in rows.items() if id != 3}
    found = {id: 99 if id == 3 else n for id, n in rows.items()}
    if verb == "update":
        return found
    new = {id: 7 for id in (3, 6, 40) if id not in rows}
    return {**{id: n for id, n in found.items() if id != 6}, **new}


def some(ids: range, n: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array([n] * len(ids), pa.int32())})


@dataclass(frozen=True, slots=True, kw_only=True)
class Meanwhile:
    """What icetree does to the table, and to a model of it."""

    does: Callable[[Table], Any]
    leaves: Callable[[Rows], Rows]


def _without(*ids: int) -> Callable[[Rows], Rows]:
    return lambda rows: {id: n for id, n in rows.items() if id not in ids}


def _compact(table: Table) -> None:
    table.maintenance.rewrite_data_files(options=ALL)


def _compact_without_4(table: Table) -> None:
    table.delete("id = 4")
    _compact(table)


MEANWHILE = {
    "deletes another row": Meanwhile(does=lambda t: t.delete("id = 4"), leaves=_without(4)),
    "deletes the same row": Meanwhile(does=lambda t: t.delete("id = 3"), leaves=_without(3)),
    "deletes the file": Meanwhile(does=lambda t: t.delete("id < 10"), leaves=_without(*range(10))),
    "compacts": Meanwhile(does=_compact, leaves=_without()),
    "deletes and compacts": Meanwhile(does=_compact_without_4, leaves=_without(4)),
    "updates another row": Meanwhile(
        does=lambda t: t.update({"n": 50}, "id = 4"),
        leaves=lambda rows: {id: 50 if id == 4 else n for id, n in rows.items()},
    ),
    "overwrites": Meanwhile(
        does=lambda t: t.overwrite("id < 10", some(range(10), 50)),
        leaves=lambda rows: {**rows, **dict.fromkeys(range(10), 50)},
    ),
    "deletes elsewhere": Meanwhile(does=lambda t: t.delete("id = 14"), leaves=_without(14)),
}


@dataclass
class World:
    """A server, and what comes before the next commit of rows."""

    folder: Path
    lake: Lake
    uri: str = ""
    then: Callable[[], Any] | None = None
    statuses: list[int] = field(default_factory=list)


class Overtaken(Server):
    """Has something done just before the first commit of rows."""

    def __init__(self, world: World) -> None:
        super().__init__(world.lake)
        self._world = world

    @override
    def answer(self, request: Request) -> Answer:
        if b"add-snapshot" not in request.body:
            return super().answer(request)
        then, self._world.then = self._world.then, None
        if then is not None:
            then()
        answer = super().answer(request)
        self._world.statuses.append(answer.status)
        return answer


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("same")
    catalog, store = MemoryCatalog("m"), LocalStore()
    with Lake(catalog=catalog, store=store, warehouse=str(folder / "lake")) as lake:
        lake.create_namespace("db")
        world = World(folder, lake)
        with listening(Overtaken(world)) as at:
            world.uri = f"http://127.0.0.1:{at.port}"
            yield world


#: How Spark writes, what it is shown, and how much it minds.
WAYS = {
    "merge": ("merge-on-read", 3, "snapshot"),
    "copy": ("copy-on-write", 3, "snapshot"),
    "merge, strictly": ("merge-on-read", 3, "serializable"),
    "copy, strictly": ("copy-on-write", 3, "serializable"),
    "merge, as v2": ("merge-on-read", 2, "snapshot"),
    "copy, as v2": ("copy-on-write", 2, "snapshot"),
}
CASES = [(way, verb, does) for way in WAYS for verb in STATEMENTS for does in MEANWHILE]
USUAL = [
    ("merge", "delete", "deletes another row"),
    ("merge", "delete", "deletes the file"),
    ("merge", "update", "compacts"),
    ("merge", "merge", "overwrites"),
    ("copy", "delete", "deletes another row"),
    ("copy", "update", "deletes and compacts"),
    ("copy", "merge", "deletes the same row"),
    ("merge, as v2", "delete", "deletes another row"),
    ("merge, as v2", "delete", "deletes the file"),
    ("copy", "update", "deletes elsewhere"),
]


@pytest.mark.law
@pytest.mark.parametrize(("way", "verb", "meanwhile"), usually(CASES, *USUAL))
def test_no_row_comes_back_where_icetree_was_faster(
    way: str, verb: str, meanwhile: str, world: World
) -> None:
    mode, version, level = WAYS[way]
    table = world.lake.create_table(
        f"db.{way}_{verb}_{meanwhile}".replace(" ", "_").replace(",", ""),
        "id long, n int",
        properties={
            f"write.{verb}.mode": mode,
            f"write.{verb}.isolation-level": level,
            "commit.retry.num-retries": "2",
            **FEW,
        },
    )
    for start in (0, 10, 20):
        table.append(some(range(start, start + 10), 0))
    table.delete("id = 1")
    left = MEANWHILE[meanwhile].leaves({id: 0 for id in range(30) if id != 1})
    name = str(table.name)
    world.then = lambda: MEANWHILE[meanwhile].does(world.lake.table(name))
    world.statuses.clear()
    refusal = _told(world, STATEMENTS[verb].format(name), version)
    assert world.then is None
    assert {*world.statuses} <= {409, 200}
    assert world.statuses[0] == 409
    found = table.refresh().scan().to_arrow().to_pylist()
    assert len({each["id"] for each in found}) == len(found)
    rows = {each["id"]: each["n"] for each in found}
    if refusal is None:
        assert world.statuses[-1] == 200
        assert rows == with_statement(verb, left)
    else:
        assert any(each in refusal for each in _CONFLICTS), refusal
        # Java's UPDATE and MERGE mind deletes by vectors of whichever file.
        is_minded = mode == "merge-on-read" and verb != "delete"
        assert meanwhile != "deletes elsewhere" or is_minded
        assert 200 not in world.statuses
        assert rows == left
    assert table.verify(deep=True).findings == ()


def _told(world: World, statement: str, version: int) -> str | None:
    """Run a statement; return what is wrong, None where it was carried out."""
    shown = {"spark.sql.catalog.lake.header.X-Icetree-Format-Version": str(version)}
    try:
        told(world.folder, world.uri, [statement], settings=shown)
    except AssertionError as error:
        return str(error)
    return None
