"""Files of other tables in a table's folder, where no folder of theirs is: they are theirs still."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace

import pyarrow.compute as pc
import pytest
from typing_extensions import override

from icetree.errors import InvalidInput
from icetree.spec.locations import is_uri
from icetree.spec.metadata.pages import history
from icetree.spec.metadata.update import RemoveProperties
from icetree.store.base import Store
from icetree.surroundings import within
from icetree.table.lake import Lake
from icetree.table.maintain.deleting import BATCH
from icetree.table.maintain.purge import purge
from icetree.table.maintain.reach import Reach, needed_below
from icetree.table.table import Table
from icetree.tree.summary import FILES_OUTSIDE
from tests.effort import EFFORT
from tests.store.wrapped import WrappedStore
from tests.table.changing import ARROW, LEAFY, changing_table, some
from tests.table.maintain.history import Clock, stored
from tests.table.maintain.strays import LONG, far_file, plant, remove


def two_tables(clock: Clock, **properties: str) -> tuple[Table, Table]:
    """Two tables that lie apart, the first with a stray file."""
    with within(clock):
        table = changing_table()
        table.append(some((1, "a")))
        lake = Lake(catalog=table.catalog, store=table.files.store, warehouse="memory://lake")
        place = "memory://lake/db/far"
        other = lake.create_table("db.other", ARROW, location=place, properties=properties)
        plant(table, "data/stray.parquet")
    return table, other


def forget(table: Table, *properties: str) -> None:
    table.update_metadata(RemoveProperties(removals=properties))


@pytest.mark.parametrize("leafy", [False, True])
def test_what_another_table_wrote_where_it_writes_no_longer_stays(leafy: bool) -> None:
    clock = Clock()
    table, other = two_tables(clock, **(LEAFY if leafy else {}))
    with within(clock):
        other.set_properties({"write.data.path": f"{table.location}/sub"})
        for id in range(3):
            other.append(some((id, "b")))
        forget(other, "write.data.path")
        # What only former snapshots name is needed, too.
        other.delete("id = 1")
        other.append(some((7, "b")))
    clock.at_ms += LONG
    done = remove(table, clock)
    assert done.orphan_file_location == (f"{table.location}/data/stray.parquet",)
    assert other.refresh().verify(deep=True).is_clean


def test_a_file_that_another_table_was_given_by_name_stays() -> None:
    clock = Clock()
    table, other = two_tables(clock)
    with within(clock):
        [given] = plant(table, "data/given.parquet")
        other.append_files([far_file(given)])
    clock.at_ms += LONG
    done = remove(table, clock)
    assert done.orphan_file_location == (f"{table.location}/data/stray.parquet",)
    assert given in stored(table)


def test_a_table_that_cannot_be_read_and_may_name_files_here_keeps_all() -> None:
    clock = Clock()
    table, other = two_tables(clock)
    with within(clock):
        [given] = plant(table, "data/given.parquet")
        other.append_files([far_file(given)])
        other.append(some((1, "b")))
    clock.at_ms += LONG
    before, root = stored(table), other.current_snapshot
    assert root is not None
    other.files.delete([root.root_file])
    with pytest.raises(
        InvalidInput, match=r"table db\.other may name files in the folder of table"
    ):
        remove(table, clock)
    assert stored(table) == before


def test_a_table_of_which_nothing_can_be_read_keeps_all() -> None:
    clock = Clock()
    table, other = two_tables(clock)
    with within(clock):
        [given] = plant(table, "data/given.parquet")
        other.append_files([far_file(given)])
    clock.at_ms += LONG
    place = other.state.metadata_location
    other.files.store.delete([place])
    other.files.store.write_new(place, b"{")
    before = stored(table)
    with pytest.raises(InvalidInput, match=r"table db\.other may name files .* cannot be read"):
        remove(table, clock)
    assert stored(table) == before


def test_a_table_whose_metadata_is_lost_while_the_catalog_names_it_keeps_all() -> None:
    clock = Clock()
    table, other = two_tables(clock)
    with within(clock):
        [given] = plant(table, "data/given.parquet")
        other.append_files([far_file(given)])
    clock.at_ms += LONG
    other.files.store.delete([other.state.metadata_location])
    before = stored(table)
    with pytest.raises(InvalidInput, match=r"table db\.other may name files .* cannot be read"):
        remove(table, clock)
    assert stored(table) == before
    # Of one that is dropped nothing is kept.
    other.catalog.drop(other.name)
    remove(table, clock)
    assert given not in stored(table)


class Meanwhile(WrappedStore):
    """Something happens once, after the first batch of files is deleted."""

    def __init__(self, store: Store, happens: Callable[[], object]) -> None:
        super().__init__(store)
        self.happens: Callable[[], object] | None = happens

    @override
    def delete(self, locations: Iterable[str]) -> None:
        self.store.delete(locations)
        happens, self.happens = self.happens, None
        if happens is not None:
            happens()


def removed_while(table: Table, clock: Clock, happens: Callable[[], object]) -> set[str]:
    """Remove orphans, of which there are more than a batch; return what was there when it happened."""
    there: set[str] = set()

    def first() -> None:
        there.update(stored(table))
        happens()

    table.files = replace(table.files, store=Meanwhile(table.files.store, first))
    remove(table, clock)
    assert there
    return there


def test_files_that_another_table_is_given_between_deletes_stay() -> None:
    clock = Clock()
    table, other = two_tables(clock)
    with within(clock):
        strays = plant(table, *(f"data/{number}.parquet" for number in range(BATCH + 5)))
    clock.at_ms += LONG
    given: set[str] = set()

    def give() -> None:
        given.update(strays & stored(table))
        other.append_files([far_file(each) for each in given])

    removed_while(table, clock, give)
    assert given
    assert given <= stored(table)


def test_a_table_that_comes_where_ours_lies_between_deletes_is_told_as_such() -> None:
    clock = Clock()
    table, _ = two_tables(clock)
    lake = Lake(catalog=table.catalog, store=table.files.store, warehouse="memory://lake")
    with within(clock):
        strays = plant(table, *(f"data/{number}.parquet" for number in range(BATCH + 5)))
    clock.at_ms += LONG
    with pytest.raises(InvalidInput, match=r"table db\.again lies at .*, where files of table"):
        removed_while(
            table, clock, lambda: lake.register_table("db.again", table.state.metadata_location)
        )
    assert strays & stored(table)
    assert lake.table("db.again").verify().is_clean


def test_a_table_that_comes_below_between_deletes_keeps_its_files() -> None:
    clock = Clock()
    table, _ = two_tables(clock)
    lake = Lake(catalog=table.catalog, store=table.files.store, warehouse="memory://lake")
    with within(clock):
        plant(table, *(f"data/{number}.parquet" for number in range(BATCH)))
        below = lake.create_table("db.below", ARROW, location=f"{table.location}/zzz/below")
        below.append(some((1, "b")))
        lake.catalog.drop(below.name)
    clock.at_ms += LONG
    there = removed_while(
        table, clock, lambda: lake.register_table("db.again", below.state.metadata_location)
    )
    its = {each for each in there if each.startswith(f"{below.location}/")}
    assert its
    assert its <= stored(table)
    assert lake.table("db.again").scan().count() == 1


def test_of_a_table_that_tells_of_no_file_elsewhere_no_tree_is_read() -> None:
    clock = Clock()
    table, other = two_tables(clock, **LEAFY, **{"write.metadata.inline-snapshots": "3"})
    with within(clock):
        for id in range(30):
            other.append(some((id, "b")))
    assert other.metadata.snapshot_pages
    clock.at_ms += LONG
    for each in history(other.metadata, other.files.page):
        other.files.delete([each.root_file])
    done = remove(table, clock)
    assert done.orphan_file_location == (f"{table.location}/data/stray.parquet",)


def test_purging_a_table_leaves_what_another_has_in_its_metadata_folder() -> None:
    clock = Clock()
    table, other = two_tables(clock)
    with within(clock):
        other.set_properties({"write.data.path": f"{table.location}/metadata"})
        other.append(some((2, "b")))
        forget(other, "write.data.path")
        plant(table, "metadata/stray.parquet")
    purge(table)
    assert other.refresh().verify(deep=True).is_clean
    assert f"{table.location}/metadata/stray.parquet" not in stored(table)


def test_a_copy_of_the_metadata_does_not_tell_that_its_files_are_its_own() -> None:
    clock = Clock()
    table, other = two_tables(clock)
    with within(clock):
        other.append(some((2, "b")))
        lake = Lake(catalog=table.catalog, store=table.files.store, warehouse="memory://lake")
        copy = lake.copy_table("db.other", "db.copy", metadata_only=True)
    assert told(other) == ["false"]
    assert told(copy) == [None]


def told(table: Table) -> list[str | None]:
    every = history(table.metadata, table.files.page)
    return [(each.summary or {}).get(FILES_OUTSIDE) for each in every]


@pytest.mark.law
@pytest.mark.parametrize("seed", range(4 * EFFORT))
def test_no_snapshot_that_names_a_file_elsewhere_tells_that_it_names_none(seed: int) -> None:
    choose = random.Random(seed)
    table = changing_table(properties=LEAFY if seed % 2 else {})
    for id in range(12):
        match choose.randrange(5):
            case 0:
                table.append_files([far_file(f"memory://else/{id}.parquet")])
            case 1 if table.inspect.files().num_rows:
                every = table.inspect.files()["file_path"].to_pylist()
                table.delete_files([choose.choice(every)])
            case 2:
                table.maintenance.rewrite_manifests()
            case _:
                table.append(some((id, "a")))
    shape = table.metadata.shape()
    for each in history(table.metadata, table.files.page):
        reach = Reach()
        reach.add(each, table.files, shape)
        parts = [reach.settle(), *needed_below(reach, table.files.reader(shape))]
        outside = any(pc.any(is_uri(part["location"])).as_py() for part in parts)
        assert not outside or (each.summary or {})[FILES_OUTSIDE] == "true"
    assert None not in told(table)
