"""What gets a name, and cannot have it, leaves nothing behind; what may have it stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest

from icetree.errors import AlreadyExists, CommitUnknown, IcetreeError, NotFound, Unavailable
from icetree.store.local import TEMPORARY
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.catalog.flaky import Before, FlakyCatalog, LoseAnswer, LoseRequest, Refuse
from tests.catalog.flaky import Fault as CatalogFault
from tests.store.flaky import Fault, FlakyStore
from tests.table.faults import World, at_each

COLUMNS = "id long"
ROWS = pa.table({"id": [1, 2, 3]})


def _make(lake: Lake, **how: bool) -> Table:
    return lake.create_table("db.new", COLUMNS, **how)


def _world() -> World:
    world = World()
    lake = world.healthy()
    lake.create_namespace("db")
    lake.create_table("db.t", COLUMNS).append(ROWS)
    return world


class Run:
    """A table made in a world with faults."""

    def __init__(
        self,
        store: Sequence[Fault] = (),
        catalog: Mapping[tuple[str, int], CatalogFault] | None = None,
    ) -> None:
        self.world = _world()
        self.before = self.world.files()
        self.store = FlakyStore(self.world.store, store)
        self.catalog = FlakyCatalog(self.world.catalog, faults=catalog or {})
        self.lake = Lake(catalog=self.catalog, store=self.store, warehouse="memory://w")
        self.error: Exception | None = None
        try:
            _make(self.lake)
        except (IcetreeError, OSError) as error:
            self.error = error

    @property
    def left(self) -> set[str]:
        return {each for each in self.world.files() - self.before if TEMPORARY not in each}

    @property
    def is_made(self) -> bool:
        return self.world.healthy().table_exists("db.new")


@pytest.mark.law
def test_a_store_that_fails_at_any_step_leaves_a_table_or_nothing_of_it() -> None:
    for fault in at_each(Run().store.steps):
        run = Run([fault])
        assert run.is_made is (run.error is None), fault
        assert bool(run.left) is run.is_made, fault


@pytest.mark.law
@pytest.mark.parametrize(
    "fault", [LoseAnswer(), LoseRequest(), Refuse(Unavailable("busy")), Refuse(AlreadyExists("x"))]
)
def test_a_catalog_that_fails_at_any_step_leaves_a_table_or_nothing_of_it(
    fault: CatalogFault,
) -> None:
    steps = Run().catalog.steps
    assert "create" in steps
    for step in [(each, steps[: at + 1].count(each)) for at, each in enumerate(steps)]:
        run = Run(catalog={step: fault})
        if isinstance(run.error, CommitUnknown):
            # It may be the table's.
            assert len(run.left) == 1, step
        else:
            assert run.is_made is (run.error is None), step
            assert bool(run.left) is run.is_made, step


@pytest.mark.parametrize("exist_ok", [False, True])
def test_a_table_that_another_makes_meanwhile_is_the_others(exist_ok: bool) -> None:
    world = _world()
    before = world.files()
    faults: dict[tuple[str, int], CatalogFault] = {
        ("create", 1): Before(lambda: _make(world.healthy()).append(ROWS))
    }
    catalog = FlakyCatalog(world.catalog, faults=faults)
    lake = Lake(catalog=catalog, store=world.store, warehouse="memory://w")
    if exist_ok:
        assert _make(lake, exist_ok=True).scan().to_arrow() == ROWS
    else:
        with pytest.raises(AlreadyExists):
            _make(lake)
    assert len([each for each in world.files() - before if "/metadata/00000-" in each]) == 1


def test_nothing_is_written_for_a_name_in_a_namespace_that_is_not_there() -> None:
    world = _world()
    lake, before = world.healthy(), world.files()
    asks = [
        lambda: lake.create_table("dbb.new", COLUMNS),
        lambda: lake.create_view("dbb.new", "SELECT 1", "a int"),
        lambda: lake.copy_table("db.t", "dbb.new"),
        lambda: lake.copy_table("db.t", "dbb.new", metadata_only=True),
        lambda: lake.rename_table("db.t", "dbb.new"),
    ]
    for ask in asks:
        with pytest.raises(NotFound, match=r"namespace dbb.*; did you mean db\?$"):
            ask()
        assert world.files() == before
