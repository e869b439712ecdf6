"""History moves to pages: metadata.json stays small, and whatever its age a snapshot is found."""

from __future__ import annotations

import pytest

from icetree.errors import NotFound
from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.lake import Lake
from icetree.table.point import time_of
from icetree.table.table import Table
from tests.table.lake import connection, data_file, live, new_table, place

COUNT = 320
KEYED = range(0, COUNT, 40)
PROPERTIES = {
    "write.metadata.inline-snapshots": "10",
    "write.metadata.previous-versions-max": "10",
    "write.metadata.compression-codec": "none",
    "write.root.max-data-entries": "1000",
}


@pytest.fixture(scope="module")
def made() -> tuple[Lake, list[Snapshot], list[int]]:
    """Return a table of many commits, what each made, and how large metadata.json was after it."""
    lake = connection()
    table = new_table(lake, properties=PROPERTIES)
    snapshots, sizes = [], []
    for number in range(COUNT):
        key = f"job-{number}" if number in KEYED else None
        # A file comes and goes, so that roots stay small too.
        if number % 2:
            done = table.delete_files([place(f"f{number - 1}")], key=key)
        else:
            done = table.append_files([data_file(f"f{number}")], key=key)
        assert done.snapshot is not None
        snapshots.append(done.snapshot)
        sizes.append(lake.store.size(table.state.metadata_location))
    return lake, snapshots, sizes


def fresh(lake: Lake) -> Table:
    """Return the table for somebody who has nothing cached."""
    return Lake(catalog=lake.catalog, store=lake.store, warehouse="memory://w").table("db.t")


def test_metadata_json_stops_growing(made: tuple[Lake, list[Snapshot], list[int]]) -> None:
    lake, _, sizes = made
    # A few more pages are named, which is bounded too.
    assert max(sizes[200:]) <= 1.1 * max(sizes[:120])
    metadata = fresh(lake).metadata
    assert len(metadata.snapshots) < 20
    assert len(metadata.snapshot_log) < 20
    assert len(metadata.metadata_log) == 10
    assert len(metadata.snapshot_pages) == 3


def test_history_has_every_snapshot_once(
    made: tuple[Lake, list[Snapshot], list[int]],
) -> None:
    lake, snapshots, _ = made
    assert list(fresh(lake).history()) == snapshots[::-1]


@pytest.mark.parametrize("age", [0, 5, 50, 120, 215, COUNT - 1])
def test_a_snapshot_of_any_age_is_found_by_id_and_by_time(
    made: tuple[Lake, list[Snapshot], list[int]], age: int
) -> None:
    lake, snapshots, _ = made
    table, wanted = fresh(lake), snapshots[COUNT - 1 - age]
    assert table.snapshot(wanted.snapshot_id) == wanted
    at_once = [each for each in snapshots if each.timestamp_ms == wanted.timestamp_ms]
    assert table.snapshot(time_of(wanted.timestamp_ms)) == at_once[-1]
    before = [each for each in snapshots if each.timestamp_ms < wanted.timestamp_ms]
    if before:
        assert table.snapshot(time_of(wanted.timestamp_ms - 1)) == before[-1]
    else:
        with pytest.raises(NotFound, match="as early as"):
            table.snapshot(time_of(wanted.timestamp_ms - 1))


def test_an_id_that_never_was_is_not_found(
    made: tuple[Lake, list[Snapshot], list[int]],
) -> None:
    with pytest.raises(NotFound, match="no snapshot 1"):
        fresh(made[0]).snapshot(1)


@pytest.mark.parametrize("number", KEYED)
def test_a_keyed_commit_of_any_age_is_not_made_again(
    made: tuple[Lake, list[Snapshot], list[int]], number: int
) -> None:
    lake, snapshots, _ = made
    table = fresh(lake)
    again = table.append_files([data_file("again")], key=f"job-{number}")
    assert again.repeated
    assert again.snapshot == snapshots[number]
    assert live(table) == []


def test_refs_hold_paged_snapshots_and_let_them_go(
    made: tuple[Lake, list[Snapshot], list[int]],
) -> None:
    lake, snapshots, _ = made
    table, old = fresh(lake), snapshots[30]
    table.create_tag("old", at=old.snapshot_id)
    table.create_branch("fix", at=old.snapshot_id)
    assert live(table, branch="old") == ["f30"]
    table.append_files([data_file("x")], branch="fix")
    assert live(fresh(lake), branch="fix") == ["f30", "x"]
    # Enough commits that history is paged again, with the tagged one held back.
    for number in range(120):
        table.set_current(snapshots[40 + number % 3].snapshot_id, branch="fix")
        table.append_files([data_file(f"y{number}")], branch="fix")
    assert fresh(lake).metadata.snapshot(old.snapshot_id) == old
    table.remove_tag("old")
    table.remove_branch("fix")
    seen = [each.snapshot_id for each in fresh(lake).history()]
    assert len(seen) == len(set(seen)) == COUNT + 1 + 120
    assert live(fresh(lake)) == []


def test_a_rollback_reaches_into_the_pages(
    made: tuple[Lake, list[Snapshot], list[int]],
) -> None:
    lake, snapshots, _ = made
    lake.register_table("db.copy", fresh(lake).state.metadata_location)
    table = lake.table("db.copy")
    table.rollback(snapshots[8].snapshot_id)
    assert live(table) == ["f8"]
    table.append_files([data_file("z")])
    assert live(lake.table("db.copy")) == ["f8", "z"]
    by_time = snapshots[2].timestamp_ms
    table.rollback(time_of(by_time))
    newest = [each for each in snapshots if each.timestamp_ms <= by_time][-1]
    assert table.metadata.current_snapshot_id == newest.snapshot_id


def test_a_writer_from_hundreds_of_commits_ago_still_finds_what_it_conflicts_with() -> None:
    lake = connection()
    table = new_table(lake, properties=PROPERTIES)
    table.append_files([data_file("a", 0, 9)])
    stale = lake.table("db.t").transaction()
    stale.delete("n < 10")
    calm = lake.table("db.t").transaction()
    calm.delete_files([place("a")])
    table.append_files([data_file("b", 5, 6)])
    for number in range(150):
        table.append_files([data_file(f"c{number}", 100, 109)])
    from icetree.errors import CommitConflict

    with pytest.raises(CommitConflict, match=r"data/b\.parquet"):
        stale.commit()
    calm.commit()
    assert "a" not in live(lake.table("db.t"))


@pytest.mark.parametrize("at", ["inline", pytest.param("on a page", marks=pytest.mark.long)])
def test_a_ref_made_on_a_stale_handle_lands_though_its_snapshot_has_moved_to_another_file(
    at: str,
) -> None:
    """Others may commit a page's worth before it is its turn."""
    lake = connection()
    table = new_table(lake, properties={**PROPERTIES, "write.metadata.inline-snapshots": "1"})
    first = table.append_files([data_file("first")]).snapshot
    assert first is not None
    if at == "on a page":
        _commit_often(table, "a", 102)
    stale = lake.table("db.t")
    # Ten pages of one level become one.
    _commit_often(table, "b", 102 if at == "inline" else 950)
    assert first.snapshot_id not in table.metadata.by_id
    stale.create_tag("kept", at=first.snapshot_id)
    assert fresh(lake).snapshot("kept") == first


def _commit_often(table: Table, name: str, times: int) -> None:
    for number in range(0, times, 2):
        table.append_files([data_file(f"{name}{number}")])
        table.delete_files([place(f"{name}{number}")])
