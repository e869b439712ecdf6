"""Compacting data: rows stay what they are, whatever is asked for and whoever writes beside it."""

from __future__ import annotations

import random
from collections.abc import Generator
from threading import Lock
from typing import Any

import pytest

from icetree.errors import IcetreeError, InvalidInput, NotFound
from icetree.table.commit import carry
from icetree.table.maintain.compact import groups as compacting
from icetree.table.maintain.compact.compact import Rewritten, rewrite_data_files
from icetree.table.maintain.compact.groups import Rewriting, side_by_side
from icetree.table.table import Table
from icetree.tree.plan.tasks import Plan
from tests.effort import EFFORT
from tests.rows.lake import rows
from tests.table.changing import ARROW, changing_table, data_files, delete_equal, delete_rows, some
from tests.table.commit.carrying import LINEAGE, World, another, told
from tests.table.maintain.history import stored

ALL = {"rewrite-all": "true"}


def some_options(draw: random.Random) -> dict[str, Any]:
    """A strategy and options, at random."""
    options: dict[str, Any] = {
        "target-file-size-bytes": draw.choice([500, 2_000, 10**9]),
        "min-input-files": draw.choice([1, 2, 5]),
        "rewrite-all": draw.random() < 0.5,
        "max-file-group-size-bytes": draw.choice([1_500, 10**9]),
        "partial-progress.enabled": draw.random() < 0.3,
        "max-concurrent-file-group-rewrites": draw.choice([1, 3]),
        "use-starting-sequence-number": draw.random() < 0.8,
        "delete-file-threshold": draw.choice([1, 2**31 - 1]),
        "rewrite-job-order": draw.choice(["none", "bytes-asc", "files-desc"]),
    }
    how: dict[str, Any] = {"options": options}
    how["order_by"] = draw.choice([None, "v desc nulls first, id", "zorder(id, v)"])
    how["where"] = draw.choice([None, None, "id > 5"])
    return how


@pytest.mark.law
@pytest.mark.parametrize("seed", range(2 * EFFORT))
def test_a_compaction_changes_nothing_that_can_be_read(seed: int) -> None:
    world = World(seed)
    table, how = world.table.refresh(), some_options(world.choose)
    before, at = told(table), table.metadata.current_snapshot_id
    planned = table.maintenance.rewrite_data_files(**how, dry_run=True)
    assert table.refresh().metadata.current_snapshot_id == at
    done = table.maintenance.rewrite_data_files(**how)
    assert told(table) == before
    assert done.rewritten_data_files_count == planned.rewritten_data_files_count
    assert done.rewritten_bytes_count == planned.rewritten_bytes_count
    assert bool(done.snapshot_ids) == bool(done.rewritten_data_files_count)
    assert table.changes(since=at).to_arrow().num_rows == 0
    assert rows(table.scan(at=at, columns=[*ARROW.names, *LINEAGE]).to_arrow()) == before
    assert table.verify(deep=True).is_clean


def between(table: Table, do: Any) -> None:
    """Have another do something after rows are read and written, before they are committed."""
    inner, first = compacting.write_packed, Lock()

    def late(*args: Any, **how: Any) -> Any:
        made = inner(*args, **how)
        if first.acquire(blocking=False):  # and kept: once is enough
            do(another(table).refresh())
        return made

    compacting.write_packed = late  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def _as_it_was() -> Any:
    inner = compacting.write_packed
    yield
    compacting.write_packed = inner


@pytest.mark.law
@pytest.mark.parametrize("seed", range(500, 500 + 2 * EFFORT))
def test_what_others_change_while_it_runs_is_neither_lost_nor_undone(seed: int) -> None:
    world = World(seed)
    table, how = world.table.refresh(), some_options(world.choose)
    how["options"] |= ALL
    after: list[list[str]] = []

    def change(other: Table) -> None:
        for _ in range(world.choose.randint(1, 3)):
            world.change(other)
        after.append(told(other))

    between(table, change)
    done = table.maintenance.rewrite_data_files(**how)
    assert not after or told(table) == after[0]
    assert done.failed_data_files_count == 0
    assert table.verify(deep=True).is_clean


def many(count: int = 12, **how: Any) -> Table:
    """A table of small files."""
    table = changing_table(**how)
    for number in range(count):
        table.append(some((2 * number, "a"), (2 * number + 1, "b")))
    return table


def test_small_files_become_one_and_a_second_run_finds_nothing_to_do() -> None:
    table = many()
    done = table.maintenance.rewrite_data_files()
    assert (done.rewritten_data_files_count, done.added_data_files_count) == (12, 1)
    assert len(data_files(table)) == 1
    assert table.maintenance.rewrite_data_files() == Rewritten()


