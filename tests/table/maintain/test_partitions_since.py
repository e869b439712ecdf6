"""Statistics of partitions from the last ones and what came since: as if the whole tree had been walked."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icetree.surroundings import within
from icetree.table.lake import Lake
from icetree.table.maintain.statistics.partitions import partition_statistics
from icetree.table.maintain.statistics.since import since_last
from icetree.table.table import Table
from icetree.tree.reading import leaves_in
from tests.effort import EFFORT
from tests.rows.lake import new_table
from tests.store.flaky import FlakyStore
from tests.table.changing import changing_table, delete_equal, some
from tests.table.maintain.history import TINY, Past


def since(table: Table, at: str | None = None) -> pa.Table | None:
    snapshot = table.refresh().snapshot(at)
    assert snapshot is not None
    return since_last(table, snapshot, table.metadata.shape())


def whole(table: Table, at: str | None = None) -> pa.Table:
    snapshot = table.refresh().snapshot(at)
    assert snapshot is not None
    return partition_statistics(table, snapshot, table.metadata.shape())


@pytest.mark.law
@pytest.mark.parametrize("seed", range(2 * EFFORT))
def test_what_is_told_of_changes_is_what_the_whole_tree_tells(seed: int) -> None:
    past = Past(seed)
    table = past.table
    with table.edit_spec() as spec:
        spec.add("v")
    past.live(12)
    told = 0
    for _ in range(8):
        with within(past.clock):
            branch = past.choose.choice(
                [n for n, ref in table.refs.items() if ref.type == "branch"]
            )
            table.maintenance.compute_partition_stats(at=branch)
        past.live(past.choose.randint(1, 5))
        for name, ref in table.refresh().refs.items():
            if ref.type == "branch" and (found := since(table, name)) is not None:
                told += 1
                assert found == whole(table, name)
        if past.choose.random() < 0.2:
            with within(past.clock):
                table.maintenance.rewrite_data_files(options={"min-input-files": 2})
    assert told > 1


def parted() -> Table:
    """A table of two partitions with statistics, in some leaves."""
    schema = pa.schema([("id", pa.int64()), ("k", pa.string())])
    table = new_table(schema, partition_by=["k"], properties=TINY)
    for number in range(8):
        table.append(pa.table({"id": [number], "k": ["ab"[number % 2]]}, schema))
    table.maintenance.compute_partition_stats()
    return table


def test_leaves_from_before_are_not_read_again() -> None:
    table = parted()
    old = {
        each.location
        for each in leaves_in(table.files.root(table.snapshot(), table.metadata.shape()))
    }
    table.append(pa.table({"id": [9], "k": ["c"]}))
    store = FlakyStore(table.files.store, ())
    fresh = Lake(catalog=table.catalog, store=store).table(str(table.name))
    found = since(fresh)
    assert found is not None
    assert found == whole(table)
    assert found["partition"].to_pylist() == [{"k": "a"}, {"k": "b"}, {"k": "c"}]
    assert found["data_file_count"].to_pylist() == [4, 4, 1]
    assert found["total_record_count"].to_pylist() == [4, 4, 1]
    read = {step.location for step in store.steps}
    assert len(old) > 2
    assert not any(f"{table.location}/{each}" in read for each in old)


def test_where_changes_do_not_tell_the_whole_tree_is_walked() -> None:
    table = parted()
    assert since(table) is None, "its own are told anew"
    # The newest file of a partition goes: when it was changed before, only its other files tell.
    table.delete("id = 6")
    assert since(table) is None
    table.maintenance.compute_partition_stats()
    assert told(table) == whole(table)
    # A partition that is emptied has no row, so that nothing needs to be told of it.
    table.delete("k = 'b'")
    found = since(table)
    assert found is not None
    assert found["partition"].to_pylist() == [{"k": "a"}]
    with table.edit_spec() as spec:
        spec.add("bucket(2, id)")
    table.append(pa.table({"id": [9], "k": ["c"]}))
    assert since(table) is None, "partitions have other fields now"
    table.maintenance.compute_partition_stats()
    assert told(table) == whole(table)


def test_a_file_that_is_gone_is_not_missed() -> None:
    table = parted()
    [kept] = table.metadata.partition_statistics
    table.files.delete([kept.statistics_path])
    table.append(pa.table({"id": [9], "k": ["c"]}))
    fresh = Lake(catalog=table.catalog, store=table.files.store).table(str(table.name))
    assert since(fresh) is None
    fresh.maintenance.compute_partition_stats()
    assert told(fresh) == whole(fresh)


def test_deletes_by_value_leave_open_how_many_rows_there_are() -> None:
    table = changing_table(partition_by=["v"], properties=TINY)
    for number in range(4):
        table.append(some((number, "a"), (number + 10, "b")))
    table.maintenance.compute_partition_stats()
    delete_equal(table, [1], some((20, "c")))
    found = since(table)
    assert found is not None
    assert found == whole(table)
    assert found["total_record_count"].null_count == found.num_rows


def told(table: Table) -> pa.Table:
    """What the newest statistics tell."""
    newest = table.refresh().current_snapshot
    assert newest is not None
    [file] = [e for e in table.metadata.partition_statistics if e.snapshot_id == newest.snapshot_id]
    return pq.read_table(pa.BufferReader(table.files.fetch(file.statistics_path)))
