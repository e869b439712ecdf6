"""Removing orphan files: what nothing names goes, and nothing else ever does."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from msgspec import structs

import icetree
from icetree.codec.metadata import encode
from icetree.errors import CommitConflict, InvalidInput, NotFound, Unavailable
from icetree.spec.entry import Entry
from icetree.spec.location import absolute
from icetree.spec.stats import FieldStats
from icetree.store.memory import MemoryStore
from icetree.surroundings import within
from icetree.table.lake import Lake
from icetree.table.maintain.orphans import Orphans
from icetree.table.point import time_of
from icetree.table.table import Table
from tests.catalog.flaky import FlakyCatalog, Refuse
from tests.effort import EFFORT
from tests.rows.lake import rows
from tests.store.flaky import Fault, FlakyStore, How
from tests.table.changing import changing_table, some, written
from tests.table.maintain.history import SECOND, Clock, Past, named, stored, told

HOUR = 3_600 * SECOND
DAY = 24 * HOUR
#: Longer than the guard.
LONG = 3 * DAY + SECOND


def plant(table: Table, *names: str) -> set[str]:
    """Put files below a table that nothing names."""
    found = {f"{table.location}/{name}" for name in names}
    for each in found:
        table.files.store.write_new(each, b"nobody's")
    return found


def remove(table: Table, clock: Clock, **how: object) -> Orphans:
    with within(clock):
        return table.maintenance.remove_orphan_files(**how)  # type: ignore[arg-type]


def tidy_table(clock: Clock, count: int = 2) -> Table:
    """A table of a few appends, all of them older than the guard."""
    with within(clock):
        table = changing_table()
        for number in range(count):
            clock.tick()
            table.append(some((number, "a")))
    clock.at_ms += LONG
    return table


def another(table: Table) -> Table:
    """A second handle on the same table."""
    return Table(catalog=table.catalog, files=table.files, state=table.state)


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


# --- names -------------------------------------------------------------------------------------


def test_what_readers_of_folders_pass_over_is_left_but_our_own_temporary_files() -> None:
    clock = Clock()
    with within(clock):
        table = changing_table(partition_by=["v"])
        with table.transaction() as tx, tx.edit_schema() as schema:
            schema.rename("v", "_v")
        kept = plant(table, "_SUCCESS", "data/_checkpoint/0", ".hidden", "_delta_log/0.json")
        gone = plant(table, "data/.icetree-half.tmp", "data/v=1/stray.parquet")
    clock.at_ms += LONG
    done = remove(table, clock)
    assert set(done.orphan_file_location) == gone
    assert kept <= stored(table)


def test_a_partition_may_have_a_name_that_starts_with_a_line() -> None:
    clock = Clock()
    with within(clock):
        schema = pa.schema([("_v", pa.string())])
        lake = icetree.connect("memory://", warehouse="memory://hidden-partition")
        lake.create_namespace("db")
        table = lake.create_table("db.t", schema, partition_by=["_v"])
        gone = plant(table, "data/_v=1/stray.parquet")
        plant(table, "data/_w=1/stray.parquet")
    clock.at_ms += LONG
    assert set(remove(table, clock).orphan_file_location) == gone


def far_file(location: str) -> Entry:
    """A data file that is named in full."""
    stats = {1: FieldStats(lower=1, upper=1, tight=True, values=1, nulls=0)}
    return Entry(location=location, record_count=1, file_size_in_bytes=10, stats=stats)


def mismatched(clock: Clock) -> tuple[Table, str]:
    """A table that names a file below another bucket, which is there below its own too."""
    with within(clock):
        table = changing_table()
        table.append_files([far_file("memory://alias/db/rows/data/a.parquet")])
        [found] = plant(table, "data/a.parquet")
        plant(table, "data/b.parquet")
    clock.at_ms += LONG
    return table, found


def test_a_file_that_is_named_under_another_prefix_is_told_and_not_guessed() -> None:
    clock = Clock()
    table, alike = mismatched(clock)
    before = stored(table)
    with pytest.raises(InvalidInput, match=r"names memory://alias/db/rows/data/a\.parquet"):
        remove(table, clock)
    assert stored(table) == before
    assert (
        alike
        not in remove(
            table, clock, dry_run=True, equal_authorities={"alias, other": "lake"}
        ).orphan_file_location
    )
    left = remove(table, clock, prefix_mismatch_mode="IGNORE")
    assert left.orphan_file_location == (f"{table.location}/data/b.parquet",)
    assert remove(table, clock, prefix_mismatch_mode="delete").orphan_file_location == (alike,)


def test_schemes_can_be_called_equal() -> None:
    clock = Clock()
    with within(clock):
        table = changing_table()
        table.append_files([far_file("other://lake/db/rows/data/a.parquet")])
        plant(table, "data/a.parquet")
    clock.at_ms += LONG
    with pytest.raises(InvalidInput, match="may be the same file"):
        remove(table, clock)
    done = remove(table, clock, equal_schemes={"other": "memory"})
    assert done.orphan_file_location == ()


def test_a_mode_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="allowed are 'error', 'ignore', 'delete'"):
        changing_table().maintenance.remove_orphan_files(prefix_mismatch_mode="guess")


def test_the_search_can_be_narrowed_to_a_folder_of_the_table() -> None:
    clock = Clock()
    table = tidy_table(clock)
    plant(table, "data/stray.parquet", "metadata/stray.parquet")
    clock.at_ms = 2**42
    for location in ("metadata", f"{table.location}/metadata/"):
        plan = remove(table, clock, dry_run=True, location=location)
        assert plan.orphan_file_location == (f"{table.location}/metadata/stray.parquet",)
    for location in ("memory://lake/db", "memory://lake/db/rows2", "memory://else"):
        with pytest.raises(InvalidInput, match="is no folder of the table"):
            remove(table, clock, location=location)
    with pytest.raises(InvalidInput, match=r"has a part '\.\.'"):
        remove(table, clock, location="data/../../other")


def test_a_folder_behind_a_link_is_left_alone(tmp_path: Path) -> None:
    """Its files are the table's by names that lead through the link."""
    clock = Clock()
    with icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        (tmp_path / "big").mkdir()
        table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
        Path(table.location, "data").symlink_to(tmp_path / "big")
        table.append(pa.table({"id": [1]}))
        clock.at_ms = 2**42
        assert remove(table, clock).orphan_file_location == ()
        assert table.scan().to_arrow()["id"].to_pylist() == [1]


# --- trouble -----------------------------------------------------------------------------------


class Killed(BaseException):
    """The end of a process: nothing that waits for an error runs."""


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
