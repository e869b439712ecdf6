"""Expiring snapshots: what stays is as it was, what goes leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

import pytest

from icetree.errors import CommitConflict, CommitUnknown, InvalidInput, NotFound, Unavailable
from icetree.files.cache import Cache
from icetree.spec.edit.refs import Retention
from icetree.store.base import Store
from icetree.surroundings import within
from icetree.table.point import time_of
from icetree.table.table import Table
from tests.effort import EFFORT
from tests.store.wrapped import Request, WrappedStore
from tests.table.changing import LEAFY, changing_table, delete_rows, some
from tests.table.maintain.history import (
    SECOND,
    Clock,
    Past,
    Told,
    changed_files,
    named,
    stored,
    told,
)

T = TypeVar("T")

STEPS = 25


@pytest.mark.law
@pytest.mark.parametrize("seed", [*range(6, 6 + EFFORT)])
def test_what_is_retained_reads_as_before_and_nothing_else_is_left(seed: int) -> None:
    past = Past(seed)
    past.live(STEPS)
    before: dict[int, Told] = {}
    for _ in range(2):
        # What is told of a snapshot never changes.
        before |= told(past.table, past.ids() - before.keys())
        at_ms = past.clock.at_ms - past.choose.randrange(STEPS) * SECOND
        have = past.ids()
        made_ms = {each.snapshot_id: each.timestamp_ms for each in past.table.history()}
        with within(past.clock):
            done = past.table.maintenance.expire_snapshots(
                older_than=time_of(at_ms), retain_last=past.choose.randint(1, 4)
            )
        assert past.ids() == have - set(done.snapshot_ids)
        # No branch here has an age of its own: nothing younger goes, whatever reaches it or does not.
        assert all(made_ms[id] < at_ms for id in done.snapshot_ids)
        for id, now in told(past.table, past.ids()).items():
            assert (now.rows, now.files) == (before[id].rows, before[id].files)
            assert now.changed is None or now.changed == before[id].changed
        assert past.table.verify(deep=True).is_clean
        assert changed_files(past.table) <= stored(past.table)
        _require_tidy(past.table)
        past.live(5)


def _require_tidy(table: Table) -> None:
    """Nothing is stored but what is named, and former metadata with the pages it had."""
    stray = stored(table) - named(table)
    assert {each for each in stray if "/metadata/" not in each} == set()
    assert {each for each in stray if not each.endswith((".json", ".json.gz"))} == set()


def _line(count: int, clock: Clock) -> Table:
    """A table of so many appends, one a second."""
    table = changing_table()
    with within(clock):
        for number in range(count):
            clock.tick()
            table.append(some((number, "a")))
    return table


def _sequence_numbers(table: Table) -> list[int]:
    return sorted(each.sequence_number for each in table.history())


def test_the_rules_of_the_table_decide_unless_told_otherwise() -> None:
    clock = Clock()
    table = _line(10, clock)
    table.set_properties({"history.expire.max-snapshot-age-ms": str(4 * SECOND)})
    with within(clock):
        table.maintenance.expire_snapshots()
    assert _sequence_numbers(table) == [6, 7, 8, 9, 10]
    table.set_properties({"history.expire.min-snapshots-to-keep": "3"})
    with within(clock):
        table.maintenance.expire_snapshots(older_than=time_of(clock.at_ms + SECOND))
    assert _sequence_numbers(table) == [8, 9, 10]
    with within(clock):
        table.maintenance.expire_snapshots(older_than=time_of(clock.at_ms + SECOND), retain_last=1)
    assert _sequence_numbers(table) == [10]


def test_branches_and_tags_keep_what_they_say() -> None:
    clock = Clock()
    table = _line(6, clock)
    ids = {each.sequence_number: each.snapshot_id for each in table.history()}
    table.create_tag("kept", at=ids[2])
    table.create_tag("aged", at=ids[1], max_ref_age_ms=2 * SECOND)
    table.create_branch("long", at=ids[4], retention=Retention(min_snapshots_to_keep=2))
    with within(clock):
        done = table.maintenance.expire_snapshots(older_than=time_of(clock.at_ms), retain_last=1)
    assert done.refs == ("aged",)
    assert set(table.refs) == {"main", "kept", "long"}
    assert _sequence_numbers(table) == [2, 3, 4, 6]


def test_what_only_a_tag_has_behind_it_goes_by_its_age() -> None:
    clock = Clock()
    table = _line(6, clock)
    ids = {each.sequence_number: each.snapshot_id for each in table.history()}
    table.create_tag("kept", at=ids[5])
    with within(clock):
        table.rollback(ids[2])
        assert table.maintenance.expire_snapshots().snapshot_ids == ()
        table.maintenance.expire_snapshots(older_than=time_of(clock.at_ms - 2 * SECOND))
    assert _sequence_numbers(table) == [2, 4, 5, 6]


def test_without_a_time_five_days_are_kept() -> None:
    clock = Clock()
    table = _line(2, clock)
    with within(clock):
        assert table.maintenance.expire_snapshots().snapshot_ids == ()
        clock.at_ms += 5 * 86_400 * SECOND + 1
        assert len(table.maintenance.expire_snapshots().snapshot_ids) == 1


def test_snapshots_can_be_named_but_none_that_a_ref_points_to() -> None:
    table = _line(3, Clock())
    ids = {each.sequence_number: each.snapshot_id for each in table.history()}
    table.create_tag("kept", at=ids[1])
    with pytest.raises(InvalidInput, match="tag 'kept' points to it"):
        table.maintenance.expire_snapshots(snapshot_ids=[ids[1]])
    with pytest.raises(NotFound, match="there is no snapshot 7"):
        table.maintenance.expire_snapshots(snapshot_ids=[7])
    with pytest.raises(InvalidInput, match="not both"):
        table.maintenance.expire_snapshots(snapshot_ids=[ids[2]], retain_last=1)
    table.maintenance.expire_snapshots(snapshot_ids=[ids[2]])
    assert _sequence_numbers(table) == [1, 3]


def test_a_dry_run_tells_the_same_and_changes_nothing() -> None:
    clock = Clock()
    table = _line(5, clock)
    with within(clock):
        delete_rows(table, [0, 1])
    files, state = stored(table), table.state
    how = {"older_than": time_of(clock.at_ms + SECOND), "retain_last": 1}
    with within(clock):
        plan = table.maintenance.expire_snapshots(dry_run=True, **how)  # type: ignore[arg-type]
        assert (stored(table), table.refresh().state) == (files, state)
        done = table.maintenance.expire_snapshots(**how)  # type: ignore[arg-type]
    assert plan.as_dict() == {**done.as_dict(), "dry_run": True}
    assert done.deleted_manifest_lists_count == 5
    assert str(done).startswith("expired 5 snapshots; files: ")


def test_a_table_whose_files_may_be_anothers_is_left_alone() -> None:
    table = _line(2, Clock())
    table.set_properties({"gc.enabled": "false"})
    with pytest.raises(InvalidInput, match=r"gc\.enabled is false"):
        table.maintenance.expire_snapshots(retain_last=1)


def _before_the_commit(table: Table, do: Callable[[Table], object]) -> None:
    """Have another writer come first, once, after the plan is made."""
    other = Table(catalog=table.catalog, files=table.files, state=table.state)
    update, once = table.update_metadata, []

    def late(*updates: object) -> object:
        if not once:
            once.append(do(other))
        return update(*updates)  # type: ignore[arg-type]

    table.update_metadata = late  # type: ignore[method-assign, assignment]


def test_a_branch_made_meanwhile_keeps_its_snapshot() -> None:
    clock = Clock()
    table = _line(4, clock)
    oldest = min(table.history(), key=lambda each: each.sequence_number)
    _before_the_commit(table, lambda other: other.create_branch("late", at=oldest.snapshot_id))
    with within(clock):
        table.maintenance.expire_snapshots(older_than=time_of(clock.at_ms + SECOND), retain_last=1)
    assert _sequence_numbers(table) == [1, 4]
    assert table.verify(deep=True).is_clean


class _Overtaken(WrappedStore):
    """A store on which somebody else does something, once, before a root is read."""

    def __init__(self, store: Store, do: Callable[[], object]) -> None:
        super().__init__(store)
        self._do = [do]

    def _pass(self, request: Request, effect: Callable[[], T]) -> T:
        if "root" in request.location and self._do:
            self._do.pop()()
        return effect()


def test_another_who_expires_the_same_at_the_same_time_does_no_harm() -> None:
    clock = Clock()
    table = _line(4, clock)
    older_than = time_of(clock.at_ms + SECOND)
    store = _Overtaken(
        table.files.store, lambda: table.maintenance.expire_snapshots(older_than=older_than)
    )
    files = replace(table.files, store=store, cache=Cache(0).of(table.metadata.table_uuid))
    late = Table(catalog=table.catalog, files=files, state=table.state)
    with within(clock):
        assert late.maintenance.expire_snapshots(older_than=older_than).snapshot_ids == ()
    assert _sequence_numbers(late) == [4]
    assert table.refresh().verify(deep=True).is_clean


@pytest.mark.parametrize("how", ["roll back", "branch"])
def test_files_stay_that_another_came_to_need_again_in_a_leaf_that_is_known(how: str) -> None:
    clock = Clock()
    table = changing_table(properties=LEAFY | {"write.commit.compact-max-entries": "0"})
    with within(clock):
        with table.transaction() as many:
            for number in range(6):
                many.append(some((number, "a")))
        first = table.snapshot().snapshot_id
        for number in (3, 10, 11):
            clock.tick()
            # One file goes by a manifest DV of the leaf that all trees share.
            table.delete(f"id = {number}") if number == 3 else table.append(some((number, "b")))

    def go_back(other: Table) -> None:
        if how == "roll back":
            other.rollback(first)
            other.append(some((20, "c")))
        else:
            other.create_branch("old", at=first)
            other.append(some((20, "c")), branch="old")

    _before_the_commit(table, go_back)
    with within(clock):
        table.maintenance.expire_snapshots(older_than=time_of(clock.at_ms + SECOND), retain_last=1)
    at = "main" if how == "roll back" else "old"
    found = table.refresh().scan(at=at).to_arrow()["id"].to_pylist()
    assert sorted(found) == [0, 1, 2, 3, 4, 5, 20]
    assert table.verify(deep=True).is_clean


def test_an_append_lands_though_the_snapshot_of_its_handle_has_expired() -> None:
    clock = Clock()
    table = _line(2, clock)
    files = replace(table.files, cache=Cache(0).of(table.metadata.table_uuid))
    stale = Table(catalog=table.catalog, files=files, state=table.state)
    with within(clock):
        for number in range(12):
            clock.tick()
            table.append(some((10 + number, "b")))
        table.maintenance.expire_snapshots(older_than=time_of(clock.at_ms + SECOND), retain_last=1)
        stale.append(some((99, "late")))
    assert 99 in table.refresh().scan().to_arrow()["id"].to_pylist()
    assert table.scan().count() == 15
    _require_tidy(table)


def test_what_is_picked_must_not_have_expired() -> None:
    clock = Clock()
    table = _line(1, clock)
    with within(clock):
        table.append(some((7, "staged")), branch=None)
    staged = max(table.history(), key=lambda each: each.sequence_number)
    with within(clock):
        table.append(some((8, "main")))
    stale = Table(catalog=table.catalog, files=table.files, state=table.state)
    with within(clock):
        table.maintenance.expire_snapshots(snapshot_ids=[staged.snapshot_id])
    with pytest.raises(CommitConflict, match="expired before it was picked"):
        stale.cherry_pick(staged.snapshot_id)
    assert table.refresh().verify(deep=True).is_clean


@pytest.mark.parametrize("verb", ["create_branch", "create_tag", "rollback", "set_current"])
def test_a_ref_that_is_to_point_to_what_has_expired_is_a_conflict(verb: str) -> None:
    """The writer saw the snapshot: what it asks for was right, and others were faster."""
    clock = Clock()
    table = _line(4, clock)
    oldest = min(table.history(), key=lambda each: each.sequence_number).snapshot_id
    stale = Table(catalog=table.catalog, files=table.files, state=table.state)
    with within(clock):
        table.maintenance.expire_snapshots(snapshot_ids=[oldest])
    with pytest.raises(CommitConflict, match="expired before"):
        _point(stale, verb, oldest)
    with pytest.raises(NotFound):
        _point(table, verb, oldest)


def _point(table: Table, verb: str, id: int) -> None:
    if verb.startswith("create"):
        getattr(table, verb)("late", at=id)
    else:
        getattr(table, verb)(id)


def test_a_file_that_another_adds_again_stays() -> None:
    clock = Clock()
    table = _line(1, clock)
    location = f"{table.location}/{table.scan().plan().tasks['location'][0].as_py()}"
    with within(clock):
        clock.tick()
        table.truncate()
        clock.tick()
        table.append(some((5, "b")))
    _before_the_commit(table, lambda other: other.add_files([location]))
    with within(clock):
        table.maintenance.expire_snapshots(older_than=time_of(clock.at_ms + SECOND), retain_last=1)
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [0, 5]
    assert table.verify(deep=True).is_clean


def test_when_it_is_not_known_whether_it_landed_no_file_goes() -> None:
    clock = Clock()
    table = _line(3, clock)
    before = stored(table)

    def lost(*_: object) -> object:
        raise CommitUnknown("the answer was lost")

    table.update_metadata = lost  # type: ignore[method-assign, assignment]
    with within(clock), pytest.raises(CommitUnknown):
        table.maintenance.expire_snapshots(older_than=time_of(clock.at_ms + SECOND), retain_last=1)
    assert stored(table) == before


class _Stuck(WrappedStore):
    """A store where one file cannot be deleted, and perhaps nobody can see what is there."""

    def __init__(self, store: Store, stuck: str, *, is_silent: bool) -> None:
        super().__init__(store)
        self._stuck, self._is_silent = stuck, is_silent

    def delete(self, locations: Iterable[str]) -> None:
        gone = [*locations]
        super().delete(each for each in gone if each != self._stuck)
        if self._stuck in gone:
            raise InvalidInput(f"{self._stuck} is locked")

    def exists(self, location: str) -> bool:
        if self._is_silent:
            raise Unavailable("nobody answers")
        return super().exists(location)


def _with_an_old_file(clock: Clock) -> tuple[Table, str]:
    """A table, and a data file of it that old snapshots alone have."""
    table = _line(5, clock)
    with within(clock):
        clock.tick()
        table.truncate()
        clock.tick()
        table.append(some((9, "b")))
    live = table.inspect.files()["file_path"].to_pylist()
    every = table.inspect.all_files()["file_path"].to_pylist()
    return table, next(each for each in every if each not in live)


def test_what_stays_behind_is_told_file_by_file() -> None:
    clock = Clock()
    table, data = _with_an_old_file(clock)
    how = {"older_than": time_of(clock.at_ms + SECOND), "retain_last": 1}
    table.files = replace(table.files, store=_Stuck(table.files.store, data, is_silent=False))
    with within(clock):
        plan = table.maintenance.expire_snapshots(dry_run=True, **how)  # type: ignore[arg-type]
        done = table.maintenance.expire_snapshots(**how)  # type: ignore[arg-type]
    assert [f"{table.location}/{each}" for each in done.left_behind] == [data]
    assert table.files.store.exists(data)
    assert done.deleted_data_files_count == plan.deleted_data_files_count - 1


def test_where_nobody_can_see_what_stayed_all_of_it_is_told() -> None:
    clock = Clock()
    table, data = _with_an_old_file(clock)
    table.files = replace(table.files, store=_Stuck(table.files.store, data, is_silent=True))
    with within(clock):
        done = table.maintenance.expire_snapshots(
            older_than=time_of(clock.at_ms + SECOND), retain_last=1
        )
    assert len(done.left_behind) > 5
    assert done.deleted_data_files_count == 0
