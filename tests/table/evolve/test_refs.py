"""Branches, tags, and what is staged on one to be published on another."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from icetree.errors import CommitConflict, InvalidInput, NotFound
from icetree.spec.edit.refs import Retention
from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.commit.commit import Committed
from icetree.table.point import time_of
from icetree.table.table import Table
from icetree.tree.live import live_files
from tests.table.lake import connection, data_file, live, new_table, place


@pytest.fixture
def table() -> Table:
    found = new_table()
    found.append_files([data_file("a")])
    found.append_files([data_file("b")])
    return found


def made(done: Committed) -> Snapshot:
    assert done.snapshot is not None
    return done.snapshot


def row_ids(table: Table, branch: str) -> list[tuple[int, int]]:
    """Return the row ids of a branch's files, as ranges."""
    shape = table.metadata.shape()
    files = live_files(table.files.root(table.state.head(branch), shape), table.files.reader(shape))
    starts, counts = files["first_row_id"].to_pylist(), files["record_count"].to_pylist()
    return sorted((start, start + count) for start, count in zip(starts, counts, strict=True))


def test_refs_keep_the_retention_they_were_made_with(table: Table) -> None:
    keep = Retention(min_snapshots_to_keep=3, max_snapshot_age_ms=5_000, max_ref_age_ms=9_000)
    table.create_branch("audit", retention=keep)
    table.create_tag("v1", max_ref_age_ms=7_000)
    fresh = table.refresh().refs
    assert fresh["audit"].min_snapshots_to_keep == 3
    assert fresh["audit"].max_snapshot_age_ms == 5_000
    assert fresh["audit"].max_ref_age_ms == 9_000
    assert (fresh["v1"].type, fresh["v1"].max_ref_age_ms) == ("tag", 7_000)
    table.append_files([data_file("c")], branch="audit")
    assert table.refs["audit"].min_snapshots_to_keep == 3
    table.set_retention("audit", Retention(min_snapshots_to_keep=1))
    assert table.refs["audit"].max_ref_age_ms is None


def test_a_tag_has_no_retention_of_snapshots(table: Table) -> None:
    table.create_tag("v1")
    with pytest.raises(InvalidInput, match="only a branch"):
        table.set_retention("v1", Retention(min_snapshots_to_keep=1))


def test_commits_to_one_branch_do_not_show_on_another(table: Table) -> None:
    table.create_branch("audit")
    table.append_files([data_file("c")], branch="audit")
    table.append_files([data_file("d")])
    table.delete_files([place("a")], branch="audit")
    assert live(table) == ["a", "b", "d"]
    assert live(table, branch="audit") == ["b", "c"]


def test_a_commit_may_start_a_branch_where_the_table_is(table: Table) -> None:
    table.append_files([data_file("c")], branch="new", create_branch=True)
    assert live(table, branch="new") == ["a", "b", "c"]
    assert live(table) == ["a", "b"]
    table.append_files([data_file("d")], branch="new", create_branch=True)
    assert live(table, branch="new") == ["a", "b", "c", "d"]


def test_a_mistyped_branch_is_refused_and_not_made(table: Table) -> None:
    table.create_branch("audit")
    with pytest.raises(NotFound, match=r"no branch 'audti'.* did you mean 'audit'"):
        table.append_files([data_file("c")], branch="audti")
    snapshot = table.snapshot()
    assert snapshot is not None
    with pytest.raises(NotFound, match="no branch 'audti'"):
        table.cherry_pick(snapshot.snapshot_id, branch="audti")
    assert set(table.refresh().refs) == {"main", "audit"}


def test_the_first_commit_of_a_table_may_start_any_branch() -> None:
    table = new_table()
    table.append_files([data_file("a")], branch="side", create_branch=True)
    assert live(table, branch="side") == ["a"]
    assert table.snapshot() is None


def test_sequence_numbers_and_row_ids_are_given_once_whatever_the_branch(table: Table) -> None:
    table.set_properties({"write.root.max-data-entries": "2"})
    table.create_branch("audit")
    for number in range(6):
        branch = "audit" if number % 2 else "main"
        table.append_files([data_file(f"x{number}{i}") for i in range(number)], branch=branch)
    numbers = [each.sequence_number for each in table.history()]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    # What the branches share comes once: their own files never have a row id in common.
    ranges = sorted({*row_ids(table, "main"), *row_ids(table, "audit")})
    assert all(before[1] <= after[0] for before, after in pairwise(ranges))
    assert sum(high - low for low, high in ranges) == table.metadata.next_row_id


