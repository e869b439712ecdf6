"""Whole tables, dropped with their files: with those and no others."""

from __future__ import annotations

from contextlib import suppress

import pytest

from icetree.catalog.base import TableName, parse_name
from icetree.catalog.memory import MemoryCatalog
from icetree.errors import AlreadyExists, CommitUnknown, InvalidInput, NotFound, Unavailable
from icetree.table.lake import Lake
from tests.catalog.flaky import After, Before, FlakyCatalog, LoseRequest
from tests.rows.lake import rows
from tests.store.flaky import Fault, FlakyStore, How
from tests.table.changing import changing_table, some
from tests.table.maintain.history import stored
from tests.table.maintain.old_tables import lake_of, old_table
from tests.table.maintain.strays import Killed, plant


def test_a_purge_leaves_nothing_of_what_any_snapshot_reached() -> None:
    table = old_table()
    snapshots = len([*table.history()])
    done = lake_of(table).drop_table("db.rows", purge=True)
    assert stored(table) == set()
    assert not lake_of(table).table_exists("db.rows")
    assert done is not None
    assert done.deleted_equality_delete_files_count == 1
    assert done.deleted_manifest_lists_count == snapshots
    assert done.left_behind == ()
    counts = (count for name, count in done.as_dict().items() if name.endswith("_count"))
    assert str(done) == f"{sum(counts):,} files"


def test_a_drop_without_purge_deletes_nothing() -> None:
    table = old_table()
    before = stored(table)
    assert lake_of(table).drop_table("db.rows") is None
    assert stored(table) == before


def test_what_others_put_beside_the_table_stays() -> None:
    table = old_table()
    beside = plant(table, "data/of-somebody.parquet", "notes.txt")
    lake_of(table).drop_table("db.rows", purge=True)
    assert stored(table) == beside


def test_no_purge_where_files_may_be_anothers() -> None:
    table = old_table()
    table.set_properties({"gc.enabled": "false"})
    before, lake = stored(table), lake_of(table)
    with pytest.raises(InvalidInput, match=r"gc\.enabled is false"):
        lake.drop_table("db.rows", purge=True)
    table.set_properties({"gc.enabled": "true"})
    before = stored(table)
    lake.register_table("db.alias", table.state.metadata_location)
    with pytest.raises(InvalidInput, match=r"table db\.alias lies at"):
        lake.drop_table("db.rows", purge=True)
    assert lake.table_exists("db.rows")
    assert stored(table) == before


def test_when_it_is_not_known_whether_the_name_went_no_file_goes() -> None:
    table = old_table()
    before = stored(table)
    catalog = FlakyCatalog(table.catalog, faults={("drop", 1): LoseRequest()})
    with pytest.raises(CommitUnknown):
        Lake(catalog=catalog, store=table.files.store).drop_table("db.rows", purge=True)
    assert stored(table) == before


def test_what_is_committed_while_it_looks_around_goes_too() -> None:
    from icetree.table.maintain.purge import purge

    table = old_table()
    other, once = lake_of(table).table("db.rows"), []

    def meanwhile(what: str, *_: int) -> None:
        if what == "trees" and not once:
            once.append(other.append(some((999, "late"))))

    purge(table, progress=meanwhile)
    assert stored(table) == set()


def test_a_purge_leaves_alone_the_table_that_takes_the_name_next() -> None:
    table = old_table()
    lake, before = lake_of(table), stored(table)

    def take_the_name() -> None:
        lake.create_table("db.rows", table.schema).append(some((7, "next")))

    catalog = FlakyCatalog(table.catalog, faults={("drop", 1): After(take_the_name)})
    Lake(catalog=catalog, store=table.files.store).drop_table("db.rows", purge=True)
    following = lake.table("db.rows")
    # Files of the former one were still there.
    assert following.location.startswith(f"{table.location}-")
    assert rows(following.scan().to_arrow()) == rows(some((7, "next")))
    assert following.verify(deep=True).findings == ()
    assert stored(table).isdisjoint(before)