def test_few_files_or_files_of_other_partitions_are_left_alone() -> None:
    assert many(4).maintenance.rewrite_data_files() == Rewritten()
    parted = many(12, partition_by=["truncate(8, id)"])
    assert parted.maintenance.rewrite_data_files() == Rewritten()
    done = parted.maintenance.rewrite_data_files(options={"min-input-files": 2})
    assert done.added_data_files_count == 3


def test_a_worn_file_is_rewritten_by_itself_and_its_dv_goes() -> None:
    table = changing_table()
    table.append(some(*((id, "a") for id in range(10))))
    delete_rows(table, [1, 2])
    assert table.maintenance.rewrite_data_files() == Rewritten()
    delete_rows(table, [3])
    done = table.maintenance.rewrite_data_files()
    assert (done.rewritten_data_files_count, done.removed_delete_files_count) == (1, 1)
    assert table.scan().plan().tasks["dv_location"].null_count == 1


def test_files_without_a_live_row_just_go() -> None:
    table = many(6)
    delete_equal(table, range(12))
    done = table.maintenance.rewrite_data_files()
    assert (done.rewritten_data_files_count, done.added_data_files_count) == (6, 0)
    assert data_files(table) == []


def test_only_files_that_may_match_are_rewritten_with_all_their_rows() -> None:
    table = many(12)
    done = table.maintenance.rewrite_data_files(where="id < 11", options={"min-input-files": 2})
    assert done.rewritten_data_files_count == 6
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(24))


def test_rows_are_in_the_order_that_is_asked_for() -> None:
    table = many(6, order_by=["id desc"])
    table.maintenance.rewrite_data_files(strategy="sort", options=ALL)
    assert table.scan().to_arrow()["id"].to_pylist() == list(range(11, -1, -1))
    order = table.metadata.default_sort_order_id
    assert table.scan().plan().tasks["sort_order_id"].to_pylist() == [order]
    table.maintenance.rewrite_data_files(order_by="v, bucket(2, id), id", options=ALL)
    assert table.scan().to_arrow()["v"].to_pylist() == ["a"] * 6 + ["b"] * 6
    assert table.scan().plan().tasks["sort_order_id"].to_pylist() == [0]


def test_files_are_partitioned_as_the_table_is_now() -> None:
    table = many(6)
    with table.edit_spec() as spec:
        spec.add("truncate(4, id)")
    table.maintenance.rewrite_data_files(options=ALL)
    assert table.scan().plan().tasks["partition_spec_id"].to_pylist() == [1, 1, 1]
    table.maintenance.rewrite_data_files(options={**ALL, "output-spec-id": 0})
    assert table.scan().plan().tasks["partition_spec_id"].to_pylist() == [0]
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(12))


def test_a_branch_is_compacted_and_main_is_not() -> None:
    table = many()
    table.create_branch("b")
    table.maintenance.rewrite_data_files(branch="b")
    assert len(data_files(table)) == 12
    assert table.scan(at="b").plan().tasks.num_rows == 1
    with pytest.raises(NotFound, match="no branch 'c'"):
        table.maintenance.rewrite_data_files(branch="c")


def test_partial_progress_commits_some_groups_at_a_time() -> None:
    table = many(12, partition_by=["truncate(4, id)"])
    options = {"min-input-files": 2, "partial-progress.enabled": True}
    done = table.maintenance.rewrite_data_files(
        options={**options, "partial-progress.max-commits": 4}
    )
    assert len(done.snapshot_ids) == 3
    assert done.added_data_files_count == 6


@pytest.mark.parametrize("partial", [True, False])
def test_a_group_that_cannot_be_read_fails_alone_only_with_partial_progress(partial: bool) -> None:
    table = many(12, partition_by=["truncate(8, id)"])
    lost = table.scan("id = 1").plan().tasks["location"][0].as_py()
    table.files.store.delete([f"{table.location}/{lost}"])
    before = stored(table)
    how = {"min-input-files": 2, "partial-progress.enabled": partial}
    if not partial:
        with pytest.raises(IcetreeError):
            table.maintenance.rewrite_data_files(options=how)
        assert stored(table) == before
        return
    done = table.maintenance.rewrite_data_files(options=how)
    assert done.failed_data_files_count == 4
    assert done.rewritten_data_files_count == 8


def test_no_group_is_begun_after_one_that_spoils_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    table = changing_table(partition_by="v")
    for number in range(24):
        table.append(some((number, "abcdefgh"[number % 8])))
    begun = []

    def fails(*args: object, **_: object) -> object:
        begun.append(args)
        raise NotFound("gone")

    monkeypatch.setattr(compacting, "write_packed", fails)
    options = {"min-input-files": 2, "max-concurrent-file-group-rewrites": 1}
    with pytest.raises(NotFound, match="gone"):
        table.maintenance.rewrite_data_files(options=options)
    assert len(begun) == 1


def test_two_compactions_of_one_table_do_no_harm() -> None:
    table = many()
    before = told(table)
    between(table, lambda other: other.maintenance.rewrite_data_files())
    table.maintenance.rewrite_data_files()
    assert told(table) == before
    assert len(data_files(table)) == 1


