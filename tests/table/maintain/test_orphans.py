"""Removing orphan files: what nothing names goes, and nothing else ever does."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from icetree.catalog.memory import MemoryCatalog
from icetree.codec.metadata import encode
from icetree.errors import CommitConflict, InvalidInput, NotFound
from icetree.spec.location import absolute
from icetree.store.local import LocalStore
from icetree.store.memory import MemoryStore
from icetree.surroundings import now_ms, within
from icetree.table.lake import Lake
from icetree.table.maintain.purge import purge as purge_table
from icetree.table.point import time_of
from icetree.table.table import Table
from tests.effort import EFFORT
from tests.store.flaky import FlakyStore
from tests.table.changing import ARROW, changing_table, some, written
from tests.table.maintain.history import SECOND, Clock, Past, named, stored, told
from tests.table.maintain.strays import (
    DAY,
    HOUR,
    LONG,
    another,
    plant,
    remove,
    tidy_table,
)


@pytest.mark.law
@pytest.mark.parametrize("seed", [*range(20, 20 + EFFORT)])
def test_all_that_is_retained_reads_as_before_and_nothing_else_is_left(seed: int) -> None:
    """With snapshots expired, statistics, orphans and a commit under way, in a random history."""
    past = Past(seed)
    past.live(12)
    table, clock = past.table, past.clock
    with within(clock):
        table.maintenance.compute_table_stats(columns=["id"])
    past.live(8)
    with within(clock):
        table.maintenance.compute_table_stats(columns=["id", "v"])
        table.maintenance.expire_snapshots(
            older_than=time_of(clock.at_ms - past.choose.randrange(20) * SECOND), retain_last=2
        )
        strays = plant(table, "data/stray.parquet", "metadata/stray.parquet", "x=1/stray.puffin")
    before = told(table, past.ids())
    clock.at_ms += LONG
    with within(clock):
        young = plant(table, "data/young.parquet")
        under_way = written(table, some((10_000, "late")))
        done = table.maintenance.remove_orphan_files()
    assert strays <= set(done.orphan_file_location)
    assert young.isdisjoint(done.orphan_file_location)
    late = {absolute(each, table.location) for each in under_way["location"].to_pylist()}
    assert stored(table) == named(table) & stored(table) | young | late
    assert told(table, past.ids()) == before
    assert remove(table, clock).orphan_file_location == ()
    with within(clock):
        table.append_files(under_way)
    assert table.verify(deep=True).is_clean
    assert 10_000 in table.scan().to_arrow()["id"].to_pylist()


def test_statistics_and_former_metadata_are_needed() -> None:
    clock = Clock()
    table = tidy_table(clock)
    logged = {each.metadata_file for each in table.metadata.metadata_log}
    hint = plant(table, "metadata/version-hint.text")
    assert len(logged) == 2
    assert remove(table, clock).orphan_file_location == ()
    assert {f"{table.location}/{each}" for each in logged} | hint <= stored(table)


def test_a_file_is_not_touched_before_its_time() -> None:
    clock = Clock()
    table = tidy_table(clock)
    with within(clock):
        strays = plant(table, "data/stray.parquet")
    clock.at_ms += 3 * DAY
    assert remove(table, clock).orphan_file_location == ()
    clock.tick()
    assert set(remove(table, clock).orphan_file_location) == strays


def test_less_than_an_hour_is_refused_unless_forced() -> None:
    clock = Clock()
    table = tidy_table(clock)
    with within(clock):
        strays = plant(table, "data/stray.parquet")
    clock.at_ms += HOUR - SECOND
    with pytest.raises(InvalidInput, match="less than an hour ago"):
        remove(table, clock, older_than=time_of(clock.at_ms))
    assert strays <= stored(table)
    remove(table, clock, older_than=time_of(clock.at_ms), force=True)
    assert strays.isdisjoint(stored(table))


def test_a_dry_run_names_the_same_and_deletes_nothing() -> None:
    clock = Clock()
    table = tidy_table(clock)
    strays = plant(table, "data/stray.parquet", "stray")
    clock.at_ms = 2**42
    before = stored(table)
    plan = remove(table, clock, dry_run=True)
    assert set(plan.orphan_file_location) == strays
    assert stored(table) == before
    assert str(plan) == "would remove 2 orphan files"
    done = remove(table, clock)
    assert {**done.as_dict(), "dry_run": True} == plan.as_dict()


def test_a_table_whose_files_may_be_anothers_is_left_alone() -> None:
    clock = Clock()
    table = tidy_table(clock)
    table.set_properties({"gc.enabled": "false"})
    with pytest.raises(InvalidInput, match=r"gc\.enabled is false"):
        remove(table, clock)


class _Listing(FlakyStore):
    """A store in which something happens once a listing is made."""

    def __init__(self, store: MemoryStore, then: object) -> None:
        super().__init__(store)
        self.then = then

    def list(self, folder: str):  # type: ignore[no-untyped-def]
        yield from [*self.store.list(folder)]
        self.then()  # type: ignore[operator]


def old_file(table: Table, clock: Clock) -> str:
    """Return a data file of rows that nothing names, older than the guard."""
    with within(clock):
        found: str = written(table, some((77, "adopted")))["location"][0].as_py()
    clock.at_ms += LONG
    return f"{table.location}/{found}"


def test_what_is_committed_while_the_listing_goes_on_stays() -> None:
    clock = Clock()
    table = tidy_table(clock)
    old = old_file(table, clock)
    other = another(table)
    store = _Listing(table.files.store, lambda: other.add_files([old]))  # type: ignore[arg-type]
    lake = Lake(catalog=table.catalog, store=store)
    assert remove(lake.table("db.rows"), clock).orphan_file_location == ()
    assert 77 in table.refresh().scan().to_arrow()["id"].to_pylist()


@pytest.mark.parametrize("others", [0, 1_500])
def test_what_is_committed_before_the_last_moment_stays(others: int) -> None:
    """However many batches are deleted after the catalog told of it."""
    clock = Clock()
    table = tidy_table(clock)
    with within(clock):
        plant(table, *(f"data/{number}" for number in range(others)))
    old = old_file(table, clock)
    other, once = another(table), []

    def meanwhile(what: str, *_: int) -> None:
        if what == "trees" and not once:
            once.append(other.add_files([old]))

    done = remove(table, clock, progress=meanwhile)
    assert len(done.orphan_file_location) == others
    assert old in stored(table)
    assert table.refresh().verify(deep=True).is_clean


def test_what_another_expires_meanwhile_is_not_missed() -> None:
    clock = Clock()
    table = tidy_table(clock, 4)
    with within(clock):
        strays = plant(table, "data/stray.parquet")
    clock.at_ms += LONG

    def expire() -> None:
        with within(clock):
            table.maintenance.expire_snapshots(older_than=time_of(clock.at_ms), retain_last=1)

    class Late(FlakyStore):
        """Has another expire what is being looked at, once."""

        def read(self, location: str) -> bytes:
            if "root" in location and not once:
                once.append(expire())
            return super().read(location)

    once: list[None] = []
    fresh = Lake(catalog=table.catalog, store=Late(table.files.store)).table("db.rows")
    assert strays <= set(remove(fresh, clock).orphan_file_location)
    assert len(once) == 1
    assert table.refresh().verify(deep=True).findings == ()


def test_nothing_goes_once_the_name_is_anothers() -> None:
    clock = Clock()
    table = tidy_table(clock)
    strays = plant(table, "data/stray.parquet")
    clock.at_ms = 2**42

    def meanwhile(what: str, *_: int) -> None:
        if what == "trees":
            table.catalog.drop(table.name)

    with pytest.raises(NotFound):
        remove(table, clock, progress=meanwhile)
    assert strays <= stored(table)


def test_nothing_goes_once_the_table_has_moved() -> None:
    clock = Clock()
    table = tidy_table(clock)
    strays = plant(table, "data/stray.parquet")
    clock.at_ms = 2**42
    before = table.state.metadata_location

    def meanwhile(what: str, *_: int) -> None:
        """Do as writers do that may point a table elsewhere."""
        moved = structs.replace(table.metadata, location="memory://lake/elsewhere")
        if what == "trees" and table.catalog.load(table.name) == before:
            table.files.store.write_new(f"{before}.moved", encode(moved))
            table.catalog.swap(table.name, expected=before, to=f"{before}.moved")

    with pytest.raises(CommitConflict, match="was moved"):
        remove(table, clock, progress=meanwhile)
    assert all(table.files.store.exists(each) for each in strays)


# --- other tables ------------------------------------------------------------------------------


def two_tables(clock: Clock, other_place: str) -> tuple[Table, Table]:
    with within(clock):
        table = changing_table()
        table.append(some((1, "a")))
        lake = Lake(catalog=table.catalog, store=table.files.store, warehouse="memory://lake")
        other = lake.create_table("db.other", table.schema, location=other_place)
        other.append(some((2, "b")))
        plant(table, "data/stray.parquet")
    clock.at_ms += LONG
    return table, other


def test_a_table_that_lies_within_another_is_left_alone() -> None:
    clock = Clock()
    table, other = two_tables(clock, "memory://lake/db/rows/inner")
    with within(clock):
        plant(other, "data/theirs.parquet")
    clock.at_ms += LONG
    before = stored(other)
    done = remove(table, clock)
    assert done.orphan_file_location == (f"{table.location}/data/stray.parquet",)
    assert stored(other) == before
    assert other.verify(deep=True).is_clean


@pytest.mark.parametrize("place", ["memory://lake/db/rows", "memory://lake/db"])
def test_a_table_that_lies_where_another_does_is_refused(place: str) -> None:
    clock = Clock()
    table, _ = two_tables(clock, place)
    before = stored(table)
    with pytest.raises(InvalidInput, match=r"table db\.other lies at"):
        remove(table, clock)
    assert stored(table) == before


def linked(folder: Path, *, within: bool) -> tuple[Table, Table, Clock]:
    """Two old tables, the first at a place that a link leads to, with the second in it or around it."""
    (folder / "place").mkdir()
    (folder / "link").symlink_to(folder / "place")
    lake = Lake(catalog=MemoryCatalog("m"), store=LocalStore(), warehouse=f"{folder}/w")
    lake.create_namespace("db")
    table = lake.create_table("db.t", ARROW, location=f"{folder}/link/t")
    at = "place/t/inner" if within else "place"
    other = lake.create_table("db.other", ARROW, location=f"{folder}/{at}")
    for each in (table, other):
        each.append(some((1, "a")))
    clock = Clock()
    clock.at_ms = now_ms() + LONG
    return table, other, clock


@pytest.mark.parametrize("purge", [False, True])
def test_a_table_that_lies_within_another_behind_a_link_is_left_alone(
    tmp_path: Path, purge: bool
) -> None:
    table, other, clock = linked(tmp_path, within=True)
    if purge:
        purge_table(table)
        assert not (tmp_path / "place/t/data").exists() or not any(
            (tmp_path / "place/t/data").iterdir()
        )
    else:
        assert remove(table, clock).orphan_file_location == ()
        assert table.verify(deep=True).is_clean
    assert other.verify(deep=True).is_clean
    assert other.scan().count() == 1


def test_a_table_that_lies_around_another_behind_a_link_is_seen(tmp_path: Path) -> None:
    table, other, clock = linked(tmp_path, within=False)
    with pytest.raises(InvalidInput, match=r"table db\.other lies at"):
        remove(table, clock)
    assert remove(other, clock).orphan_file_location == ()
    assert table.verify(deep=True).is_clean


def test_a_table_that_writes_its_data_into_another_is_told_by_its_property() -> None:
    clock = Clock()
    table, other = two_tables(clock, "memory://lake/db/far")
    other.set_properties({"write.data.path": f"{table.location}/theirs"})
    with within(clock):
        other.append(some((3, "c")))
    clock.at_ms += LONG
    done = remove(table, clock)
    assert done.orphan_file_location == (f"{table.location}/data/stray.parquet",)
    assert other.refresh().verify(deep=True).is_clean