def test_a_purge_never_drops_another_table_that_has_the_name_now() -> None:
    from icetree.table.maintain.purge import purge

    table = old_table()
    lake, once = lake_of(table), []

    def meanwhile(what: str, *_: int) -> None:
        if what == "trees" and not once:
            lake.drop_table("db.rows")
            once.append(lake.create_table("db.rows", table.schema))
            once[0].append(some((7, "next")))

    before = stored(table)
    with pytest.raises(NotFound):
        purge(table, progress=meanwhile)
    assert lake.table("db.rows").verify(deep=True).findings == ()
    assert stored(table) >= before


def test_a_purge_never_drops_a_table_that_took_the_name_at_the_last_moment() -> None:
    table = old_table()
    lake, before = lake_of(table), stored(table)

    def take_the_name() -> None:
        lake.drop_table("db.rows")
        lake.create_table("db.rows", table.schema).append(some((7, "next")))

    catalog = FlakyCatalog(table.catalog, faults={("drop", 1): Before(take_the_name)})
    with pytest.raises(NotFound):
        Lake(catalog=catalog, store=table.files.store).drop_table("db.rows", purge=True)
    assert rows(lake.table("db.rows").scan().to_arrow()) == rows(some((7, "next")))
    assert stored(table) >= before


def test_what_is_committed_at_the_last_moment_goes_too() -> None:
    table = old_table()
    other = lake_of(table).table("db.rows")
    late = Before(lambda: other.append(some((999, "late"))))
    catalog = FlakyCatalog(table.catalog, faults={("drop", 1): late})
    Lake(catalog=catalog, store=table.files.store).drop_table("db.rows", purge=True)
    assert stored(table) == set()
    assert not lake_of(table).table_exists("db.rows")


def test_a_dry_run_of_a_purge_tells_the_same_and_changes_nothing() -> None:
    table = old_table()
    lake, before = lake_of(table), stored(table)
    would = lake.drop_table("db.rows", purge=True, dry_run=True)
    assert lake.drop_table("db.rows", dry_run=True) is None
    assert stored(table) == before
    assert lake.table("db.rows").verify(deep=True).findings == ()
    done = lake.drop_table("db.rows", purge=True)
    assert would is not None
    assert done is not None
    assert would.as_dict() == {**done.as_dict(), "dry_run": True}
    assert str(would) == str(done) == f"{len(before):,} files"


def test_a_table_under_the_name_of_a_renamed_one_has_a_folder_of_its_own() -> None:
    table = changing_table()
    table.append(some((1, "a")))
    lake = lake_of(table)
    lake.rename_table("db.rows", "db.before")
    again = lake.create_table("db.rows", table.schema)
    again.append(some((2, "b")))
    assert again.location.startswith(f"{table.location}-")
    lake.drop_table("db.rows", purge=True)
    found = lake.table("db.before")
    assert rows(found.scan().to_arrow()) == rows(some((1, "a")))
    assert found.maintenance.remove_orphan_files(dry_run=True).orphan_file_location == ()
    lake.drop_table("db.before", purge=True)
    assert stored(table) == set()
    # Nothing lies there any more.
    assert lake.create_table("db.rows", table.schema).location == table.location


def test_a_copy_to_the_name_of_a_renamed_table_has_a_folder_of_its_own() -> None:
    table = changing_table()
    table.append(some((1, "a")))
    lake = lake_of(table)
    lake.rename_table("db.rows", "db.before")
    copy = lake.copy_table("db.before", "db.rows")
    assert copy.location.startswith(f"{table.location}-")
    assert copy.verify(deep=True).findings == ()


def test_a_dry_run_of_a_rename_refuses_what_the_rename_would_and_changes_nothing() -> None:
    lake = lake_of(changing_table())
    lake.rename_table("db.rows", "db.other", dry_run=True)
    assert lake.tables() == ["db.rows"]
    for name, to, error in (
        ("db.nope", "db.other", NotFound),
        ("db.rows", "nowhere.other", NotFound),
        ("db.rows", "db.rows", AlreadyExists),
    ):
        for dry_run in (True, False):
            with pytest.raises(error):
                lake.rename_table(name, to, dry_run=dry_run)


