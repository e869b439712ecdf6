"""Statistics of a snapshot: what is told of its values and partitions, and how long it is kept."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icetree.codec import puffin
from icetree.errors import CommitConflict, CommitUnknown, InvalidInput, Unavailable
from icetree.spec.location import absolute
from icetree.surroundings import within
from icetree.table.lake import Lake
from icetree.table.point import time_of
from icetree.table.table import Table
from tests.catalog.flaky import FlakyCatalog, LoseAnswer, Refuse
from tests.rows.lake import new_lake, new_table
from tests.store.flaky import Fault, FlakyStore, How
from tests.table.changing import changing_table, delete_equal, some
from tests.table.maintain.history import SECOND, Clock, stored
from tests.table.maintain.strays import LONG, Killed, another, remove

COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int32()),
        ("name", pa.string()),
        ("price", pa.decimal128(9, 2)),
        ("flag", pa.bool_()),
        ("tags", pa.list_(pa.int64())),
        ("none", pa.string()),
    ]
)


def values(count: int) -> pa.Table:
    found = [
        {
            "id": at,
            "n": at % 7,
            "name": f"name {at % 100}",
            "price": Decimal(at % 13),
            "flag": bool(at % 2),
        }
        for at in range(count)
    ]
    return pa.Table.from_pylist(found, COLUMNS)


def table_of(count: int = 500, **how: Any) -> Table:
    table = new_table(COLUMNS, **how)
    table.append(values(count))
    return table


def footer_of(table: Table, location: str) -> puffin.Footer:
    content = table.files.store.read(location)
    return puffin.read_footer(lambda at, size: content[at : at + size], len(content), file=location)


# --- tables ------------------------------------------------------------------------------------


def test_distinct_values_are_counted_exactly_while_they_are_few() -> None:
    table = table_of()
    done = table.maintenance.compute_table_stats()
    exact = {"id": 500, "n": 7, "name": 100, "price": 13, "flag": 2, "none": 0}
    assert done.ndv == exact
    assert str(done).startswith("distinct values: id 500, n 7")
    snapshot = table.current_snapshot
    assert snapshot is not None
    assert done.statistics_file is not None
    footer = footer_of(table, done.statistics_file)
    assert {each.fields[0]: each.properties["ndv"] for each in footer.blobs} == {
        table.schema.find_field(name).field_id: str(count) for name, count in exact.items()
    }
    for each in footer.blobs:
        assert each.type == "apache-datasketches-theta-v1"
        assert (each.snapshot_id, each.sequence_number) == (
            snapshot.snapshot_id,
            snapshot.sequence_number,
        )
    [kept] = table.refresh().metadata.statistics
    assert absolute(kept.statistics_path, table.location) == done.statistics_file
    assert kept.file_size_in_bytes == table.files.store.size(done.statistics_file)
    content = table.files.store.read(done.statistics_file)
    assert content[-kept.file_footer_size_in_bytes :].startswith(puffin.MAGIC)
    assert [each["properties"] for each in kept.blob_metadata] == [
        each.properties for each in footer.blobs
    ]
    assert table.verify(deep=True).findings == ()


def test_many_distinct_values_are_told_nearly() -> None:
    table = table_of(60_000)
    done = table.maintenance.compute_table_stats(columns=["id", "n"], dry_run=True)
    assert done.statistics_file is None
    assert done.ndv["n"] == 7
    # Hashes of given values never change, so this is no matter of luck.
    assert done.ndv["id"] == pytest.approx(60_000, rel=0.05)
    assert table.refresh().metadata.statistics == ()


def test_deleted_rows_and_other_snapshots_are_told_apart() -> None:
    table = changing_table()
    table.append(some(*((id, "a") for id in range(10))))
    first = table.current_snapshot
    assert first is not None
    table.delete("id >= 4")
    assert table.maintenance.compute_table_stats(columns=["id"]).ndv == {"id": 4}
    then = table.maintenance.compute_table_stats(columns=["id"], at=first.snapshot_id)
    assert then.ndv == {"id": 10}
    assert len(table.metadata.statistics) == 2
    again = table.maintenance.compute_table_stats(columns=["v"])
    assert len(table.metadata.statistics) == 2
    paths = [each.statistics_path for each in table.metadata.statistics]
    assert any(again.statistics_file == absolute(each, table.location) for each in paths)


def test_columns_that_cannot_be_counted_are_refused() -> None:
    table = table_of(1)
    with pytest.raises(InvalidInput, match="'tags', which is list<long>"):
        table.maintenance.compute_table_stats(columns=["tags"])
    with pytest.raises(InvalidInput, match="has 'nope': the table has id, n, name"):
        table.maintenance.compute_table_stats(columns=["nope"])


def test_a_table_that_never_had_rows_has_no_statistics() -> None:
    table = new_table(COLUMNS, partition_by=["n"])
    assert table.maintenance.compute_table_stats().statistics_file is None
    assert table.maintenance.compute_partition_stats().partition_statistics_file is None


# --- partitions --------------------------------------------------------------------------------


def partitioned() -> Table:
    schema = pa.schema([("id", pa.int64()), ("country", pa.string())])
    table = new_table(schema, partition_by=["country", "bucket(4, id)"])
    with table.edit_spec() as spec:
        spec.remove("bucket(4, id)")
    for countries in (["DE", "DE", None], ["FR", "DE"]):
        table.append(pa.table({"id": range(len(countries)), "country": countries}))
    return table


def told_of(table: Table) -> pa.Table:
    found = table.maintenance.compute_partition_stats().partition_statistics_file
    assert found is not None
    return pq.read_table(pa.BufferReader(table.files.store.read(found)))


def test_each_partition_is_told_of_as_the_specification_says() -> None:
    table = partitioned()
    found = told_of(table)
    ids = [int(each.metadata[b"PARQUET:field_id"]) for each in found.schema]
    assert ids == [*range(1, 14)]
    names = ["partition", "spec_id", "data_record_count", "data_file_count"]
    assert found.column_names[:4] == names
    inner = found.schema.field("partition").type
    assert [(each.name, int(each.metadata[b"PARQUET:field_id"])) for each in inner] == [
        ("country", 1000),
        ("id_bucket_4", 1001),
    ]
    rows = found.to_pylist()
    assert [each["partition"]["country"] for each in rows] == [None, "DE", "FR"]
    assert [each["data_record_count"] for each in rows] == [1, 3, 1]
    assert [each["data_file_count"] for each in rows] == [1, 2, 1]
    assert [each["total_record_count"] for each in rows] == [1, 3, 1]
    newest = table.current_snapshot
    assert newest is not None
    assert [each["last_updated_snapshot_id"] == newest.snapshot_id for each in rows] == [
        False,
        True,
        True,
    ]
    assert rows[1]["last_updated_at"] == newest.timestamp_ms
    [kept] = table.metadata.partition_statistics
    assert kept.snapshot_id == newest.snapshot_id
    assert table.verify(deep=True).findings == ()


def test_vectors_are_counted_apart_and_what_only_rows_could_tell_is_left_open() -> None:
    table = partitioned()
    table.delete("country = 'DE' and id = 0")
    german = told_of(table).to_pylist()[1]
    assert (german["dv_count"], german["position_delete_file_count"]) == (1, 0)
    assert german["position_delete_record_count"] == 1
    assert (german["data_record_count"], german["total_record_count"]) == (3, 2)
    plain = changing_table(partition_by=["v"])
    plain.append(some((1, "a"), (2, "b")))
    with plain.edit_spec() as spec:
        spec.remove("v")
    delete_equal(plain, [1])
    rows = told_of(plain).to_pylist()
    assert [each["total_record_count"] for each in rows] == [None] * len(rows)
    assert sum(each["equality_delete_file_count"] for each in rows) == 1


def test_a_table_without_partitions_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has no partitions"):
        table_of(1).maintenance.compute_partition_stats()


# --- how long they are kept --------------------------------------------------------------------


def test_they_stay_through_commits_and_orphans_and_go_with_their_snapshot() -> None:
    clock = Clock()
    with within(clock):
        table = partitioned()
        table.maintenance.compute_table_stats()
        table.maintenance.compute_partition_stats()
        metadata = table.metadata
        paths = {absolute(each.statistics_path, table.location) for each in metadata.statistics}
        paths |= {
            absolute(each.statistics_path, table.location) for each in metadata.partition_statistics
        }
        clock.tick()
        table.append(pa.table({"id": [9], "country": ["IT"]}))
    clock.at_ms += LONG
    assert remove(table, clock).orphan_file_location == ()
    assert len(paths) == 2
    assert paths <= stored(table)
    with within(clock):
        done = table.maintenance.expire_snapshots(
            older_than=time_of(clock.at_ms + SECOND), retain_last=1
        )
    assert done.deleted_statistics_files_count == 2
    assert paths.isdisjoint(stored(table))
    assert (table.metadata.statistics, table.metadata.partition_statistics) == ((), ())


def test_statistics_of_what_expires_meanwhile_are_not_kept() -> None:
    table = changing_table()
    table.append(some((1, "a")))
    old = table.current_snapshot
    assert old is not None
    table.append(some((2, "b")))
    other, once = another(table), []

    def meanwhile(*_: object) -> None:
        if not once:
            once.append(other.maintenance.expire_snapshots(snapshot_ids=[old.snapshot_id]))

    with pytest.raises(CommitConflict, match="expired before"):
        table.maintenance.compute_table_stats(at=old.snapshot_id, progress=meanwhile)
    assert table.refresh().metadata.statistics == ()
    assert [each for each in stored(table) if each.endswith(".stats")] == []


@pytest.mark.parametrize("kind", [Unavailable, Killed])
def test_whatever_fails_or_kills_it_the_table_has_whole_statistics_or_none(
    kind: type[BaseException],
) -> None:
    def run(*faults: Fault) -> tuple[Table, FlakyStore]:
        lake = new_lake()
        lake.create_table("db.rows", COLUMNS, partition_by=["flag"]).append(values(10))
        store = FlakyStore(lake.store, faults)
        flaky = Lake(catalog=lake.catalog, store=store).table("db.rows")
        try:
            flaky.maintenance.compute_table_stats()
            flaky.maintenance.compute_partition_stats()
        except kind:
            assert faults
        return lake.table("db.rows"), store

    table, store = run()
    assert len(table.metadata.statistics) == len(table.metadata.partition_statistics) == 1
    writes = [each for each in store.steps if each.operation == "write_new"]
    assert len(writes) == 4
    for step in writes:
        for how in (How.BEFORE, How.AFTER):
            fault = Fault(at=step.number, how=how, error=kind)  # type: ignore[arg-type]
            table, _ = run(fault)
            assert table.verify(deep=True).findings == ()


def test_when_it_is_not_known_whether_it_landed_the_file_stays() -> None:
    lake = new_lake()
    how = {"commit.status-check.num-retries": "0", "commit.status-check.max-wait-ms": "0"}
    lake.create_table("db.rows", COLUMNS, properties=how).append(values(10))
    faults = {("swap", 1): LoseAnswer(), ("load", 3): Refuse(Unavailable("busy"))}
    catalog = FlakyCatalog(lake.catalog, faults=faults)
    table = Lake(catalog=catalog, store=lake.store).table("db.rows")
    with suppress(CommitUnknown):
        table.maintenance.compute_table_stats()
    fresh = lake.table("db.rows")
    assert fresh.verify(deep=True).findings == ()
    assert len(fresh.metadata.statistics) == 1
