"""A handle that has not looked for long: what went meanwhile by rights is not called lost.

Each law is about a table that nothing is wrong with, and a handle which still names files that are gone.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from icetree.errors import CommitConflict, InvalidInput, NotFound
from icetree.spec.entry.entry import Entry
from icetree.spec.metadata.metadata import StatisticsFile
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.metadata.update import SetStatistics
from icetree.table import repair as repairing
from icetree.table.commit.commit import Committed
from icetree.table.lake import Lake
from icetree.table.point import time_of
from icetree.table.table import Table
from icetree.table.verify import verify as verifying
from icetree.table.verify.findings import Kind
from icetree.tree.grow.cherry_pick import SOURCE_SNAPSHOT
from tests.table.lake import connection, data_file, new_table
from tests.table.verify.reports import kinds, rules

#: Enough snapshots for a page of history, which the next expiry writes anew.
_SNAPSHOTS = 14
_PROPERTIES = {
    "write.metadata.inline-snapshots": "1",
    "write.metadata.previous-versions-max": "1",
    "write.metadata.delete-after-commit.enabled": "true",
}


def append(table: Table, name: str, **how: Any) -> Snapshot:
    entry: Entry = data_file(name, 0, 0)
    assert entry.location is not None
    table.files.store.write_new(entry.location, bytes(100))
    made = table.append_files([entry], **how).snapshot
    assert made is not None
    return made


def statistics(table: Table, name: str, snapshot_id: int, content: bytes | None) -> None:
    """Set statistics of a snapshot; a file that is lost without a content."""
    if content is not None:
        table.files.store.write_new(f"{table.location}/metadata/{name}", content)
    told = StatisticsFile(
        snapshot_id=snapshot_id,
        statistics_path=f"metadata/{name}",
        file_size_in_bytes=10,
        file_footer_size_in_bytes=5,
        blob_metadata=(),
    )
    table.update_metadata(SetStatistics(statistics=told))


class Seen:
    """A table with pages of history; `stale` saw it before `other` let some of it expire."""

    def __init__(self) -> None:
        lake = connection()
        self.other = new_table(lake, properties=_PROPERTIES)
        self.made = [append(self.other, f"f{at}") for at in range(_SNAPSHOTS)]
        self.staged = append(self.other, "staged", branch="side", create_branch=True)
        statistics(self.other, "old.stats", self.made[0].snapshot_id, bytes(10))
        self.stale = self.handle()
        assert self.stale.metadata.snapshot_pages

    def handle(self) -> Table:
        """Return a handle that has read nothing yet."""
        of = self.other
        return Lake(catalog=of.catalog, store=of.files.store, warehouse="memory://w").table("db.t")

    def let_go(self, *which: int) -> None:
        ids = [self.made[at].snapshot_id for at in which]
        self.other.maintenance.expire_snapshots(snapshot_ids=ids)


@pytest.fixture
def seen() -> Seen:
    return Seen()


# --- verify and repair --------------------------------------------------------------------------


def test_what_expired_since_a_handle_looked_is_nothing_to_find(seen: Seen) -> None:
    seen.let_go(0, 1)
    append(seen.other, "more")
    before = seen.stale.state
    report = seen.stale.verify(snapshots="all")
    assert rules(report) == ""
    assert report.counts["snapshots"] == _SNAPSHOTS
    assert seen.stale.state is before, "verify moves no handle"


def test_what_expires_while_one_looks_is_nothing_to_find(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, going = verifying.check_history, [0]

    def meanwhile(*args: Any, **how: Any) -> Any:
        if going:
            seen.let_go(going.pop())
        return look(*args, **how)

    monkeypatch.setattr(verifying, "check_history", meanwhile)
    assert rules(seen.handle().verify()) == ""


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_repair_of_a_sound_table_commits_nothing_however_old_the_handle(
    seen: Seen, dry_run: bool
) -> None:
    seen.let_go(0, 1)
    append(seen.other, "more")
    at = seen.other.state.metadata_location
    assert seen.stale.repair(dry_run=dry_run).text() == "nothing to repair"
    assert seen.other.refresh().state.metadata_location == at


def test_what_is_lost_is_told_though_others_commit_all_the_time(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen.other.files.store.delete([f"{seen.other.location}/data/f3.parquet"])
    look, names = verifying.check_history, iter(f"more{at}" for at in range(99))

    def meanwhile(*args: Any, **how: Any) -> Any:
        append(seen.other, next(names))
        return look(*args, **how)

    monkeypatch.setattr(verifying, "check_history", meanwhile)
    report = seen.stale.verify()
    assert [(each.kind, each.file) for each in report.findings] == [
        (Kind.MISSING_FILE, "data/f3.parquet")
    ]


def test_of_what_goes_each_time_one_looks_only_what_is_lost_is_told(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen.other.files.store.delete([f"{seen.other.location}/data/f13.parquet"])
    look, going = verifying.check_history, iter(range(_SNAPSHOTS - 1))

    def meanwhile(*args: Any, **how: Any) -> Any:
        seen.let_go(next(going))
        return look(*args, **how)

    monkeypatch.setattr(verifying, "check_history", meanwhile)
    report = seen.stale.verify()
    assert {each.file for each in report.findings} == {"data/f13.parquet"}


def test_a_repair_takes_no_statistics_that_another_computed_meanwhile(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = seen.made[-1].snapshot_id
    statistics(seen.other, "lost.stats", id, None)
    plan, new = repairing._planned, iter(["new.stats"])

    def meanwhile(table: Table) -> repairing.Repair:
        planned = plan(table)
        for name in new:
            statistics(seen.other, name, id, bytes(10))
        return planned

    monkeypatch.setattr(repairing, "_planned", meanwhile)
    assert seen.stale.repair(dry_run=False).text() == "nothing to repair"
    there = {each.statistics_path for each in seen.other.refresh().metadata.statistics}
    assert there == {"metadata/old.stats", "metadata/new.stats"}


def test_statistics_of_a_snapshot_that_is_not_there_are_forgotten(seen: Seen) -> None:
    statistics(seen.other, "of-nothing.stats", 4711, bytes(10))
    assert kinds(seen.other.verify()) == {Kind.LOST_STATISTICS}
    assert "metadata/of-nothing.stats" in seen.other.repair(dry_run=False).text()
    assert seen.other.verify().is_clean


# --- branches and tags --------------------------------------------------------------------------

#: What a handle does with a snapshot of its past.
Verb = Callable[[Table, Snapshot], Committed]
VERBS: dict[str, Verb] = {
    "roll back": lambda table, to: table.rollback(to.snapshot_id),
    "roll back to a time": lambda table, to: table.rollback(time_of(to.timestamp_ms)),
    "set": lambda table, to: table.set_current(to.snapshot_id),
    "branch": lambda table, to: table.create_branch("b", at=to.snapshot_id),
    "tag": lambda table, to: table.create_tag("b", at=to.snapshot_id),
    "a branch by fast-forward": lambda table, to: table.fast_forward("b", to.snapshot_id),
}
#: The branch or tag that each of them is about.
MOVES = {verb: "b" if "branch" in verb or verb == "tag" else "main" for verb in VERBS}


@pytest.mark.parametrize("verb", VERBS)
def test_a_ref_goes_where_a_stale_handle_says_wherever_history_is_now(
    seen: Seen, verb: str
) -> None:
    seen.let_go(0)
    to = seen.made[2]
    VERBS[verb](seen.stale, to)
    newest = seen.other.refresh()
    assert newest.refs[MOVES[verb]].snapshot_id == to.snapshot_id
    assert seen.stale.state.metadata_location == newest.state.metadata_location


@pytest.mark.parametrize("verb", VERBS)
def test_a_ref_that_another_moved_is_a_conflict_wherever_history_is_now(
    seen: Seen, verb: str
) -> None:
    seen.let_go(0)
    if MOVES[verb] == "main":
        append(seen.other, "more")
    else:
        seen.other.create_branch("b")
    before = seen.stale.state
    with pytest.raises(CommitConflict, match=f"changed the ref {MOVES[verb]}"):
        VERBS[verb](seen.stale, seen.made[2])
    assert seen.stale.state is before


@pytest.mark.parametrize(
    "go",
    [
        lambda table: table.fast_forward("prod", "rel"),
        lambda table: table.rollback("rel"),
        lambda table: table.set_current("rel", branch="prod"),
        lambda table: table.cherry_pick("rel", branch="prod"),
        lambda table: table.create_tag("new", at="rel"),
    ],
    ids=["fast_forward", "rollback", "set_current", "cherry_pick", "create_tag"],
)
def test_a_ref_that_one_goes_by_means_what_the_handle_saw(
    seen: Seen, go: Callable[[Table], Committed]
) -> None:
    saw, moved = seen.made[3].snapshot_id, seen.made[9].snapshot_id
    seen.other.create_branch("prod", at=seen.made[1].snapshot_id)
    seen.other.create_branch("rel", at=saw)
    stale = seen.handle()
    before = dict(stale.refs)
    seen.other.fast_forward("rel", moved)
    seen.let_go(0)
    with suppress(CommitConflict):
        go(stale)
    now = seen.other.refresh().refs
    for name in {name for name in now if now[name] != before.get(name)} - {"rel"}:
        found = seen.other.snapshot(name)
        assert found is not None
        # A pick is a snapshot of its own.
        assert (found.summary or {}).get(SOURCE_SNAPSHOT, str(found.snapshot_id)) == str(saw)


@pytest.mark.parametrize("verb", VERBS)
def test_a_snapshot_that_expired_is_refused_in_words(seen: Seen, verb: str) -> None:
    seen.let_go(0, 1, 2)
    with pytest.raises((NotFound, InvalidInput)) as told:
        VERBS[verb](seen.stale, seen.made[1])
    assert "no snapshot" in str(told.value)
    assert ".json" not in str(told.value)


def test_a_pick_of_what_expired_is_refused_in_words(seen: Seen) -> None:
    append(seen.other, "more")
    stale, ids = seen.handle(), [seen.staged.snapshot_id]
    seen.other.remove_branch("side")
    seen.other.maintenance.expire_snapshots(snapshot_ids=ids)
    with pytest.raises(NotFound, match=f"there is no snapshot {ids[0]}"):
        stale.cherry_pick(ids[0])


def test_what_was_staged_is_published_wherever_history_is_now(seen: Seen) -> None:
    seen.other.append_files([data_file("w")], branch=None, summary={"wap.id": "w"})
    for at in range(_SNAPSHOTS):
        append(seen.other, f"later{at}")
    stale = seen.handle()
    seen.let_go(0)
    stale.publish("w")
    assert live_names(seen.other.refresh()) >= {"w.parquet"}


def live_names(table: Table) -> set[str]:
    paths = table.inspect.files()["file_path"].to_pylist()
    return {path.rpartition("/")[2] for path in paths}


# --- reading ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "read",
    [
        lambda table, _: [*table.history()],
        lambda table, id: table.snapshot(id),
        lambda table, id: table.scan(at=id).plan(),
        lambda table, id: table.changes(id).to_arrow(),
    ],
)
def test_history_that_was_written_anew_is_told_with_what_to_do(
    seen: Seen, read: Callable[[Table, int], object]
) -> None:
    seen.let_go(0)
    with pytest.raises(NotFound, match="refresh the table"):
        read(seen.stale, seen.made[2].snapshot_id)
    seen.stale.refresh()
    assert seen.stale.snapshot(seen.made[2].snapshot_id) == seen.made[2]


@pytest.mark.parametrize(
    "read",
    [
        lambda table: table.scan().plan(),
        lambda table: table.export(),
        lambda table: table.inspect.files(),
        lambda table: table.explain("n = 1"),
    ],
)
def test_a_tree_that_expired_is_told_with_what_to_do(
    seen: Seen, read: Callable[[Table], object]
) -> None:
    seen.other.append_files([data_file("after", 0, 0)])
    seen.other.maintenance.expire_snapshots(older_than="2100-01-01", retain_last=1)
    with pytest.raises(NotFound, match="refresh the table"):
        read(seen.stale)
