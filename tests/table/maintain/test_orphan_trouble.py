"""Removing orphan files: whatever fails meanwhile, nothing that is needed goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

import pytest
from typing_extensions import override

from icetree.errors import NotFound, Unavailable
from icetree.store.base import NotDeleted, Store
from icetree.surroundings import within
from icetree.table.lake import Lake
from tests.catalog.flaky import FlakyCatalog, Refuse
from tests.rows.lake import rows
from tests.store.flaky import Fault, FlakyStore, How
from tests.store.wrapped import Request, WrappedStore
from tests.table.maintain.history import Clock, named, stored
from tests.table.maintain.strays import (
    LONG,
    Killed,
    another,
    plant,
    remove,
    tidy_table,
)

T = TypeVar("T")


def at_every_step(kind: type[BaseException]) -> int:
    """Fail at each request to the store, before and after it; return how many were tried."""
    clock = Clock()
    table = tidy_table(clock, 4)
    with within(clock):
        plant(table, "data/stray.parquet", "metadata/stray")
    clock.at_ms += LONG
    whole, inner = named(table) & stored(table), table.files.store
    content = rows(table.scan().to_arrow())
    files = dict(inner._files)  # type: ignore[attr-defined]

    def run(*faults: Fault) -> FlakyStore:
        inner._files.clear()  # type: ignore[attr-defined]
        inner._files.update(files)  # type: ignore[attr-defined]
        store = FlakyStore(inner, faults)
        lake = Lake(catalog=table.catalog, store=store)
        try:
            remove(lake.table("db.rows"), clock)
        except (kind, Unavailable):
            assert faults
        return store

    steps = run().steps
    for step in steps:
        for how in (How.BEFORE, How.AFTER):
            run(Fault(at=step.number, how=how, error=kind))  # type: ignore[arg-type]
            assert whole <= stored(table)
            assert rows(another(table).scan().to_arrow()) == content
            remove(table, clock)
            assert stored(table) == whole
    return len(steps)


@pytest.mark.parametrize("kind", [Unavailable, Killed])
def test_whatever_fails_or_kills_it_nothing_that_is_needed_goes(
    kind: type[BaseException],
) -> None:
    assert at_every_step(kind) > 5


def test_a_catalog_that_does_not_answer_before_deletes_keeps_it_from_them() -> None:
    clock = Clock()
    table = tidy_table(clock)
    strays = plant(table, "data/stray.parquet")
    clock.at_ms = 2**42
    catalog = FlakyCatalog(table.catalog)
    remove(Lake(catalog=catalog, store=table.files.store).table("db.rows"), clock, dry_run=True)
    loads = catalog.steps.count("load")
    for at in range(2, loads + 2):
        flaky = FlakyCatalog(table.catalog, faults={("load", at): Refuse(Unavailable("busy"))})
        with pytest.raises(Unavailable):
            remove(Lake(catalog=flaky, store=table.files.store).table("db.rows"), clock)
        assert strays <= stored(table)


def test_a_tree_that_cannot_be_read_keeps_every_file() -> None:
    clock = Clock()
    table = tidy_table(clock)
    plant(table, "data/stray.parquet")
    clock.at_ms = 2**42
    snapshot = table.current_snapshot
    assert snapshot is not None
    table.files.store.delete([f"{table.location}/{snapshot.root_manifest}"])
    before = stored(table)
    fresh = Lake(catalog=table.catalog, store=table.files.store).table("db.rows")
    with pytest.raises(NotFound):
        remove(fresh, clock)
    assert stored(table) == before


class Refusing(WrappedStore):
    """Deletes no file, and says so of all of them."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.asked: list[str] = []

    @override
    def _pass(self, request: Request, effect: Callable[[], T]) -> T:
        self.asked.append(request.operation)
        return effect()

    @override
    def delete(self, locations: Iterable[str]) -> None:
        raise NotDeleted("refused", locations)


def test_files_that_a_store_says_to_keep_are_not_looked_for() -> None:
    clock = Clock()
    table = tidy_table(clock)
    strays = plant(table, *(f"data/{number}" for number in range(20)))
    clock.at_ms += LONG
    store = Refusing(table.files.store)
    table.files = replace(table.files, store=store)
    done = remove(table, clock)
    assert {*done.left_behind} == strays
    assert "exists" not in store.asked
