"""Whole tables, copied and backed up while others write."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import icetree
from icetree.errors import AlreadyExists, CommitUnknown, CorruptTable, InvalidInput, Unavailable
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.catalog.flaky import FlakyCatalog, LoseRequest, Refuse
from tests.rows.lake import rows
from tests.store.flaky import Fault, FlakyStore, How
from tests.table.changing import changing_table, some
from tests.table.maintain.history import stored, told
from tests.table.maintain.old_tables import lake_of, old_table
from tests.table.maintain.strays import Killed, far_file


def rows_of(table: Table) -> list[str]:
    """Rows with their lineage."""
    columns = ["id", "v", "_row_id", "_last_updated_sequence_number"]
    return rows(table.refresh().scan(columns=columns).to_arrow())


def test_a_copy_is_a_table_of_its_own_with_all_of_the_past() -> None:
    table = old_table()
    ids = {each.snapshot_id for each in table.history()}
    before = told(table, ids)
    lake = lake_of(table)
    copy = lake.copy_table("db.rows", "db.copy")
    assert copy.location == "memory://lake/db/copy"
    assert copy.metadata.table_uuid != table.metadata.table_uuid
    files = {id: (each.rows, each.changed) for id, each in before.items()}
    assert {id: (each.rows, each.changed) for id, each in told(copy, ids).items()} == files
    assert copy.verify(deep=True).findings == ()
    # Neither knows of the other.
    lake.drop_table("db.rows", purge=True)
    copy.append(some((5_000, "mine")))
    assert lake.table("db.copy").verify(deep=True).findings == ()


def test_a_copy_of_metadata_alone_may_be_of_a_table_that_has_had_no_files() -> None:
    table = changing_table()
    table.append(some((1, "a")))
    table.truncate()
    table.truncate()
    lake = lake_of(table)
    copy = lake.copy_table(str(table.name), "db.copy", metadata_only=True)
    assert rows_of(copy) == []
    assert len([*copy.history()]) == len([*table.history()])
    assert copy.verify(deep=True).findings == ()


def test_a_copy_of_metadata_alone_has_all_of_the_past_and_never_harms_a_file_of_the_other() -> None:
    table = old_table()
    table.maintenance.compute_table_stats(columns=["id"])
    ids = {each.snapshot_id for each in table.history()}
    before, files = told(table, ids), stored(table)
    lake = lake_of(table)
    would = lake.copy_table("db.rows", "db.copy", metadata_only=True, dry_run=True)
    assert stored(table) == files
    copy = lake.copy_table("db.rows", "db.copy", metadata_only=True)
    assert len(stored(copy)) == would.copied_files_count
    assert not any("/data/" in each for each in stored(copy))
    assert copy.metadata.table_uuid != table.metadata.table_uuid
    read = {id: (each.rows, each.changed) for id, each in before.items()}
    assert {id: (each.rows, each.changed) for id, each in told(copy, ids).items()} == read
    assert copy.verify(deep=True).findings == ()
    was = rows_of(copy)
    copy.append(some((5_000, "mine")))
    copy.delete("id = 5000")
    copy.maintenance.rewrite_data_files(options={"rewrite-all": True})
    copy.maintenance.rewrite_manifests()
    copy.maintenance.rewrite_position_delete_files()
    assert rows_of(copy) == was
    copy.maintenance.expire_snapshots(older_than="2100-01-01", retain_last=1)
    copy.maintenance.remove_orphan_files(older_than="2100-01-01", force=True)
    assert lake.table("db.copy").verify(deep=True).findings == ()
    lake.drop_table("db.copy", purge=True)
    assert stored(copy) == set()
    assert stored(table) == files
    assert told(table, ids) == before


def test_a_copy_of_metadata_alone_knows_what_is_gone_from_manifests_of_before_an_upgrade() -> None:
    table = changing_table(properties={"write.manifest-dv.inline-max-bytes": "0"})
    lake = lake_of(table)
    for id in range(6):
        table.append(some((id, "a")))
    lake.downgrade_table(str(table.name))
    lake.upgrade_table(str(table.name))
    table.refresh().delete("id = 2")
    table.append(some((7, "b")))
    table.delete("id in (4, 7)")
    was = rows_of(table)
    copy = lake.copy_table(str(table.name), "db.copy", metadata_only=True)
    assert rows_of(copy) == was
    assert copy.verify(deep=True).findings == ()
    copy.delete("id = 1")
    assert len(rows_of(copy)) == len(was) - 1
    assert rows_of(table) == was


def test_pages_of_copied_manifests_have_checksums() -> None:
    table = old_table()
    copy = lake_of(table).copy_table("db.rows", "db.copy", metadata_only=True)
    files = copy.files.store._files  # type: ignore[attr-defined]
    root = f"{copy.location}/{copy.snapshot().root_manifest}"
    content, written = files[root]
    bad = 0
    for at in range(100, len(content) // 2, 97):
        files[root] = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :], written
        with suppress(CorruptTable):
            fresh = lake_of(copy).table("db.copy")
            bad += rows_of(fresh) != rows_of(table)
    files[root] = content, written
    assert bad == 0


@pytest.mark.parametrize("fault", [How.BEFORE, How.AFTER])
def test_a_copy_of_metadata_that_fails_leaves_nothing(fault: How) -> None:
    table = old_table()
    files = stored(table)
    store = FlakyStore(table.files.store)
    lake = Lake(catalog=table.catalog, store=store, warehouse="memory://lake")
    lake.copy_table("db.rows", "db.copy", metadata_only=True)
    lake.drop_table("db.copy", purge=True)
    writes = sum(each.operation == "write_new" for each in store.steps)
    for at in {0, writes // 2, writes - 1}:
        once = FlakyStore(table.files.store, [Fault(at=at, how=fault, operation="write_new")])
        lake = Lake(catalog=table.catalog, store=once, warehouse="memory://lake")
        with pytest.raises(Unavailable):
            lake.copy_table("db.rows", "db.copy", metadata_only=True)
        assert not lake.table_exists("db.copy")
        assert {each.location for each in table.files.store.list("memory://lake")} == files


def test_of_two_copies_of_metadata_to_one_place_the_later_leaves_the_other_whole() -> None:
    """Both find the place empty, and manifests of both have the same names."""
    table, there = old_table(), "memory://lake/there"
    lake = lake_of(table)
    before = rows_of(table)

    def first(what: str, done: int, _: int) -> None:
        if (what, done) == ("trees", 1):
            lake.copy_table("db.rows", "db.first", location=there, metadata_only=True)

    with pytest.raises(AlreadyExists):
        lake.copy_table("db.rows", "db.second", location=there, metadata_only=True, progress=first)
    copy = lake_of(table).table("db.first")
    assert rows_of(copy) == before
    assert copy.verify(deep=True).is_clean


def test_a_copy_of_metadata_takes_no_place_that_is_taken() -> None:
    table = old_table()
    lake = lake_of(table)
    table.files.store.write_new("memory://lake/there/file", b"somebody's")
    with pytest.raises(InvalidInput, match="is not empty"):
        lake.copy_table("db.rows", "db.copy", location="memory://lake/there", metadata_only=True)


def test_a_backup_is_the_table_as_it_was_and_can_be_registered(tmp_path: Path) -> None:
    with icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
        table.append(pa.table({"id": [1]}))
        at = lake.backup_table("db.t", str(tmp_path / "backup"))
        table.append(pa.table({"id": [2]}))
        lake.drop_table("db.t", purge=True)
        found = lake.register_table("db.t", at)
        assert found.scan().to_arrow()["id"].to_pylist() == [1]
        assert found.metadata.table_uuid == table.metadata.table_uuid
        found.append(pa.table({"id": [3]}))
        assert found.verify(deep=True).findings == ()


def test_a_dry_run_of_a_copy_counts_the_same_files_and_writes_none() -> None:
    table = old_table()
    store = FlakyStore(table.files.store)
    lake = Lake(catalog=table.catalog, store=store, warehouse="memory://lake")
    would = lake.copy_table("db.rows", "db.copy", dry_run=True)
    back = lake.backup_table("db.rows", "memory://safe/t", dry_run=True)
    assert [each for each in store.steps if each.operation == "write_new"] == []
    assert not lake.table_exists("db.copy")
    assert would.copied_files_count == back.copied_files_count
    at = lake.backup_table("db.rows", "memory://safe/t")
    written = [each for each in store.steps if each.operation == "write_new"]
    assert (back.copied_files_count, back.kept_files_count) == (len(written), 0)
    assert back.metadata_location == at
    again = lake.backup_table("db.rows", "memory://safe/t", dry_run=True)
    assert (again.copied_files_count, again.kept_files_count) == (0, len(written))
    with pytest.raises(InvalidInput, match="lie one in the other"):
        lake.backup_table("db.rows", "memory://lake", dry_run=True)


def test_a_second_backup_copies_only_what_is_new() -> None:
    table = old_table()
    store = FlakyStore(table.files.store)
    lake = Lake(catalog=table.catalog, store=store, warehouse="memory://lake")
    lake.backup_table("db.rows", "memory://safe/t")
    written = [each.location for each in store.steps if each.operation == "write_new"]
    table.append(some((7_000, "new")))
    start = len(store.steps)
    at = lake.backup_table("db.rows", "memory://safe/t/")
    new = [each for each in store.steps[start:] if each.operation == "write_new"]
    assert len(new) < 10 < len(written)
    assert new[-1].location == at
    assert lake.backup_table("db.rows", "memory://safe/t") == at


def test_two_backups_of_one_state_to_one_place_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    table, there = old_table(), "memory://backup/rows"
    lake, store = lake_of(table), table.files.store
    made, write_new = list[str](), store.write_new

    def beside_another(location: str, content: bytes) -> None:
        # The other ends while this one is about to write what makes it whole.
        if location.endswith(".metadata.json") and not made:
            made.append("")
            made[0] = lake.backup_table("db.rows", there)
        write_new(location, content)

    monkeypatch.setattr(store, "write_new", beside_another)
    assert [lake.backup_table("db.rows", there)] == made
    assert rows_of(lake.register_table("db.again", made[0])) == rows_of(table)


def test_a_backup_while_others_write_and_expire_is_whole() -> None:
    """What goes while it is copied is gone: then the backup is of the table as it is after that."""
    table = old_table()
    other, once = lake_of(table).table("db.rows"), []

    def meanwhile(what: str, *_: int) -> None:
        if what == "files copied" and not once:
            once.append(other.append(some((8_000, "late"))))
            other.maintenance.expire_snapshots(older_than="2100-01-01", retain_last=1)

    lake = lake_of(table)
    at = lake.backup_table("db.rows", "memory://safe/t", progress=meanwhile)
    found = lake.register_table("db.back", at)
    assert found.verify(deep=True).findings == ()
    assert rows(found.scan().to_arrow()) == rows(lake.table("db.rows").scan().to_arrow())


@pytest.mark.parametrize("kind", [Unavailable, Killed])
def test_a_backup_that_is_cut_off_goes_on_where_it_stopped(kind: type[BaseException]) -> None:
    table = changing_table()
    for number in range(3):
        table.append(some((number, "a")))
    inner = table.files.store
    store = FlakyStore(inner)
    Lake(catalog=table.catalog, store=store).backup_table("db.rows", "memory://safe/0")
    writes = sum(each.operation == "write_new" for each in store.steps)
    for at in range(writes):
        for how in (How.BEFORE, How.AFTER):
            place = f"memory://safe/{at}-{how.name}"
            fault = Fault(at=at, how=how, operation="write_new", error=kind)  # type: ignore[arg-type]
            flaky = Lake(catalog=table.catalog, store=FlakyStore(inner, [fault]))
            with pytest.raises(kind):
                flaky.backup_table("db.rows", place)
            there = [each.location for each in inner.list(place)]
            assert [each for each in there if each.endswith("metadata.json")] == [] or (
                at == writes - 1 and how is How.AFTER
            )
            metadata = lake_of(table).backup_table("db.rows", place)
            found = lake_of(table).register_table(f"db.b{at}{how.name}", metadata)
            assert found.verify(deep=True).findings == ()


def _old_version(lake: Lake) -> None:
    lake.table("db.rows").append_files([far_file("memory://other/a.parquet")])


@pytest.mark.parametrize(
    ("do", "place", "told"),
    [
        (lambda _: None, "memory://lake/db/rows/inner", "lie one in the other"),
        (lambda _: None, "memory://lake", "lie one in the other"),
        (lambda _: None, "memory://lake/db/../x", "has a part"),
        (_old_version, "memory://safe/t", "lies outside the table's folder"),
        (
            lambda lake: lake.create_table("db.there", changing_table().schema),
            "memory://lake/db/there",
            "table db.there lies at",
        ),
    ],
)
def test_a_place_or_a_table_that_makes_no_whole_copy_is_refused(
    do: Callable[[Lake], object], place: str, told: str
) -> None:
    table = changing_table()
    table.append(some((1, "a")))
    lake = lake_of(table)
    do(lake)
    before = dict(table.files.store._files)  # type: ignore[attr-defined]
    with pytest.raises(InvalidInput, match=told):
        lake.backup_table("db.rows", place)
    assert table.files.store._files == before  # type: ignore[attr-defined]


def test_a_copy_takes_no_name_that_is_taken() -> None:
    table = changing_table()
    lake = lake_of(table)
    with pytest.raises(AlreadyExists, match=r"table db\.rows exists"):
        lake.copy_table("db.rows", "db.rows")


@pytest.mark.parametrize("fault", [Refuse(Unavailable("cut off")), LoseRequest()])
def test_a_copy_that_is_cut_off_before_it_has_its_name_is_taken_up(
    fault: Refuse | LoseRequest,
) -> None:
    table = changing_table()
    table.append(some((1, "a")))
    catalog = FlakyCatalog(table.catalog, faults={("create", 1): fault})
    lake = Lake(catalog=catalog, store=table.files.store, warehouse="memory://lake")
    with pytest.raises((Unavailable, CommitUnknown)):
        lake.copy_table("db.rows", "db.copy")
    copy = lake.copy_table("db.rows", "db.copy")
    assert copy.location == "memory://lake/db/copy"
    assert copy.metadata.table_uuid != table.metadata.table_uuid
    assert rows(copy.scan().to_arrow()) == rows(some((1, "a")))
    assert copy.verify(deep=True).findings == ()


def test_a_copy_never_takes_up_a_backup() -> None:
    table = changing_table()
    table.append(some((1, "a")))
    lake = lake_of(table)
    lake.backup_table("db.rows", "memory://safe/t")
    with pytest.raises(AlreadyExists):
        lake.copy_table("db.rows", "db.copy", location="memory://safe/t")
    assert not lake.table_exists("db.copy")
