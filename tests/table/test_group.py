"""Several commits with one swap: each as it would have been by itself, or none of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from icetree.catalog.base import Catalog
from icetree.catalog.memory import MemoryCatalog
from icetree.errors import CommitUnknown, CorruptTable, InvalidInput, NotFound, Unavailable
from icetree.store.base import Store
from icetree.store.memory import MemoryStore
from icetree.surroundings import within
from icetree.table.group import commit_group
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.catalog.flaky import Before, FlakyCatalog, LoseAnswer, LoseRequest, Refuse
from tests.store.flaky import Fault, FlakyStore, How
from tests.table.changing import ARROW, some
from tests.table.maintain.history import Clock


def lake_on(store: Store, catalog: Catalog) -> Lake:
    return Lake(catalog=catalog, store=store, warehouse="memory://w")


def new_lake(**properties: str) -> Lake:
    lake = lake_on(MemoryStore(), MemoryCatalog("m"))
    lake.create_namespace("db")
    lake.create_table("db.t", ARROW, properties=properties).append(some((0, "a")))
    return lake


def again(lake: Lake) -> Table:
    return lake_on(lake.store, lake.catalog).table("db.t")


def append(*ids: int) -> Callable[[Table], object]:
    return lambda table: table.append(some(*((id, "a") for id in ids)))


def refuse(_: Table) -> None:
    raise InvalidInput("no")


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def files(lake: Lake) -> set[str]:
    return {each.location for each in lake.store.list("memory://w")}


def metadata_files(lake: Lake) -> set[str]:
    return {each for each in files(lake) if each.endswith(".metadata.json")}


def test_each_has_a_snapshot_and_all_one_metadata_file() -> None:
    lake = new_lake()
    table, before = lake.table("db.t"), metadata_files(lake)
    assert commit_group(table, [append(1), append(2, 3), append(4)]) == [None] * 3
    assert ids(table) == [0, 1, 2, 3, 4]
    assert [each.operation for each in table.history()] == ["append"] * 4
    assert len(metadata_files(lake) - before) == 1
    # Every former head that the log names is there.
    log = {each.metadata_file for each in table.metadata.metadata_log}
    assert {f"{table.location}/{each}" for each in log} == before
    assert again(lake).verify(deep=True).is_clean


def test_no_moment_shows_what_nobody_could_have_seen() -> None:
    lake = new_lake()
    table = lake.table("db.t")
    before = table.metadata.snapshot_log

    def later(made: Table) -> None:
        # As whoever began the next commit of a group a second after this one.
        clock.tick()
        made.create_branch("late", at=made.metadata.current_snapshot_id)

    clock = Clock()
    with within(clock):
        commit_group(table, [append(1), append(2), append(3), later])
    [*old, newest] = table.metadata.snapshot_log
    assert tuple(old) == before
    assert newest.snapshot_id == table.metadata.current_snapshot_id
    assert newest.timestamp_ms == table.metadata.last_updated_ms == clock.at_ms


def test_no_page_of_history_shows_what_nobody_could_have_seen() -> None:
    lake = new_lake(**{"write.metadata.inline-snapshots": "1"})
    table = lake.table("db.t")
    for number in range(3):
        commit_group(table, [append(100 * number + id) for id in range(1, 31)])
    assert table.metadata.snapshot_pages
    pages = [table.files.page(each) for each in table.metadata.snapshot_pages]
    logged = [each.snapshot_id for page in pages for each in page.snapshot_log]
    logged += [each.snapshot_id for each in table.metadata.snapshot_log]
    every = [each.snapshot_id for each in reversed([*table.history()])]
    assert logged == [every[0], every[30], every[60], every[90]]
    assert again(lake).verify(deep=True).is_clean


def test_each_sees_what_the_ones_before_it_did() -> None:
    lake = new_lake()
    table = lake.table("db.t")
    commit_group(table, [append(1), lambda side: side.delete("id = 1"), append(2)])
    assert ids(again(lake)) == [0, 2]
    ages = [each.sequence_number for each in table.history()]
    assert sorted(ages) == [1, 2, 3, 4]
    assert len({*ages}) == 4


def test_one_that_is_refused_leaves_the_others_as_they_are() -> None:
    lake = new_lake()
    refusals = commit_group(lake.table("db.t"), [append(1), refuse, append(2)])
    assert [type(each) for each in refusals] == [type(None), InvalidInput, type(None)]
    assert ids(again(lake)) == [0, 1, 2]


def test_one_that_fails_after_its_swap_is_as_if_it_had_not_been() -> None:
    def stumble(table: Table) -> None:
        append(7)(table)
        raise ZeroDivisionError

    lake = new_lake()
    refusals = commit_group(lake.table("db.t"), [append(1), stumble, append(2)])
    assert [type(each) for each in refusals] == [type(None), ZeroDivisionError, type(None)]
    assert ids(again(lake)) == [0, 1, 2]
    assert again(lake).verify(deep=True).is_clean


def test_a_group_of_which_nothing_is_left_changes_nothing() -> None:
    lake = new_lake()
    before = files(lake)
    [refusal] = commit_group(lake.table("db.t"), [refuse])
    assert isinstance(refusal, InvalidInput)
    assert files(lake) == before


@pytest.mark.parametrize("inline", ["1", "100"])
def test_history_goes_to_pages_without_any_that_nobody_names(inline: str) -> None:
    lake = new_lake(**{"write.metadata.inline-snapshots": inline})
    table = lake.table("db.t")
    commit_group(table, [append(id) for id in range(1, 6)])
    pages = {each for each in files(lake) if each.endswith(".page.json.gz")}
    assert pages == {f"{table.location}/{each.location}" for each in table.metadata.snapshot_pages}
    assert len([*again(lake).history()]) == 6


def test_when_another_came_first_all_are_made_anew_on_what_that_one_did() -> None:
    lake = new_lake()
    first = Before(lambda: again(lake).append(some((9, "a"))))
    racing = lake_on(lake.store, FlakyCatalog(lake.catalog, {("swap", 1): first}))
    assert commit_group(racing.table("db.t"), [append(1), append(2)]) == [None] * 2
    assert ids(again(lake)) == [0, 1, 2, 9]
    # Nothing of the try that lost stays behind.
    later = "2100-01-01T00:00:00Z"
    table = again(lake)
    assert (
        table.maintenance.remove_orphan_files(older_than=later, force=True).orphan_file_location
        == ()
    )


@pytest.mark.parametrize("lost", [LoseAnswer(), LoseRequest()])
def test_a_swap_of_which_nothing_is_heard_deletes_nothing(lost: LoseAnswer | LoseRequest) -> None:
    lake = new_lake(**{"commit.status-check.max-wait-ms": "1"})
    table = lake_on(lake.store, FlakyCatalog(lake.catalog, {("swap", 1): lost})).table("db.t")
    if isinstance(lost, LoseAnswer):
        commit_group(table, [append(1), append(2)])
        assert ids(again(lake)) == [0, 1, 2]
    else:
        with pytest.raises(CommitUnknown):
            commit_group(table, [append(1), append(2)])
        assert ids(again(lake)) == [0]
    assert again(lake).verify(deep=True).is_clean


@pytest.mark.parametrize("error", [CorruptTable("c.db", "malformed"), NotFound("gone")])
def test_a_head_that_cannot_be_learnt_after_a_lost_answer_deletes_nothing(error: Exception) -> None:
    lake = new_lake(**{"commit.status-check.max-wait-ms": "1"})
    table = lake.table("db.t")
    faults = {("swap", 1): LoseAnswer(), ("load", 2): Refuse(error)}
    table.catalog = FlakyCatalog(lake.catalog, faults)
    with pytest.raises(CommitUnknown):
        commit_group(table, [append(1), append(2)])
    assert ids(again(lake)) == [0, 1, 2]


@pytest.mark.parametrize("how", [How.BEFORE, How.AFTER])
def test_what_is_not_refused_lands_whichever_request_fails(how: How) -> None:
    whole = _steps()
    for step in range(whole):
        lake = new_lake()
        failing = lake_on(FlakyStore(lake.store), lake.catalog).table("db.t")
        assert isinstance(failing.files.store, FlakyStore)
        failing.files.store._faults = [Fault(at=step + len(failing.files.store.steps), how=how)]
        try:
            refusals = commit_group(failing, [append(1), append(2)])
        except Unavailable as error:
            refusals = [error, error]
        landed = [id for id, refusal in enumerate(refusals, start=1) if refusal is None]
        assert ids(again(lake)) == [0, *landed]
        assert again(lake).verify(deep=True).is_clean


def _steps() -> int:
    lake = new_lake()
    table = lake_on(FlakyStore(lake.store), lake.catalog).table("db.t")
    assert isinstance(table.files.store, FlakyStore)
    before = len(table.files.store.steps)
    commit_group(table, [append(1), append(2)])
    return len(table.files.store.steps) - before
