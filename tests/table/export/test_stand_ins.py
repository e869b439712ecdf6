"""Data DVs in v2: position delete files stand for them, in exports and in what clients send back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

from icetree.catalog.memory import MemoryCatalog
from icetree.codec.legacy.encode_list import read_listed
from icetree.errors import Unavailable
from icetree.files.cache import Cache
from icetree.spec.entry.entry import (
    Content,
    Entries,
    Status,
    from_table,
    is_content,
    is_live,
    only,
)
from icetree.spec.location import absolute
from icetree.store.local import LocalStore
from icetree.store.memory import MemoryStore
from icetree.surroundings import within
from icetree.table.export.export import export
from icetree.table.export.places import EXPORTS
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import usually
from tests.store.flaky import Fault, FlakyStore, How
from tests.table.changing import ARROW, LEAFY, delete_rows, now, some
from tests.table.export.stock_client import StockClient
from tests.table.export.test_foreign import ids, some_table
from tests.table.maintain.history import Clock, Past

DAYS = 6 * 24 * 3_600_000


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake(catalog=MemoryCatalog("m"), store=LocalStore(), warehouse=str(tmp_path)) as opened:
        yield opened


def stand_ins(table: Table) -> set[str]:
    """Return the names of the files that stand for DVs."""
    place = absolute(EXPORTS, table.location)
    found = (each.location for each in table.files.store.list(place))
    return {each for each in found if each.endswith(".parquet")}


def deletes(table: Table) -> Entries:
    """Return what a client of v2 is told of deletes."""
    return StockClient(table, version=2).files(holds_data=False)


def live_names(table: Table) -> set[str]:
    entries = deletes(table)
    names = only(entries, is_live(entries))["location"].to_pylist()
    return {absolute(each, table.location) for each in names}


# --- exports -----------------------------------------------------------------------------------


def test_a_vector_becomes_a_small_file_of_positions_told_as_the_vector_is() -> None:
    table = some_table()
    delete_rows(table, [1, 2, 7])
    vectors = {
        each.referenced_file: each
        for each in from_table(StockClient(table).files(holds_data=False))
    }
    found = from_table(deletes(table))
    assert len(found) == len(vectors) == 2
    for each in found:
        vector = vectors[each.referenced_file]
        assert (each.content_type, each.file_format) == (Content.POSITION_DELETES, "parquet")
        assert (each.dv_offset, each.dv_size_in_bytes) == (None, None)
        for same in ("status", "snapshot_id", "sequence_number", "record_count"):
            assert getattr(each, same) == getattr(vector, same)
        content = table.files.store.read(absolute(str(each.location), table.location))
        assert each.file_size_in_bytes == len(content)
        file = pq.ParquetFile(pa.BufferReader(content))
        ids = [int(f.metadata[b"PARQUET:field_id"]) for f in file.schema_arrow]
        assert ids == [2147483546, 2147483545]
        rows = file.read()
        assert rows["file_path"].to_pylist() == [
            absolute(str(each.referenced_file), table.location)
        ] * len(rows)
        assert rows["pos"].to_pylist() == sorted(rows["pos"].to_pylist())
        path = each.stats[2147483546]
        assert path.lower == path.upper == absolute(str(each.referenced_file), table.location)


def test_a_second_export_writes_nothing_and_a_later_one_only_what_is_new() -> None:
    table = some_table()
    delete_rows(table, [1, 7])
    before = {*table.export(format_version=2).written}
    assert stand_ins(table) <= before
    assert len(stand_ins(table)) == 2
    # As another process does, which remembers nothing.
    table.files = replace(table.files, cache=Cache())
    assert table.export(format_version=2).written == ()
    delete_rows(table, [8])
    later = table.export(format_version=2)
    assert len([each for each in later.written if each.endswith(".parquet")]) == 1
    assert later.reused_manifests_count > 0


def test_a_vector_that_goes_is_told_by_the_name_it_was_told_by() -> None:
    table = some_table()
    delete_rows(table, [1])
    [before] = live_names(table)
    delete_rows(table, [2])
    entries = from_table(deletes(table))
    went = [each for each in entries if each.status == Status.DELETED]
    assert [absolute(str(each.location), table.location) for each in went] == [before]
    assert [each.snapshot_id for each in went] == [now(table)]
    assert {each.file_format for each in entries} == {"parquet"}


def test_vectors_of_an_upgraded_table_are_told_too(lake: Lake) -> None:
    lake.create_namespace("db")
    table = lake.create_table("db.t", ARROW, properties=LEAFY)
    for start in range(0, 12, 3):
        table.append(some(*((start + at, "a") for at in range(3))))
    delete_rows(table, [1, 7])
    lake.downgrade_table("db.t")
    table = lake.table("db.t")
    table.upgrade()
    for _ in range(2):
        theirs = StaticTable.from_metadata(table.export(format_version=2).metadata_location)
        assert {each.file.file_format.name for each in theirs.scan().plan_files()} == {"PARQUET"}
        kinds = {
            d.file_format.name for each in theirs.scan().plan_files() for d in each.delete_files
        }
        assert kinds == {"PARQUET"}
        assert sorted(theirs.scan().to_arrow()["id"].to_pylist()) == ids(table)
        table.append(some((50, "b")))


@pytest.mark.parametrize("how", [How.BEFORE, How.AFTER])
def test_an_export_that_fails_at_any_step_is_finished_by_the_next(how: How) -> None:
    store = MemoryStore()
    opened = Lake(catalog=MemoryCatalog("m"), store=store, warehouse="memory://w")
    opened.create_namespace("db")
    table = opened.create_table("db.t", ARROW, properties=LEAFY)
    table.append(some((0, "a"), (1, "a"), (2, "a")))
    delete_rows(table, [1])
    start = dict(store._files)

    def exported(fault: Fault | None) -> tuple[int, dict[str, bytes]]:
        flaky = FlakyStore(store, faults=[] if fault is None else [fault])
        files = replace(table.files, store=flaky, cache=Cache())
        export(table.state, files, table.metadata.current_snapshot(), format_version=2)
        return len(list(flaky.steps)), {
            name: held[0] for name, held in store._files.items() if EXPORTS in name
        }

    steps, wanted = exported(None)
    for at in range(steps):
        store._files.clear()
        store._files.update(start)
        with suppress(Unavailable):
            exported(Fault(at=at, how=how))
        assert exported(None)[1] == wanted


# --- how long they live ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", usually(range(4), 1))
def test_what_stands_for_a_vector_lives_as_long_as_the_vector(seed: int) -> None:
    past = Past(seed)
    with within(past.clock):
        past.live(14)
        table = past.table
        for each in list(table.history()):
            table.export(at=each.snapshot_id, format_version=2)
        assert stand_ins(table)
        past.clock.at_ms += DAYS
        table.maintenance.remove_orphan_files()
        _require_there(table)
        table.maintenance.expire_snapshots(retain_last=1)
        _require_there(table)
        left = stand_ins(table)
        # What is left is what orphan removal leaves.
        past.clock.at_ms += DAYS
        table.maintenance.remove_orphan_files()
        assert stand_ins(table) == left
        _require_there(table)
        table.delete("true")
        table.maintenance.expire_snapshots(retain_last=1, older_than="2099-01-01")
        table.append(some((90, "z")))
        past.clock.at_ms += DAYS
        table.maintenance.expire_snapshots(retain_last=1, older_than="2099-01-01")
        assert stand_ins(table) == set()


def _require_there(table: Table) -> None:
    """Require every file that an export of a snapshot names, which is there from before."""
    table.files = replace(table.files, cache=Cache())
    for each in list(table.history()):
        told = table.export(at=each.snapshot_id, format_version=2)
        assert [name for name in told.written if not name.endswith(".metadata.json")] == []
        theirs = _told_in(table, str(told.manifest_list))
        assert theirs <= stand_ins(table)


def _told_in(table: Table, manifest_list: str) -> set[str]:
    kept = read_listed(table.files.store.read(manifest_list), file=manifest_list)
    if all(each.holds_data for each in kept):
        return set()
    client = StockClient(table, version=2)
    client.kept = kept
    entries = client.files(holds_data=False)
    live = only(entries, is_live(entries))
    live = only(live, is_content(live, Content.POSITION_DELETES))
    return {absolute(each, table.location) for each in live["location"].to_pylist()}


def test_one_that_no_export_can_name_any_more_is_an_orphan() -> None:
    clock = Clock()
    with within(clock):
        opened = Lake(catalog=MemoryCatalog("m"), store=MemoryStore(), warehouse="memory://w")
        opened.create_namespace("db")
        table = opened.create_table("db.t", ARROW)
        table.append(some((1, "a"), (2, "a")))
        start = now(table)
        delete_rows(table, [1])
        table.export(format_version=2)
        [name] = stand_ins(table)
        content = table.files.store.read(name)
        table.rollback(start)
        table.maintenance.expire_snapshots(retain_last=1, older_than="2099-01-01")
        assert stand_ins(table) == set()
        # A delete may fail, and so leave it there.
        table.files.store.write_new(name, content)
        clock.at_ms += DAYS
        assert name in table.maintenance.remove_orphan_files().orphan_file_location


def test_a_purge_takes_them_along() -> None:
    opened = Lake(catalog=MemoryCatalog("m"), store=MemoryStore(), warehouse="memory://w")
    opened.create_namespace("db")
    table = opened.create_table("db.t", ARROW)
    table.append(some((1, "a"), (2, "a")))
    delete_rows(table, [1])
    table.export(format_version=2)
    opened.drop_table("db.t", purge=True)
    assert list(opened.store.list("memory://w")) == []
