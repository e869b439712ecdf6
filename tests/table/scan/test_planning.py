"""What a plan reads, and what is kept for the next one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import plan_tables
from icetree.files.cache import Cache
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.store.slow import SlowStore
from tests.table.lake import data_file, live, new_table

COUNT = 20_000
FIRST_HUNDRED = "id < 100000"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("lake")
    plan_tables.build(place, COUNT)
    return place


def opened(folder: Path) -> tuple[SlowStore, Table]:
    lake = plan_tables.open_lake(folder)
    store = SlowStore(lake.store, latency_ms=0, bytes_per_s=None)
    logged = Lake(catalog=lake.catalog, store=store, warehouse=lake.warehouse)
    return store, logged.table(f"db.t{COUNT}")


def bytes_read(store: SlowStore) -> int:
    return sum(each.size_bytes for each in store.answered if each.operation.startswith("read"))


def test_of_a_large_leaf_on_disk_only_the_ranges_that_a_filter_needs_are_read(folder: Path) -> None:
    store, table = opened(folder)
    leaves = sum(file.stat().st_size for file in (folder / "lake").rglob("*-m*.parquet"))
    assert table.scan(FIRST_HUNDRED).plan().tasks.num_rows == 100
    assert bytes_read(store) < leaves / 5


def test_planning_again_reads_nothing_but_what_a_commit_changed(folder: Path) -> None:
    store, table = opened(folder)
    before = table.scan(FIRST_HUNDRED).plan()
    _, writer = opened(folder)
    later = plan_tables.files(np.array([COUNT]), COUNT, writer.metadata.shape())
    writer.append_files(later)
    store.forget()
    after = table.refresh().scan(FIRST_HUNDRED).plan()
    assert after.tasks.num_rows == before.tasks.num_rows
    read = [each.location for each in store.answered if each.operation.startswith("read")]
    assert len(read) == 2
    assert any("metadata.json" in name for name in read)
    assert any("root" in name for name in read)


def test_plans_are_the_same_whether_a_root_is_read_whole_or_in_part() -> None:
    table = new_table()
    table.append_files([data_file("a", 0, 9), data_file("b", 10, 19, country="DE")])
    filters = ("n = 3", "country = 'DE'", "n > 100", "n >= 0 and country is null")
    cold = [_fresh(table).scan(where).plan().tasks for where in filters]
    whole = _fresh(table)
    assert live(whole) == ["a", "b"]
    whole.files.root(whole.snapshot(), whole.metadata.shape(), keep=True)
    assert [whole.scan(where).plan().tasks for where in filters] == cold
    assert [tasks.num_rows for tasks in cold] == [1, 2, 0, 1]


def _fresh(table: Table) -> Table:
    lake = Lake(catalog=table.catalog, store=table.files.store, warehouse="memory://w")
    return lake.table("db.t")


def test_what_weighs_too_much_is_not_kept_and_the_oldest_goes_first() -> None:
    cache = Cache()
    made: list[str] = []

    def get(name: str, weight: int) -> str:
        def make() -> str:
            made.append(name)
            return name

        return cache.derive(("kind", name), make, most=160, weigh=lambda _: weight)

    for _ in range(2):
        get("heavy", 11)
    assert made == ["heavy", "heavy"]
    for number in range(17):
        get(f"light {number}", 10)
    made.clear()
    get("light 16", 10)
    get("light 0", 10)
    assert made == ["light 0"]