def test_two_writers_on_two_branches_never_conflict() -> None:
    lake = connection()
    one = new_table(lake)
    one.append_files([data_file("a")])
    one.create_branch("audit")
    two = lake.table("db.t")
    mine = one.transaction(branch="main")
    mine.delete("n < 100")
    theirs = two.transaction(branch="audit")
    theirs.delete("n < 100")
    mine.commit()
    theirs.commit()
    assert live(two.refresh()) == live(two, branch="audit") == []


def test_a_delete_on_a_branch_minds_what_was_added_to_that_branch() -> None:
    lake = connection()
    one = new_table(lake)
    one.append_files([data_file("a")])
    one.create_branch("audit")
    delete = lake.table("db.t").transaction(branch="audit")
    delete.delete("n < 100")
    one.append_files([data_file("b", 50, 59)], branch="audit")
    with pytest.raises(CommitConflict, match=r"data/b\.parquet"):
        delete.commit()


def test_a_branch_moved_from_under_a_delete_is_a_conflict(table: Table) -> None:
    base = table.metadata.snapshots[0].snapshot_id
    delete = table.transaction()
    delete.delete_files([place("b")])
    table.rollback(base)
    with pytest.raises(CommitConflict, match="was moved"):
        delete.commit()
    assert live(table.refresh()) == ["a"]


@pytest.mark.parametrize("tagged", [False, True], ids=["gone", "a tag now"])
def test_a_branch_removed_from_under_an_append_is_a_conflict(tagged: bool) -> None:
    lake = connection()
    one = new_table(lake)
    one.append_files([data_file("a")])
    one.create_branch("audit")
    one.append_files([data_file("b")], branch="audit")
    stale = lake.table("db.t")
    one.remove_branch("audit")
    if tagged:
        one.create_tag("audit")
    with pytest.raises(CommitConflict, match="removed branch 'audit'"):
        stale.append_files([data_file("c")], branch="audit")
    assert stale.refresh().refs == one.refs


def test_a_branch_that_may_be_made_is_made_again_where_the_table_is() -> None:
    lake = connection()
    one = new_table(lake)
    one.append_files([data_file("a")])
    one.append_files([data_file("b")], branch="audit", create_branch=True)
    stale = lake.table("db.t")
    one.remove_branch("audit")
    stale.append_files([data_file("c")], branch="audit", create_branch=True)
    assert live(stale, branch="audit") == ["a", "c"]


def test_a_branch_is_fast_forwarded_to_what_descends_from_it(table: Table) -> None:
    table.create_branch("audit")
    table.append_files([data_file("c")], branch="audit")
    table.append_files([data_file("d")], branch="audit")
    table.fast_forward("main", "audit")
    assert live(table) == ["a", "b", "c", "d"]
    assert table.metadata.current_snapshot_id == table.refs["audit"].snapshot_id
    table.append_files([data_file("e")])
    table.append_files([data_file("f")], branch="audit")
    with pytest.raises(InvalidInput, match="cannot be fast-forwarded"):
        table.fast_forward("main", "audit")


def test_two_who_move_a_branch_conflict() -> None:
    lake = connection()
    one = new_table(lake)
    first = made(one.append_files([data_file("a")]))
    one.append_files([data_file("b")])
    two = lake.table("db.t")
    one.append_files([data_file("c")])
    with pytest.raises(CommitConflict, match="ref main"):
        two.rollback(first.snapshot_id)
    assert live(one.refresh()) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "move",
    [
        lambda table, id: table.rollback(id),
        lambda table, id: table.rollback(time_of(table.snapshot(id).timestamp_ms)),
        lambda table, id: table.set_current(id),
        lambda table, id: table.fast_forward("main", id),
    ],
)
def test_a_branch_that_was_moved_from_where_it_is_wanted_is_a_conflict(
    move: Callable[[Table, int], Committed],
) -> None:
    lake = connection()
    one = new_table(lake)
    first = made(one.append_files([data_file("a")]))
    lake.table("db.t").append_files([data_file("b")])
    with pytest.raises(CommitConflict, match="ref main"):
        move(one, first.snapshot_id)
    assert live(one.refresh()) == ["a", "b"]


