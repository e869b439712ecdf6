"""Cherry picks: the change of one snapshot, made again on another branch."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icetree.errors import CommitConflict, InvalidInput
from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.commit.commit import Committed
from icetree.table.table import Table
from icetree.tree.live import live_files
from tests.table.lake import connection, data_file, live, new_table, place, vector


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


def test_an_append_is_cherry_picked_with_numbers_of_its_own(table: Table) -> None:
    table.create_branch("audit")
    picked = made(table.append_files([data_file("c")], branch="audit"))
    table.append_files([data_file("d")])
    done = made(table.cherry_pick(picked.snapshot_id))
    assert live(table) == ["a", "b", "c", "d"]
    assert done.summary is not None
    assert done.summary["source-snapshot-id"] == str(picked.snapshot_id)
    assert done.sequence_number > picked.sequence_number
    assert row_ids(table, "main") == [(0, 10), (10, 20), (30, 40), (40, 50)]


def test_a_pick_of_what_follows_the_head_only_moves_the_branch(table: Table) -> None:
    table.create_branch("audit")
    picked = made(table.append_files([data_file("c")], branch="audit"))
    done = table.cherry_pick(picked.snapshot_id)
    assert done.snapshot is None
    assert table.metadata.current_snapshot_id == picked.snapshot_id


@pytest.mark.parametrize("moved", [False, True])
def test_what_a_branch_has_already_cannot_be_picked_again(table: Table, moved: bool) -> None:
    table.create_branch("audit")
    picked = made(table.append_files([data_file("c")], branch="audit"))
    if moved:
        table.append_files([data_file("d")])
    table.cherry_pick(picked.snapshot_id)
    table.append_files([data_file("e")])
    with pytest.raises(InvalidInput, match="is part of branch 'main' already"):
        table.cherry_pick(picked.snapshot_id)
    assert live(table.refresh()) == ["a", "b", "c", *(["d"] if moved else []), "e"]


def test_a_replacement_of_what_a_branch_has_no_longer_is_refused_with_a_way_out() -> None:
    table = new_table(partition_by=["n"])
    rows = pa.table({"n": pa.array([1, 1], pa.int64())})
    table.append(rows)
    table.create_branch("audit")
    picked = made(table.replace_partitions(rows, branch="audit"))
    table.replace_partitions(rows)
    with pytest.raises(CommitConflict) as refused:
        table.cherry_pick(picked.snapshot_id)
    assert f"snapshot {picked.snapshot_id} replaced data/" in str(refused.value)
    assert "which branch 'main' has no longer" in str(refused.value)
    assert str(refused.value).endswith("with replace_partitions on the branch")
    assert table.refresh().scan().count() == 2


def test_a_chain_of_picks_brings_no_file_in_twice(table: Table) -> None:
    """Wherever it is tracked by then: here every older file is in a leaf."""
    table.set_properties({"write.root.max-data-entries": "1"})
    for branch in ("a", "b"):
        table.create_branch(branch)
    first = made(table.append_files([data_file("c")], branch="a"))
    table.append_files([data_file("m1")])
    second = made(table.cherry_pick(first.snapshot_id))
    table.append_files([data_file("b1")], branch="b")
    third = made(table.cherry_pick(second.snapshot_id, branch="b"))
    for name in ("m2", "m3"):
        table.append_files([data_file(name)])
    with pytest.raises(InvalidInput, match=r"data/c.parquet is in the table already"):
        table.cherry_pick(third.snapshot_id)
    assert live(table.refresh()) == ["a", "b", "c", "m1", "m2", "m3"]
    table.delete_files([place("c")])
    table.cherry_pick(third.snapshot_id)
    assert live(table) == ["a", "b", "c", "m1", "m2", "m3"]


def test_two_who_pick_the_same_never_add_its_files_twice() -> None:
    lake = connection()
    one = new_table(lake)
    one.append_files([data_file("a")])
    one.create_branch("audit")
    picked = made(one.append_files([data_file("c")], branch="audit"))
    one.append_files([data_file("d")])
    two = lake.table("db.t")
    one.cherry_pick(picked.snapshot_id)
    with pytest.raises(CommitConflict, match="ref main"):
        two.cherry_pick(picked.snapshot_id)
    assert live(two.refresh()) == ["a", "c", "d"]


def test_a_row_delta_cannot_be_picked_onto_another_head(table: Table) -> None:
    table.create_branch("audit")
    picked = made(table.row_delta([vector("v", "a")], branch="audit"))
    table.append_files([data_file("c")])
    with pytest.raises(InvalidInput, match="cannot be cherry-picked"):
        table.cherry_pick(picked.snapshot_id)


def test_picked_partitions_replace_what_they_replaced_or_conflict() -> None:
    table = new_table(partition_by=["country"])
    table.append_files([data_file("de", country="DE"), data_file("fr", country="FR")])
    table.create_branch("audit")
    new = [data_file("de2", country="DE")]
    picked = made(table.replace_partitions(new, branch="audit"))
    table.append_files([data_file("us", country="US")])
    table.cherry_pick(picked.snapshot_id)
    assert live(table) == ["de2", "fr", "us"]
    table.create_branch("again")
    picked = made(table.replace_partitions([data_file("fr2", country="FR")], branch="again"))
    table.delete_files([place("fr")])
    with pytest.raises(CommitConflict, match=r"data/fr\.parquet"):
        table.cherry_pick(picked.snapshot_id)
