"""Schemas, specs, sort orders and expressions that nothing uses go; what is used never does."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from icetree.errors import CommitConflict, InvalidInput
from icetree.rows.write.deletes import write_equality_deletes
from icetree.spec.apply.apply import apply
from icetree.spec.metadata.update import (
    RemoveExpressions,
    RemovePartitionSpecs,
    RemoveSchemas,
    RemoveSortOrders,
    Update,
)
from icetree.surroundings import within
from icetree.table.maintain.expire import Expired
from icetree.table.point import time_of
from icetree.table.table import Table
from tests.rows.lake import new_table, rows
from tests.table.changing import LEAFY, changing_table, delete_equal, some, written
from tests.table.maintain.history import SECOND, Clock
from tests.table.maintain.strays import another

COLUMNS = pa.schema([("id", pa.int64()), ("country", pa.string())])


def some_rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "country": ["DE"] * len(ids)}, COLUMNS)


def clean(table: Table, clock: Clock, **how: Any) -> Expired:
    with within(clock):
        clock.tick()
        return table.maintenance.expire_snapshots(
            older_than=time_of(clock.at_ms + SECOND),
            retain_last=1,
            clean_expired_metadata=True,
            **how,
        )


def evolved(clock: Clock, **how: Any) -> Table:
    """A table that was partitioned, sorted and shaped otherwise before, with files of then."""
    with within(clock):
        table = new_table(COLUMNS, partition_by=["bucket(4, id)"], order_by=["id"], **how)
        table.append(some_rows(1, 2, 3))
        clock.tick()
        with table.transaction() as tx:
            with tx.edit_schema() as schema:
                schema.add("note", "string")
            with tx.edit_spec() as spec:
                spec.remove("bucket(4, id)")
                spec.add("country")
        with table.edit_sort() as order:
            order.asc("country")
        clock.tick()
        table.append(some_rows(4).append_column("note", [["x"]]))
    return table


def ids(table: Table) -> tuple[list[int], list[int], list[int], int]:
    metadata = table.refresh().metadata
    return (
        [each["schema-id"] for each in metadata.schemas],
        [each.spec_id for each in metadata.partition_specs],
        [each.order_id for each in metadata.sort_orders],
        len(metadata.expressions),
    )


@pytest.mark.parametrize("properties", [{}, LEAFY])
def test_what_live_files_are_of_stays(properties: dict[str, str]) -> None:
    """In the root and in leaves, however old the snapshot that wrote them."""
    clock = Clock()
    table = evolved(clock, properties=properties)
    content = rows(table.scan().to_arrow())
    done = clean(table, clock)
    # The first schema has only columns that the present one has, too.
    assert done.cleaned == ("schema 0",)
    assert ids(table) == ([1], [0, 1], [0, 1, 2], 2)
    assert rows(table.scan().to_arrow()) == content
    assert table.verify(deep=True).findings == ()


def test_what_nothing_uses_goes_and_ids_are_never_given_again() -> None:
    clock = Clock()
    table = evolved(clock)
    highest = (table.metadata.last_column_id, table.metadata.last_partition_id)
    with within(clock):
        table.delete("id < 4")
        clock.tick()
        table.append(some_rows(5).append_column("note", [["y"]]))
    plan = clean(table, clock, dry_run=True)
    assert ids(table)[1] == [0, 1]
    done = clean(table, clock)
    assert set(done.cleaned) == {"partition spec 0", "expression 3", "sort order 1", "schema 0"}
    assert plan.cleaned == done.cleaned
    assert str(done).endswith(f"; also {', '.join(done.cleaned)}")
    assert ids(table) == ([1], [1], [0, 2], 1)
    assert (table.metadata.last_column_id, table.metadata.last_partition_id) == highest
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [4, 5]
    assert table.verify(deep=True).findings == ()
    with within(clock), table.edit_spec() as spec:
        spec.add("bucket(4, id)")
    assert max(each.expr_id for each in table.metadata.expressions) > highest[0]
    assert clean(table, clock).cleaned == ()


def test_nothing_goes_unless_asked_for() -> None:
    clock = Clock()
    table = evolved(clock)
    with within(clock):
        table.maintenance.expire_snapshots(older_than=time_of(clock.at_ms + SECOND), retain_last=1)
    assert ids(table) == ([0, 1], [0, 1], [0, 1, 2], 2)


def test_a_tag_keeps_the_schema_of_its_snapshot() -> None:
    clock = Clock()
    table = evolved(clock)
    first = min(table.history(), key=lambda each: each.sequence_number)
    with within(clock):
        table.create_tag("then", at=first.snapshot_id)
    assert clean(table, clock).cleaned == ()
    assert table.scan(at="then").to_arrow().column_names == ["id", "country"]


def test_a_column_that_equality_deletes_match_by_keeps_a_schema_that_has_it() -> None:
    clock = Clock()
    with within(clock):
        table = changing_table(identified=False)
        table.append(some((1, "a"), (2, "b")))
        clock.tick()
        delete_equal(table, [1])
        clock.tick()
        with table.edit_schema() as schema:
            schema.drop("id")
        clock.tick()
        with table.edit_schema() as schema:
            schema.add("more", "string")
        table.update({"more": "'x'"}, where="v = 'nobody'")
    done = clean(table, clock)
    kept = [each["schema-id"] for each in table.refresh().metadata.schemas]
    assert 0 in kept
    assert "schema 1" in done.cleaned
    assert table.scan().to_arrow()["v"].to_pylist() == ["b"]
    assert table.verify(deep=True).findings == ()


def test_a_writer_whose_files_are_of_what_went_has_a_conflict() -> None:
    clock = Clock()
    with within(clock):
        table = new_table(COLUMNS, partition_by=["bucket(4, id)"])
        files = written(table, some_rows(1))
        stale = another(table)
        with table.edit_spec() as spec:
            spec.remove("bucket(4, id)")
        table.append(some_rows(2))
    assert "partition spec 0" in clean(table, clock).cleaned
    with pytest.raises(CommitConflict, match="took away partition spec 0"):
        stale.append_files(files)
    assert table.refresh().scan().to_arrow()["id"].to_pylist() == [2]
    assert table.verify(deep=True).findings == ()


@pytest.mark.parametrize("again", ["country", "bucket(8, id)"])
def test_files_of_a_spec_that_went_never_land_in_one_that_has_its_id_now(again: str) -> None:
    clock = Clock()
    with within(clock):
        table = new_table(COLUMNS)
        table.append(some_rows(1))
        with table.edit_spec() as spec:
            spec.add("bucket(4, id)")
        late = another(table).transaction()
        late.append(some_rows(2, 3))
        with table.edit_spec() as spec:
            spec.remove("bucket(4, id)")
    assert "partition spec 1" in clean(table, clock).cleaned
    with within(clock), table.refresh().edit_spec() as spec:
        spec.add(again)
    assert table.metadata.default_spec_id == 1
    with pytest.raises(CommitConflict, match="took away partition spec 1"):
        late.commit()
    assert table.refresh().scan().to_arrow()["id"].to_pylist() == [1]
    assert table.verify(deep=True).findings == ()


@pytest.mark.parametrize("again", [False, True])
def test_files_of_a_sort_order_that_went_have_a_conflict(again: bool) -> None:
    """Whether or not another order has its id now: they would tell of it what is not so."""
    clock = Clock()
    with within(clock):
        table = new_table(COLUMNS)
        with table.edit_sort() as order:
            order.asc("id")
        late = another(table).transaction()
        late.append(some_rows(2, 3))
        with table.edit_sort() as order:
            order.by()
    assert clean(table, clock).cleaned == ("sort order 1",)
    if again:
        with within(clock), table.refresh().edit_sort() as order:
            order.asc("country")
        assert table.metadata.default_sort_order_id == 1
    with pytest.raises(CommitConflict, match="took away sort order 1"):
        late.commit()


def test_deletes_by_a_column_that_went_with_its_schema_have_a_conflict() -> None:
    """Though there are as many schemas as before."""
    clock = Clock()
    with within(clock):
        table = new_table(COLUMNS)
        table.append(some_rows(1, 2))
        with table.edit_schema() as schema:
            schema.add("k", "long").add("j", "long")
        late = another(table).transaction()
        keys = pa.table({"k": pa.array([20], pa.int64())})
        late.row_delta(
            write_equality_deletes(keys, ["k"], metadata=late.metadata, store=table.files.store)
        )
        with table.edit_schema() as schema:
            schema.drop("k")
    before = len(late.metadata.schemas)
    assert "schema 1" in clean(table, clock).cleaned
    assert len(table.refresh().metadata.schemas) == before
    with pytest.raises(CommitConflict, match="took away column"):
        late.commit()
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2]


def test_a_filter_over_a_schema_that_went_has_a_conflict_though_another_has_its_id() -> None:
    clock = Clock()
    with within(clock):
        table = new_table(COLUMNS)
        table.append(some_rows(1, 2))
        with table.edit_schema() as schema:
            schema.add("k", "long")
        late = another(table).transaction()
        late.delete("k is null")
        with table.edit_schema() as schema:
            schema.drop("k")
    assert clean(table, clock).cleaned == ("schema 1",)
    with within(clock), table.refresh().edit_schema() as schema:
        schema.add("j", "long")
    assert table.metadata.current_schema_id == 1
    with pytest.raises(CommitConflict, match="changed the current schema from 1 to another 1"):
        late.commit()
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2]


def test_an_edit_of_an_order_that_went_has_a_conflict_though_another_has_its_id() -> None:
    clock = Clock()
    with within(clock):
        table = new_table(COLUMNS, order_by=["id"])
        late = another(table).transaction()
        with late.edit_sort() as order:
            order.asc("id").asc("country")
        with table.edit_sort() as order:
            order.by()
    assert clean(table, clock).cleaned == ("sort order 1",)
    with within(clock), table.refresh().edit_sort() as order:
        order.asc("country")
    assert table.metadata.default_sort_order_id == 1
    with pytest.raises(CommitConflict, match="default sort order from 1 to another 1"):
        late.commit()


def test_what_comes_into_use_meanwhile_stays() -> None:
    clock = Clock()
    with within(clock):
        table = new_table(COLUMNS, partition_by=["bucket(4, id)"])
        files = written(table, some_rows(1))
        late = another(table)
        with table.edit_spec() as spec:
            spec.remove("bucket(4, id)")
        table.append(some_rows(2))
    transaction, once = table.transaction, []

    def raced(**how: Any) -> Any:
        if not once:
            once.append(late.append_files(files))
        return transaction(**how)

    table.transaction = raced  # type: ignore[method-assign]
    assert "partition spec 0" not in clean(table, clock).cleaned
    assert len(once) == 1
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2]
    assert table.verify(deep=True).findings == ()


@pytest.mark.parametrize(
    ("update", "told"),
    [
        (RemoveSchemas(schema_ids=(1,)), "schema 1 cannot go"),
        (RemoveSchemas(schema_ids=(0,)), "schema 0 cannot go"),
        (RemovePartitionSpecs(spec_ids=(1,)), "partition spec 1 cannot go"),
        (RemoveExpressions(expr_ids=(3,)), "expression 3 cannot go: partition spec 0 has it"),
        (RemoveSortOrders(sort_order_ids=(2,)), "sort order 2 cannot go"),
    ],
)
def test_what_is_in_use_cannot_be_taken_away(update: Update, told: str) -> None:
    metadata = evolved(Clock()).metadata
    with pytest.raises(InvalidInput, match=told):
        apply(metadata, [update], at_ms=metadata.last_updated_ms)
