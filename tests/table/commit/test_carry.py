"""A compaction beside changes of rows: neither stops the other, and no row is lost or comes back."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icetree.errors import CommitConflict
from icetree.rows.write.deletes import write_data_vectors, write_equality_deletes
from icetree.spec.entry.entry import Content
from icetree.table.table import Table
from icetree.tree.changes import removal
from tests.effort import EFFORT
from tests.rows.lake import rows
from tests.table.changing import (
    ARROW,
    changing_table,
    compact,
    data_files,
    delete_equal,
    delete_rows,
    some,
    written,
)
from tests.table.commit.carrying import LINEAGE, MODES, World, another, told


@pytest.mark.law
@pytest.mark.parametrize("seed", range(4 * EFFORT))
def test_a_compaction_takes_in_what_others_changed_meanwhile(seed: int) -> None:
    world = World(seed)
    stale = another(world.table.refresh())
    begun = world.rewriting(stale)
    if begun is None:
        return
    chosen, compaction = begun
    for _ in range(world.choose.randint(1, 4)):
        world.change(world.table)
    before = told(world.table)
    left = set(chosen) & set(data_files(world.table.refresh()))
    if not left:
        with pytest.raises(CommitConflict):
            compaction.commit()
        assert told(world.table) == before
        return
    done = compaction.commit()
    assert told(world.table) == before
    assert not left & set(data_files(world.table))
    assert done.snapshot is not None
    since = done.snapshot.parent_snapshot_id
    assert world.table.changes(since=since).to_arrow().num_rows == 0
    assert rows(world.table.scan(at=since, columns=[*ARROW.names, *LINEAGE]).to_arrow()) == before
    assert world.table.verify(deep=True).is_clean


@pytest.mark.law
@pytest.mark.parametrize("seed", range(1_000, 1_000 + 3 * EFFORT))
def test_a_statement_finds_its_rows_where_a_compaction_carried_them(seed: int) -> None:
    world = World(seed)
    table = world.table.refresh()
    verb = world.choose.choice(["delete", "update", "merge"])
    table.set_properties({f"write.{verb}.mode": world.choose.choice(MODES)})
    # What it comes to, were there no compaction.
    old = table.scan().to_arrow()["id"].to_pylist()
    state, counted = world.choose.getstate(), world.next_id
    alone = another(table).transaction(branch="alone", create_branch=True)
    world.state(alone, verb)
    alone.commit()
    expected = _of(old, table.refresh(), at="alone")
    world.choose.setstate(state)
    world.next_id = counted
    stale = another(table).transaction()
    world.state(stale, verb)
    for _ in range(world.choose.randint(1, 2)):
        begun = world.rewriting(table.refresh())
        if begun is not None:
            begun[1].commit()
    stale.commit()
    assert _of(old, table.refresh()) == expected
    assert table.verify(deep=True).is_clean


def _of(old: list[int], table: Table, at: str | None = None) -> list[list[str]]:
    """The rows that were there before, with their row ids; and those that are new, without."""
    found = table.scan(at=at, columns=[*ARROW.names, "_row_id"]).to_arrow()
    known = pc.is_in(found["id"], value_set=pa.array(old, pa.int64()))
    new = found.filter(pc.invert(known)).drop_columns("_row_id")
    return [rows(found.filter(known)), rows(new)]


def _two_files() -> Table:
    table = changing_table()
    table.append(some((1, "a"), (2, "b")))
    table.append(some((3, "c"), (4, "d")))
    return table


def test_a_row_that_was_updated_meanwhile_is_not_deleted_by_who_saw_it_before() -> None:
    table = _two_files()
    stale = another(table).transaction(isolation="snapshot")
    stale.delete("id = 1")
    table.update({"v": "'new'"}, where="id = 1")
    compact(table)
    with pytest.raises(CommitConflict):
        stale.commit()
    assert table.refresh().scan("id = 1").to_arrow()["v"].to_pylist() == ["new"]


def test_two_that_update_one_row_beside_a_compaction_do_not_make_two_of_it() -> None:
    table = _two_files()
    stale = another(table).transaction(isolation="snapshot")
    stale.update({"v": "'late'"}, where="id = 1")
    table.update({"v": "'new'"}, where="id = 1")
    compact(table)
    with pytest.raises(CommitConflict):
        stale.commit()
    assert table.refresh().scan("id = 1").to_arrow()["v"].to_pylist() == ["new"]


def test_who_finds_its_rows_in_a_compacted_file_minds_no_dv_of_other_rows_of_the_old_one() -> None:
    table = _two_files()
    stale = another(table).transaction(isolation="snapshot")
    stale.delete("id = 1")
    delete_rows(table, [2])
    compact(table)
    stale.commit()
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [3, 4]
    assert table.verify(deep=True).is_clean


def test_rows_that_came_back_meanwhile_are_not_lost_by_a_compaction() -> None:
    table = _two_files()
    delete_rows(table, [1])
    stale = another(table)
    compaction = stale.transaction()
    found = stale.scan(columns=[*ARROW.names, *LINEAGE]).to_arrow()
    compaction.rewrite(data_files(stale), written(stale, found, keep_lineage=True))
    marked = table.scan().plan().tasks
    name = next(task["location"] for task in marked.to_pylist() if task["dv_location"] is not None)
    table.row_delta((), remove=removal([name], content=Content.POSITION_DELETES))
    with pytest.raises(CommitConflict, match="brought rows back"):
        compaction.commit()
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]


def test_rows_that_came_back_meanwhile_are_not_lost_by_a_compaction_that_found_none() -> None:
    table = _two_files()
    delete_rows(table, [1, 2])
    stale = another(table)
    compaction = stale.transaction()
    name = _marked_file(table)
    compaction.rewrite([name], ())
    table.row_delta((), remove=removal([name], content=Content.POSITION_DELETES))
    with pytest.raises(CommitConflict, match="brought rows back"):
        compaction.commit()
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]


@pytest.mark.parametrize("carried", [False, True])
def test_rows_that_came_back_meanwhile_are_not_lost_by_a_delete_of_the_others(
    carried: bool,
) -> None:
    table = _two_files()
    delete_rows(table, [1])
    tx = another(table).transaction(isolation="snapshot")
    tx.delete("id = 2")
    table.row_delta((), remove=removal([_marked_file(table)], content=Content.POSITION_DELETES))
    if carried:
        compact(table)
        tx.commit()
    else:
        with pytest.raises(CommitConflict, match="brought rows back"):
            tx.commit()
    assert 1 in table.refresh().scan().to_arrow()["id"].to_pylist()


def _marked_file(table: Table) -> str:
    tasks = table.scan().plan().tasks.to_pylist()
    return next(each["location"] for each in tasks if each["dv_location"] is not None)


def test_a_compaction_without_row_ids_conflicts_with_deletes_of_its_rows() -> None:
    table = _two_files()
    stale = another(table)
    found = stale.scan().to_arrow()
    compaction = stale.transaction()
    compaction.rewrite(data_files(stale), written(stale, found))
    delete_rows(table, [1])
    with pytest.raises(CommitConflict, match="would bring back"):
        compaction.commit()
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [2, 3, 4]


def test_what_lost_tries_wrote_is_gone() -> None:
    """Each try of a compaction has its own DVs, and those of a statement that were of old files go."""
    table = _two_files()
    stale = another(table).transaction()
    stale.delete("id = 1")
    compact(table)
    stale.commit()
    puffins = {e.location for e in table.files.store.list(table.location) if "puffin" in e.location}
    named = {
        f"{table.location}/{each}"
        for each in table.refresh().scan().plan().tasks["dv_location"].drop_null().to_pylist()
    }
    assert puffins == named


def test_two_deltas_of_one_transaction_whose_files_became_one_lose_no_delete() -> None:
    table = _two_files()
    stale = another(table)
    first, second = data_files(stale)
    tasks = stale.scan().plan().tasks
    deltas = [
        write_data_vectors(
            {name: [0]}, tasks=tasks, metadata=stale.metadata, store=stale.files.store
        )
        for name in (first, second)
    ]
    compact(table)
    tx = stale.transaction(isolation="snapshot")
    for each in deltas:
        tx.row_delta(each)
    with pytest.raises(CommitConflict):
        tx.commit()
    assert table.refresh().scan().count() == 4
    table.delete("id in (1, 3)")
    assert table.refresh().scan().count() == 2


@pytest.mark.parametrize("how", ["truncated", "converted", "in two changes"])
def test_a_deletion_that_takes_an_equality_delete_away_is_not_carried(how: str) -> None:
    table = _two_files()
    stale = another(table)
    compaction = stale.transaction()
    found = stale.scan(columns=[*ARROW.names, *LINEAGE]).to_arrow()
    compaction.rewrite(data_files(stale), _aged(written(stale, found, keep_lineage=True)))
    delete_equal(table, [2])
    plan = table.refresh().scan().plan()
    tx = another(table).transaction(isolation="snapshot")
    if how == "truncated":
        tx.truncate()
    else:
        (name,) = [each["location"] for each in plan.tasks.to_pylist() if each["equality_deletes"]]
        dv = write_data_vectors(
            {name: [1]}, tasks=plan.tasks, metadata=table.metadata, store=table.files.store
        )
        gone = removal(plan.deletes["location"].to_pylist(), content=Content.EQUALITY_DELETES)
        if how == "converted":
            tx.row_delta(dv, remove=gone)
        else:
            tx.row_delta(dv)
            tx.row_delta((), remove=gone)
    compaction.commit()
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 3, 4]
    with pytest.raises(CommitConflict, match="relies on"):
        tx.commit()
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 3, 4]


@pytest.mark.parametrize("compacted", [False, True])
def test_an_equality_delete_by_a_column_that_was_dropped_conflicts(compacted: bool) -> None:
    table = _two_files()
    tx = another(table).transaction(isolation="snapshot")
    keys = pa.table({"v": ["b"]})
    tx.row_delta(
        write_equality_deletes(keys, ["v"], metadata=table.metadata, store=table.files.store)
    )
    with table.edit_schema() as edit:
        edit.drop("v")
    if compacted:
        table.refresh().maintenance.rewrite_data_files(options={"rewrite-all": True})
    before = table.refresh().snapshot()
    with pytest.raises(CommitConflict, match="column 2, which the table has dropped"):
        tx.commit()
    assert table.refresh().snapshot() == before


def test_an_equality_delete_may_be_by_a_column_that_comes_with_it() -> None:
    table = _two_files()
    tx = table.transaction()
    with tx.edit_schema() as edit:
        edit.add("w", "long")
    keys = pa.table({"w": pa.array([7], pa.int64())})
    tx.row_delta(write_equality_deletes(keys, ["w"], metadata=tx.metadata, store=table.files.store))
    tx.commit()
    assert table.refresh().scan().count() == 4


def _aged(files: pa.Table) -> pa.Table:
    """Files whose rows stay as old as they were."""
    at = files.column_names.index("sequence_number")
    age = pa.array([2] * files.num_rows, files.schema.field(at).type)
    return files.set_column(at, "sequence_number", age)
