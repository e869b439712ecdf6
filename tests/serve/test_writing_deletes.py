"""Stock PyIceberg writes tables that have deletion vectors, which it is shown as v2 has deletes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.table import Table as Theirs

from icetree.errors import CommitConflict
from icetree.serve.server import Server
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.serve.listening import listening
from tests.serve.processes import running
from tests.serve.test_writing import SCHEMA, rows, theirs
from tests.table.moving.old_tables import lake_on, old_table
from tests.table.moving.old_tables import rows as old_rows

__all__ = ["theirs"]

#: Few entries in a root, so that deletes and data are in leaves, too.
LEAFY = {"write.root.max-data-entries": "4", "write.root.max-delete-entries": "2"}
ALL = {"rewrite-all": "true"}
_TRIES = 60


def told(found: pa.Table) -> dict[int, str]:
    assert len({*found["id"].to_pylist()}) == found.num_rows
    return dict(zip(found["id"].to_pylist(), found["country"].to_pylist(), strict=True))


def require(model: dict[int, str], ours: Table, *peers: Theirs) -> None:
    """Require rows: as icetree reads them, and as every client does."""
    assert told(ours.refresh().scan().to_arrow()) == model
    for each in peers:
        each.refresh()
        assert each.metadata.format_version == 2
        assert told(each.scan().to_arrow()) == model
        assert each.scan().count() == len(model)


def vectors(table: Table) -> int:
    return int(table.refresh().inspect.delete_files().num_rows)


def drop(model: dict[int, str], gone: Callable[[int], bool]) -> None:
    for id in [each for each in model if gone(each)]:
        del model[id]


def test_pyiceberg_writes_on_after_rows_were_deleted_by_vectors(
    theirs: RestCatalog, lake: Lake
) -> None:
    planning = theirs.create_table("db.t", SCHEMA, properties=LEAFY)
    uri = theirs.properties["uri"]
    reading = RestCatalog("m", uri=uri, **{"scan-planning-mode": "client"}).load_table("db.t")
    both = (planning, reading)
    ours = lake.table("db.t")
    model: dict[int, str] = {}
    for start in range(0, 40, 10):
        planning.append(rows(start, start + 10))
        model |= dict.fromkeys(range(start, start + 10), "DE")
    for number, peer in enumerate(both):
        base = 1000 * (number + 1)
        ours.refresh().delete(f"id in ({3 + number}, {13 + number}, {base})")
        drop(model, lambda id, n=number: id in (3 + n, 13 + n))  # type: ignore[misc]
        assert vectors(ours)
        require(model, ours, *both)
        peer.append(rows(base, base + 10))
        model |= dict.fromkeys(range(base, base + 10), "DE")
        require(model, ours, *both)
        # One file in part, by rewriting it, with its vector.
        peer.delete(f"id = {15 + number}")
        del model[15 + number]
        require(model, ours, *both)
        ours.delete(f"id in ({17 + number}, {base + 1})")
        drop(model, lambda id, n=number, b=base: id in (17 + n, b + 1))  # type: ignore[misc]
        require(model, ours, *both)
        peer.overwrite(rows(base + 20, base + 23, "FR"), overwrite_filter=f"id >= {base + 5}")
        drop(model, lambda id, b=base: id >= b + 5)  # type: ignore[misc]
        model |= dict.fromkeys(range(base + 20, base + 23), "FR")
        require(model, ours, *both)
        ours.delete(f"id = {22 + number}")
        del model[22 + number]
        ours.maintenance.rewrite_manifests()
        require(model, ours, *both)
        peer.delete(f"id < {2 + number}")
        drop(model, lambda id, n=number: id < 2 + n)  # type: ignore[misc]
        require(model, ours, *both)
        assert ours.verify(deep=True).findings == ()
        ours.maintenance.rewrite_data_files(options=ALL)
        require(model, ours, *both)
        peer.append(rows(base + 50, base + 52))
        model |= dict.fromkeys(range(base + 50, base + 52), "DE")
        require(model, ours, *both)
    ours.delete("id = 30")
    del model[30]
    planning.refresh().overwrite(rows(0, 3, "US"))
    require(dict.fromkeys(range(3), "US"), ours, *both)
    assert ours.verify(deep=True).findings == ()


def tried(act: Callable[[], Any], again: Callable[[], Any], *conflicts: type[Exception]) -> None:
    """Do something as often as others come before it."""
    for _ in range(_TRIES):
        with suppress(*conflicts):
            act()
            return
        again()
    raise AssertionError("others came before it each time")


def peer_works(peer: Theirs, rounds: int) -> dict[int, str]:
    """Append, delete and overwrite rows from 0 on, as PyIceberg does; return what is left of them."""
    model: dict[int, str] = {}

    def does(act: Callable[[], Any]) -> None:
        # What another commit, of which it has no manifests, did to its files it cannot see either.
        conflicts = (CommitFailedException, ValidationException, FileNotFoundError)
        tried(act, peer.refresh, *conflicts)

    for number in range(rounds):
        start = 100 * number
        does(lambda s=start: peer.append(rows(s, s + 6)))  # type: ignore[misc]
        does(lambda s=start: peer.delete(f"id = {s + 2}"))  # type: ignore[misc]
        some = f"id = {start + 4} or id = {start + 5}"
        new = rows(start + 50, start + 52, "FR")
        does(lambda n=new, s=some: peer.overwrite(n, overwrite_filter=s))  # type: ignore[misc]
        model |= dict.fromkeys((start, start + 1, start + 3), "DE")
        model |= dict.fromkeys((start + 50, start + 51), "FR")
    return model


def icetree_works(ours: Table, rounds: int) -> dict[int, str]:
    """Append, delete by vectors, compact and rewrite manifests; return what is left of the rows."""
    model: dict[int, str] = {}

    def does(act: Callable[[], Any]) -> None:
        tried(act, ours.refresh, CommitConflict)

    for number in range(rounds):
        start = 1_000_000 + 100 * number
        does(lambda s=start: ours.append(rows(s, s + 6)))  # type: ignore[misc]
        does(lambda s=start: ours.delete(f"id in ({s + 1}, {s + 4}, {s - 100})"))  # type: ignore[misc]
        model |= dict.fromkeys((start, start + 2, start + 3, start + 5), "DE")
        model.pop(start - 100, None)
        if number % 2 == 0:
            does(lambda: ours.maintenance.rewrite_data_files(options=ALL))
        if number % 3 == 1:
            does(ours.maintenance.rewrite_manifests)
    return model


@pytest.mark.parametrize("rounds", [2, pytest.param(10, marks=pytest.mark.long)])
def test_pyiceberg_and_icetree_write_one_table_at_the_same_time(
    rounds: int, lake: Lake, tmp_path: Path
) -> None:
    with running(tmp_path) as server:
        catalog = RestCatalog("r", uri=server.uri)
        peer = catalog.create_table("db.t", SCHEMA, properties=LEAFY)
        peer.append(rows(-10, 0))
        ours = lake.table("db.t")
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(peer_works, peer, rounds)
            second = pool.submit(icetree_works, ours, rounds)
            model = {**dict.fromkeys(range(-10, 0), "DE"), **first.result(), **second.result()}
        require(model, ours, peer)
        assert ours.verify(deep=True).findings == ()


@pytest.mark.parametrize("is_trial", [False, True])
def test_pyiceberg_changes_what_is_in_manifests_of_before(tmp_path: Path, is_trial: bool) -> None:
    """Those of an upgraded table are its own; those of a trial lie where the other table is."""
    old_table(tmp_path)
    with lake_on(tmp_path) as lake:
        name = "new.t" if is_trial else "db.old"
        if is_trial:
            lake.trial_table(name, "db.old")
        else:
            lake.upgrade_table(name)
        left = {*range(20)} - {3}
        with listening(Server(lake)) as at:
            theirs = RestCatalog("r", uri=f"http://127.0.0.1:{at.port}").load_table(name)
            for id in (5, 16):
                theirs.delete(f"id = {id}")
                theirs.append(old_rows(100 + id, 1))
                left = left - {id} | {100 + id}
                assert {*theirs.scan().to_arrow()["id"].to_pylist()} == left
        found = lake.table(name)
        assert sorted(found.scan().to_arrow()["id"].to_pylist()) == sorted(left)
        assert found.verify(deep=True).findings == ()
