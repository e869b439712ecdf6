"""A store that fails at any step of a statement on rows: the table is old or new, never between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle, product
from typing import Any

import pytest

from icetree.errors import CommitUnknown, IcetreeError
from icetree.store.local import TEMPORARY
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.catalog.flaky import FlakyCatalog, LoseAnswer, LoseRequest
from tests.effort import usually
from tests.store.flaky import Fault, FlakyStore, Step
from tests.table.faults import IMPATIENT, NAME, SWAP, World, at_each
from tests.table.rows.three import MODES, ONE, THREE, TWO, rows, some

_COLUMNS = [("id", "long"), ("n", "int"), ("s", "string")]
_STATEMENTS: dict[str, Callable[[Table], Any]] = {
    "delete": lambda table: table.delete("id = 2"),
    "update": lambda table: table.update({"n": "id"}, "id >= 2"),
    "upsert": lambda table: table.upsert(some((1, 0, "x"), (9, 9, "y")), on=["id"]),
    "merge": lambda table: (
        table.merge(some(ONE, (9, 9, "y")), on=["id"])
        .when_matched_delete()
        .when_not_matched_insert_all()
        .when_not_matched_by_source_update({"s": "'z'"})
        .run()
    ),
    "overwrite": lambda table: table.overwrite("id >= 2", some((5, 5, "v"))),
}
#: Each statement in one of the modes.
_USUAL = tuple(zip(_STATEMENTS, cycle(MODES), strict=False))


def _world(mode: str) -> World:
    world = World()
    lake = world.healthy()
    lake.create_namespace("db")
    modes = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    table = lake.create_table(NAME, _COLUMNS, properties=modes | IMPATIENT)
    table.append(some(ONE, TWO))
    table.append(some(THREE))
    return world


def _run(
    world: World, do: Callable[[Table], Any], faults: Sequence[Fault] = ()
) -> tuple[Exception | None, list[Step]]:
    """Return the error, and the steps after the table was opened."""
    store = FlakyStore(world.store, faults)
    lake = Lake(catalog=world.catalog, store=store, warehouse="memory://w")
    table = lake.table(NAME)
    opening, error = len(store.steps), None
    try:
        do(table)
    except (IcetreeError, OSError) as raised:
        error = raised
    return error, store.steps[opening:]


@pytest.mark.law
@pytest.mark.parametrize(("name", "mode"), usually(product(_STATEMENTS, MODES), *_USUAL))
def test_a_store_that_fails_at_any_step_leaves_the_old_rows_or_the_new(
    name: str, mode: str
) -> None:
    world, do = _world(mode), _STATEMENTS[name]
    old = rows(world.table())
    dry = world.copy()
    error, steps = _run(dry, do)
    assert error is None
    new = rows(dry.table())
    assert new != old
    for fault in at_each(steps):
        run = world.copy()
        before = run.files()
        error, _ = _run(run, do, [fault])
        now = rows(run.table())
        assert now == (new if error is None else old)
        if isinstance(error, IcetreeError):
            left = {each for each in run.files() - before if TEMPORARY not in each}
            assert left == set()
        assert run.table().verify(deep=True).is_clean


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("lost", [LoseAnswer(), LoseRequest()])
def test_a_swap_whose_answer_is_lost_for_good_leaves_the_old_rows_or_the_new(
    mode: str, lost: Any
) -> None:
    for do in _STATEMENTS.values():
        world = _world(mode)
        old = rows(world.table())
        dry = world.copy()
        _run(dry, do)
        catalog = FlakyCatalog(world.catalog, faults={(SWAP, at): lost for at in range(1, 20)})
        lake = Lake(catalog=catalog, store=world.store, warehouse="memory://w")
        with pytest.raises(CommitUnknown):
            do(lake.table(NAME))
        came = isinstance(lost, LoseAnswer)
        assert rows(world.table()) == (rows(dry.table()) if came else old)
        assert world.table().verify(deep=True).is_clean