def test_a_purge_leaves_files_outside_the_table_s_folder() -> None:
    table = changing_table()
    table.append(some((1, "a")))
    lake = lake_of(table)
    borrower = lake.create_table("db.borrower", table.schema)
    [file] = table.scan().plan().tasks["location"].to_pylist()
    borrower.add_files([f"{table.location}/{file}"])
    done = lake.drop_table("db.borrower", purge=True)
    assert done is not None
    assert done.deleted_data_files_count == 0
    assert [*table.files.store.list(borrower.location)] == []
    assert lake.table("db.rows").verify(deep=True).findings == ()


@pytest.mark.parametrize("below", ["data", "metadata", "inner"])
def test_a_purge_leaves_a_table_that_lies_below(below: str) -> None:
    table = changing_table()
    table.append(some((1, "a")))
    lake = lake_of(table)
    inner = lake.create_table("db.inner", table.schema, location=f"{table.location}/{below}")
    inner.append(some((2, "b")))
    lake.drop_table("db.rows", purge=True)
    found = lake.table("db.inner")
    assert found.verify(deep=True).findings == ()
    assert rows(found.scan().to_arrow()) == rows(some((2, "b")))


def test_a_purge_leaves_a_table_below_that_gets_other_names_while_it_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = changing_table()
    table.append(some((1, "a")))
    lake = lake_of(table)
    inner = lake.create_table("db.inner", table.schema, location=f"{table.location}/metadata")
    inner.append(some((2, "b")))
    catalog, load, names = lake.catalog, lake.catalog.load, ["db.second", "db.third"]

    def loaded(name: TableName) -> str:
        if name != table.name and names:
            catalog.rename(name, parse_name(names.pop(0)))
        return load(name)

    monkeypatch.setattr(catalog, "load", loaded)
    lake.drop_table("db.rows", purge=True)
    found = lake.table("db.third")
    assert found.verify(deep=True).findings == ()
    assert rows(found.scan().to_arrow()) == rows(some((2, "b")))


def test_missing_is_fine_where_told_so_but_not_a_table_that_lost_its_metadata() -> None:
    table = changing_table()
    lake = lake_of(table)
    lake.drop_table("db.nope", purge=True, missing_ok=True)
    table.files.store.delete([table.state.metadata_location])
    with pytest.raises(NotFound):
        lake.drop_table("db.rows", purge=True, missing_ok=True)
    assert lake.table_exists("db.rows")


@pytest.mark.parametrize("kind", [Unavailable, Killed])
def test_a_purge_that_is_cut_off_can_be_taken_up_again(kind: type[BaseException]) -> None:
    table = old_table()
    files, newest = dict(table.files.store._files), table.state.metadata_location  # type: ignore[attr-defined]

    def world(*faults: Fault) -> tuple[FlakyStore, Lake]:
        inner = table.files.store
        inner._files.clear()  # type: ignore[attr-defined]
        inner._files.update(files)  # type: ignore[attr-defined]
        catalog, store = MemoryCatalog("m"), FlakyStore(inner, faults)
        catalog.create_namespace(("db",), {})
        catalog.create(table.name, newest)
        return store, Lake(catalog=catalog, store=store)

    store, lake = world()
    lake.drop_table("db.rows", purge=True)
    steps = store.steps
    assert [each.operation for each in steps if each.operation == "delete"]
    # What comes between only reads.
    for step in [*steps[:2], *steps[-4:]]:
        for how in (How.BEFORE, How.AFTER):
            _, lake = world(Fault(at=step.number, how=how, error=kind))  # type: ignore[arg-type]
            with suppress(kind, Unavailable):
                lake.drop_table("db.rows", purge=True)
            fresh = Lake(catalog=lake.catalog, store=table.files.store)
            if not fresh.table_exists("db.rows"):
                if newest not in stored(table):
                    assert stored(table) == set()
                    continue
                fresh.register_table("db.rows", newest)
            fresh.drop_table("db.rows", purge=True)
            assert stored(table) == set()