def test_a_branch_that_is_where_it_is_wanted_needs_no_commit(table: Table) -> None:
    head = table.snapshot()
    assert head is not None
    before = table.state
    lake_files = sorted(file.location for file in table.files.store.list(table.location))
    assert table.rollback(head.snapshot_id).state == before
    assert table.set_current(head.snapshot_id).state == before
    assert table.fast_forward("main", head.snapshot_id).state == before
    assert sorted(f.location for f in table.files.store.list(table.location)) == lake_files


def test_the_retention_that_another_gave_a_branch_is_not_lost() -> None:
    lake = connection()
    one = new_table(lake)
    first = made(one.append_files([data_file("a")]))
    one.append_files([data_file("b")])
    two = lake.table("db.t")
    one.set_retention("main", Retention(min_snapshots_to_keep=5))
    with pytest.raises(CommitConflict, match="retention of main"):
        two.set_retention("main", Retention())
    with pytest.raises(CommitConflict, match="retention of main"):
        two.rollback(first.snapshot_id)
    assert one.refresh().refs["main"].min_snapshots_to_keep == 5


def test_a_rollback_goes_to_a_snapshot_or_a_time_and_numbers_go_on(table: Table) -> None:
    first, second = table.metadata.snapshots
    table.rollback(first.snapshot_id)
    assert live(table) == ["a"]
    table.append_files([data_file("c")])
    assert live(table) == ["a", "c"]
    assert table.metadata.last_sequence_number == 3
    assert row_ids(table, "main") == [(0, 10), (20, 30)]
    with pytest.raises(InvalidInput, match="not an ancestor"):
        table.rollback(second.snapshot_id)
    table.set_current(second.snapshot_id)
    assert live(table) == ["a", "b"]
    table.rollback(time_of(first.timestamp_ms))
    assert table.metadata.current_snapshot_id in {first.snapshot_id, second.snapshot_id}
    with pytest.raises(InvalidInput, match="no snapshot as old"):
        table.rollback(time_of(1))


def test_what_is_staged_shows_nowhere_until_it_is_published(table: Table) -> None:
    stage = table.transaction(branch=None, summary={"wap.id": "w1"})
    stage.append_files([data_file("c")])
    staged = made(stage.commit())
    assert live(table) == ["a", "b"]
    assert table.snapshot(staged.snapshot_id) == staged
    table.publish("w1")
    assert live(table) == ["a", "b", "c"]


@pytest.mark.parametrize("others", [0, 1])
def test_what_is_published_cannot_be_published_again(table: Table, others: int) -> None:
    stage = table.transaction(branch=None, summary={"wap.id": "w1"})
    stage.append_files([data_file("c")])
    stage.commit()
    for number in range(others):
        table.append_files([data_file(f"x{number}")])
    table.publish("w1")
    table.append_files([data_file("d")])
    with pytest.raises(InvalidInput, match="already"):
        table.publish("w1")
    assert live(table.refresh()) == ["a", "b", "c", "d", *(f"x{n}" for n in range(others))]


def test_an_unknown_id_cannot_be_published(table: Table) -> None:
    with pytest.raises(NotFound, match="'w9'"):
        table.publish("w9")


def test_a_job_staged_twice_under_one_key_is_staged_once(table: Table) -> None:
    for _ in range(2):
        stage = table.transaction(branch=None, summary={"wap.id": "w1"}, key="job-1")
        stage.append_files([data_file("c")])
        stage.commit()
    table.publish("w1")
    assert live(table) == ["a", "b", "c"]


def test_tags_never_move_and_go_when_told(table: Table) -> None:
    table.create_tag("v1")
    table.append_files([data_file("c")])
    assert live(table, branch="v1") == ["a", "b"]
    with pytest.raises(InvalidInput, match="is a tag"):
        table.append_files([data_file("d")], branch="v1")
    table.remove_tag("v1")
    table.create_branch("audit")
    table.remove_branch("audit")
    assert sorted(table.refs) == ["main"]
    with pytest.raises(InvalidInput, match="cannot be removed"):
        table.remove_branch("main")