def test_an_equality_delete_that_comes_meanwhile_applies() -> None:
    table = many()
    between(table, lambda other: delete_equal(other, [3, 4]))
    done = table.maintenance.rewrite_data_files()
    assert len(done.snapshot_ids) == 1
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, *range(5, 24)]


@pytest.mark.parametrize("strategy", ["binpack", "sort"])
def test_a_group_without_live_rows_leaves_no_file(strategy: str) -> None:
    """What an equality delete leaves of files is known only once they are read."""
    table = many()
    delete_equal(table, range(24))
    how: dict[str, Any] = {"order_by": "id"} if strategy == "sort" else {}
    done = table.maintenance.rewrite_data_files(
        strategy=strategy, options={"rewrite-all": True}, **how
    )
    assert done.added_data_files_count == 0
    assert data_files(table) == []
    assert table.scan().count() == 0
    assert table.verify(deep=True).is_clean


def test_without_kept_ages_it_is_done_again_after_an_equality_delete() -> None:
    table = many()
    between(table, lambda other: delete_equal(other, [3, 4]))
    table.maintenance.rewrite_data_files(options={"use-starting-sequence-number": False})
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, *range(5, 24)]
    assert len(data_files(table)) == 1


def test_rows_without_ids_are_rewritten_again_after_a_delete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing can be carried over, so the group is planned anew on what the table is then."""
    table = many()
    between(table, lambda other: delete_rows(other, [3]))
    monkeypatch.setattr(carry, "ids_of", lambda *_, **__: None)
    table.maintenance.rewrite_data_files()
    assert 3 not in table.scan().to_arrow()["id"].to_pylist()
    assert len(data_files(table)) == 1


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"strategy": "pile"}, "strategy='pile': allowed are binpack, sort, zorder"),
        ({"strategy": "sort"}, "the table has no sort order"),
        ({"strategy": "zorder"}, "z-order by which columns"),
        ({"strategy": "binpack", "order_by": "id"}, "leave the order out"),
        ({"order_by": "zorder(id, id)"}, "name each column once"),
        ({"order_by": "zorder(tags)"}, "which no transform takes"),
        ({"order_by": "zorder(id), v"}, "with no other keys"),
        ({"options": {"target-file-size": 1}}, "did you mean"),
        ({"options": {"target-file-size-bytes": "0"}}, "target-file-size-bytes"),
        ({"options": {"min-file-size-bytes": 10**12}}, "neither too small nor too large"),
        ({"options": {"delete-ratio-threshold": "2"}}, "a part of 1"),
        ({"options": {"output-spec-id": 7}}, "no such partition spec"),
        ({"options": ["rewrite-all"]}, "give a mapping"),
        ({"where": "nope = 1"}, "nope"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_happens(how: dict[str, Any], says: str) -> None:
    table = many(6)
    before = table.state
    with pytest.raises((InvalidInput, NotFound), match=says):
        table.maintenance.rewrite_data_files(**how)
    assert table.refresh().state == before


def test_progress_is_told_and_the_outcome_says_what_was_done() -> None:
    heard: list[tuple[str, int, int]] = []
    done = many().maintenance.rewrite_data_files(progress=lambda *told: heard.append(told))
    assert heard == [("file groups rewritten", 1, 1)]
    assert str(done).startswith("rewrote 12 data files (")
    assert done.as_dict()["added_data_files_count"] == 1


@pytest.mark.parametrize("commits", [1, 2])
def test_progress_is_told_group_by_group_in_however_many_commits(commits: int) -> None:
    heard: list[tuple[str, int, int]] = []
    options = {"partial-progress.enabled": commits > 1, "partial-progress.max-commits": commits}
    done = many(12, partition_by=["truncate(4, id)"]).maintenance.rewrite_data_files(
        options={"min-input-files": 2, **options}, progress=lambda *told: heard.append(told)
    )
    assert len(done.snapshot_ids) == commits
    assert heard == [("file groups rewritten", number, 6) for number in range(1, 7)]


def test_what_is_done_before_files_of_the_rest_expire_is_told() -> None:
    table = changing_table(partition_by="v")
    for number in range(12):
        table.append(some((number, "abc"[number % 3])))
    few, tries = {"min-input-files": 2}, list[int]()

    def run(rewriting: Rewriting, plans: list[Plan]) -> Generator[Any, None, None]:
        tries.append(len(plans))
        if len(tries) == 1:
            another(table).maintenance.rewrite_data_files(where="v = 'c'", options=few)
        if len(tries) == 3:
            another(table).append(some((99, "d")))
            yield NotFound("gone")
        yield from side_by_side(rewriting, plans)

    done = rewrite_data_files(table, branch="main", options=few, run=run)
    assert tries == [3, 1, 1, 1]
    assert (done.rewritten_data_files_count, len(done.snapshot_ids)) == (8, 2)
