"""Rewriting deletes: what is deleted stays so and nothing else is, in fewer files."""

from __future__ import annotations

from contextlib import suppress

import pyarrow.compute as pc
import pytest

from icetree.errors import CommitConflict, IcetreeError
from icetree.files.cache import Cache
from icetree.spec.entry.entry import Content
from icetree.spec.location import absolute
from icetree.surroundings import within
from icetree.table.lake import Lake
from icetree.table.table import Table
from icetree.tree.live import live_files
from icetree.tree.reading import leaves_in
from tests.effort import EFFORT
from tests.rows.lake import rows
from tests.store.flaky import Fault, FlakyStore, How
from tests.table.changing import changing_table, compact, delete_equal, delete_rows, some
from tests.table.maintain.history import Past, stored, told

COLUMNS = ["id", "v", "_row_id", "_last_updated_sequence_number"]


def content(table: Table) -> list[str]:
    """Rows with their lineage."""
    return rows(table.scan(columns=COLUMNS).to_arrow())


def ids(table: Table) -> list[int]:
    """The ids of the rows."""
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


def beside(table: Table) -> Table:
    """Another's handle of the same table."""
    return Table(catalog=table.catalog, files=table.files, state=table.state)


def delete_files(table: Table) -> dict[int, int]:
    """How many files hold the deletes of each content."""
    shape = table.metadata.shape()
    live = live_files(table.files.root(table.snapshot(), shape), table.files.reader(shape))
    found = {}
    for each in (Content.POSITION_DELETES, Content.EQUALITY_DELETES):
        names = live["location"].filter(pc.equal(live["content_type"], int(each)))
        found[int(each)] = len(names.unique())
    return found


#: The usual one rewrites vectors and equality deletes of many files: of its neighbours not each does.
SEEDS = [43] if EFFORT == 1 else [*range(40, 40 + 2 * EFFORT)]


@pytest.mark.law
@pytest.mark.parametrize("seed", SEEDS)
def test_all_that_can_be_read_stays_as_it_was(seed: int) -> None:
    past = Past(seed)
    past.live(12)
    table = past.table
    for _ in range(3):
        with within(past.clock):
            first = past.choose.randrange(past.next_id)
            delete_equal(table, range(first, first + past.choose.randint(1, 4)))
        past.live(2)
    before, was = told(table, past.ids()), content(table)
    how = {
        "where": past.choose.choice([None, None, f"id < {past.choose.randrange(past.next_id)}"]),
        "rewrite_equality_deletes": past.choose.choice([True, True, False]),
    }
    with within(past.clock):
        table.maintenance.rewrite_position_delete_files(**how)
        again = table.maintenance.rewrite_position_delete_files(**how)
    assert content(table) == was
    assert again.rewritten_delete_files_count == 0
    after = told(table, past.ids())
    assert {id: after[id] for id in before} == before
    assert all(after[id].changed == [] for id in after.keys() - before.keys())
    assert table.verify(deep=True).is_clean
    if how["rewrite_equality_deletes"] and how["where"] is None:
        assert delete_files(table)[Content.EQUALITY_DELETES] == 0


def marked(count: int = 6, **properties: str) -> Table:
    """A table of files of three rows, of each of which one was deleted by a commit of its own."""
    table = changing_table(properties=properties)
    for number in range(count):
        table.append(some(*((3 * number + at, "v") for at in range(3))))
    for number in range(count):
        delete_rows(table, [3 * number])
    return table


@pytest.mark.parametrize("at_most", ["1", "100"])
def test_vectors_of_many_files_go_into_one_and_stay_what_they_are(at_most: str) -> None:
    table = marked(**{"write.root.max-delete-entries": at_most})
    was = content(table)
    done = table.maintenance.rewrite_position_delete_files()
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (6, 1)
    assert done.rewritten_bytes_count == done.added_bytes_count > 0
    assert (delete_files(table)[1], content(table)) == (1, was)
    assert table.snapshot().operation == "replace"  # type: ignore[union-attr]
    assert table.verify(deep=True).is_clean
    delete_rows(table, [1])
    assert len(content(table)) == len(was) - 1


def test_a_filter_chooses_files_and_none_of_their_deletes() -> None:
    table = marked()
    delete_equal(table, [2])
    was = content(table)
    table.maintenance.rewrite_position_delete_files(where="id < 2", rewrite_equality_deletes=True)
    assert content(table) == was
    assert delete_files(table)[Content.EQUALITY_DELETES] == 0
    assert table.verify(deep=True).is_clean


def test_few_files_of_vectors_stay_as_they_are() -> None:
    table = marked(4)
    assert table.maintenance.rewrite_position_delete_files().rewritten_delete_files_count == 0


def test_files_of_vectors_have_about_the_size_that_is_asked_for() -> None:
    table = marked(**{"write.delete.target-file-size-bytes": "100"})
    assert table.maintenance.rewrite_position_delete_files().added_delete_files_count <= 6
    assert table.verify(deep=True).is_clean


def test_equality_deletes_that_no_older_file_is_left_for_go_without_being_asked() -> None:
    table = changing_table()
    table.append(some((1, "a"), (2, "b")))
    delete_equal(table, [1])
    compact(table)
    assert delete_files(table)[2] == 1
    done = table.maintenance.rewrite_position_delete_files()
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (1, 0)
    assert (delete_files(table)[2], ids(table)) == (0, [2])
    assert table.verify(deep=True).is_clean


def test_a_dry_run_changes_nothing() -> None:
    table = marked()
    files, state = stored(table), table.state
    plan = table.maintenance.rewrite_position_delete_files(dry_run=True)
    assert (stored(table), table.refresh().state) == (files, state)
    assert (plan.rewritten_delete_files_count, plan.added_delete_files_count) == (6, 0)
    assert str(plan).startswith("would rewrite 6 delete files (")


@pytest.mark.parametrize("equality", [False, True])
def test_what_others_change_meanwhile_is_no_conflict_and_is_kept(equality: bool) -> None:
    table = marked()
    delete_equal(table, [4])
    other, changed = beside(table), []

    def meanwhile(*_: object) -> None:
        if len(changed) < 2:
            other.refresh()
            changed.append(delete_rows(other, [1]) if not changed else other.delete("id >= 15"))

    table.maintenance.rewrite_position_delete_files(
        rewrite_equality_deletes=equality, progress=meanwhile
    )
    left = {*range(18)} - {0, 3, 6, 9, 12, 15} - {4, 1} - {*range(15, 18)}
    assert ids(table) == sorted(left)
    assert table.verify(deep=True).is_clean


def test_a_compaction_that_did_not_see_an_equality_delete_brings_no_row_back() -> None:
    """The delete would reach the new file by its age, but has become a vector of the old one."""
    table = changing_table()
    table.append(some((1, "a"), (2, "b")))
    stale, other = beside(table), beside(table)
    delete_equal(other, [1])
    other.maintenance.rewrite_position_delete_files(rewrite_equality_deletes=True)
    with suppress(CommitConflict):
        compact(stale, keep_lineage=False)
    assert ids(table) == [2]
    assert table.verify(deep=True).is_clean


def test_a_delete_is_not_dropped_under_an_old_file_that_comes_meanwhile() -> None:
    """A compaction keeps the age of its rows, so the delete reaches what it adds."""
    table = changing_table()
    table.append(some((1, "a"), (2, "b")))
    stale = beside(table)
    delete_equal(table, [1])
    done: list[object] = []

    def meanwhile(*_: object) -> None:
        if not done:
            done.append(compact(stale, keep_lineage=False))

    table.maintenance.rewrite_position_delete_files(
        rewrite_equality_deletes=True, progress=meanwhile
    )
    assert (ids(table), len(done)) == ([2], 1)
    assert table.verify(deep=True).is_clean


def test_data_files_are_not_looked_for_again_when_their_vectors_are_committed() -> None:
    """Where each was seen goes along with its vector, and leaves never change."""
    small = {"write.root.max-data-entries": "1", "write.commit.compact-max-entries": "0"}
    table = marked(**small)
    store = FlakyStore(table.files.store)
    lake = Lake(catalog=table.catalog, store=store, cache=Cache(limit_bytes=0))
    reading = lake.table(str(table.name))
    leaves = {
        absolute(each.location, table.location)
        for each in leaves_in(table.files.root(table.snapshot(), table.metadata.shape()))
        if each.content_type == Content.DATA_MANIFEST
    }
    assert len(leaves) > 3
    done = reading.maintenance.rewrite_position_delete_files()
    assert done.added_delete_files_count == 1
    [written] = [s.number for s in store.steps if s.location.endswith("deletes.puffin")][-1:]
    read = [(step.number < written) for step in store.steps if step.location in leaves]
    assert any(read), "they are read from the store each time"
    assert all(read), "after the vectors are there, no more"


def test_a_store_that_fails_at_any_step_changes_no_row() -> None:
    table = marked(5)
    delete_equal(table, [4])
    was = ids(table)

    def attempt(*faults: Fault) -> int:
        flaky = FlakyStore(table.files.store, faults)
        lake = Lake(catalog=table.catalog, store=flaky, warehouse="memory://lake")
        before = table.refresh().state
        try:
            lake.table("db.rows").maintenance.rewrite_position_delete_files(
                rewrite_equality_deletes=True
            )
        except IcetreeError:
            assert table.refresh().state == before
        assert ids(table) == was
        if table.state != before:
            table.rollback(to=before.metadata.current_snapshot_id or 0)
        return len(flaky.steps)

    steps = attempt()
    assert steps > 10
    for at in range(steps):
        attempt(Fault(at=at, how=How.BEFORE))
        attempt(Fault(at=at, how=How.AFTER))
    assert table.verify(deep=True).is_clean


@pytest.mark.parametrize("equality", [False, True])
def test_who_deletes_rows_whose_vectors_are_rewritten_meanwhile_has_no_conflict(
    equality: bool,
) -> None:
    table = marked()
    if equality:
        delete_equal(table, [4])
    stale = beside(table)
    with stale.transaction() as late:
        late.delete("id = 7")
        done = table.maintenance.rewrite_position_delete_files(rewrite_equality_deletes=equality)
        assert done.added_delete_files_count == 1
    gone = {0, 3, 6, 9, 12, 15, 7} | ({4} if equality else set())
    assert ids(table) == sorted({*range(18)} - gone)
    assert table.verify(deep=True).is_clean
