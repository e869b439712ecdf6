"""Repairing what can be repaired safely: nothing that still reads right is ever touched.

What counts as safe: a data DV whose data file is gone applies to nothing, so it can go; a page of
history that is lost is forgotten, after former metadata files have given back what they can; so
are statistics that are gone. All of it happens in ordinary commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from icetree.errors import CommitConflict, CorruptTable, NotFound
from icetree.files.cache import Cache
from icetree.files.table_files import read_metadata
from icetree.spec.entry.entry import Content
from icetree.spec.location import absolute
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import Snapshot, SnapshotPage
from icetree.spec.metadata.update import (
    DropSnapshotPages,
    RecallSnapshot,
    RemovePartitionStatistics,
    RemoveStatistics,
    Update,
)
from icetree.spec.short import short
from icetree.table.verify.findings import Finding, Kind
from icetree.table.verify.verify import looked_at
from icetree.tree.changes import Changes, Intent, removal
from icetree.tree.check.check import dangling_data_dvs
from icetree.tree.live import live_files
from icetree.visible import visible

if TYPE_CHECKING:
    from icetree.table.table import Table

#: How often it is looked anew what to put right, when others change just that meanwhile.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing to put right: what is done, and what is lost by it."""

    does: str
    loses: str = "nothing"
    updates: tuple[Update, ...] = ()
    #: What must be as it was found for the updates to make sense.
    relies_on: tuple[str, ...] = ()
    #: For data DVs: the branch, and the data files that they are for.
    branch: str | None = None
    vectors_of: tuple[str, ...] = ()

    __repr__ = short

    def __str__(self) -> str:
        return visible(f"{self.does}; lost: {self.loses}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """What is, or would be, put right, and what nobody can put right from here."""

    actions: tuple[Action, ...] = ()
    #: Findings that no action is for.
    left: tuple[Finding, ...] = ()
    is_done: bool = False
    snapshots: tuple[int, ...] = ()

    def __repr__(self) -> str:
        word = "done" if self.is_done else "planned"
        return f"Repair({len(self.actions)} actions {word}, {len(self.left)} findings left)"

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """Return a line for each action and for each finding that stays."""
        word = "did" if self.is_done else "would"
        lines = [f"{word}: {action}" for action in self.actions]
        lines += [f"cannot be repaired: {finding}" for finding in self.left]
        return "\n".join(lines or ["nothing to repair"])


def repair(table: Table, *, dry_run: bool = True) -> Repair:
    """Verify the newest state of a table and put right what can be, or only say what that would be.

    Older snapshots cannot be changed: what is wrong in their trees stays until they expire.
    """
    table.refresh()
    done, made = list[Action](), list[int]()
    for left in reversed(range(_TRIES)):
        planned = _planned(table)
        if dry_run or not (planned.actions or done):
            return planned
        try:
            for action, snapshots in _carried_out(table, planned.actions):
                done.append(action)
                made += snapshots
            break
        except CommitConflict:
            # Another may have put it right, or have expired what it is in.
            if not left:
                raise
            table.refresh()
    return replace(planned, actions=tuple(done), is_done=True, snapshots=tuple(made))


def _planned(table: Table) -> Repair:
    found = looked_at(table).findings
    actions = [
        *_lost_pages(table, found),
        *_lost_statistics(table, found),
        *_dangling_data_dvs(table, found),
    ]
    return Repair(actions=tuple(actions), left=tuple(_left(found, actions)))


def _carried_out(
    table: Table, actions: tuple[Action, ...]
) -> Iterator[tuple[Action, tuple[int, ...]]]:
    """Carry out actions and yield each with the snapshots that it made: updates first, as one commit."""
    updating = [action for action in actions if action.updates]
    if updating:
        transaction = table.transaction()
        for action in updating:
            transaction.update_metadata(*action.updates)
            transaction.rely_on(*action.relies_on)
        transaction.commit()
    for action in updating:
        yield action, ()
    for action in actions:
        if action.branch is not None:
            transaction = table.transaction(branch=action.branch)
            gone = removal(action.vectors_of, content=Content.POSITION_DELETES)
            transaction.apply(Changes(intent=Intent.ROW_DELTA, removed=gone))
            made = transaction.commit().snapshot
            yield action, () if made is None else (made.snapshot_id,)


_ACTED_ON = (Kind.LOST_PAGE, Kind.LOST_STATISTICS, Kind.DANGLING_DATA_DV)


def _left(findings: Iterable[Finding], actions: list[Action]) -> Iterator[Finding]:
    on_branch = any(action.branch for action in actions)
    for finding in findings:
        if finding.kind not in _ACTED_ON or (
            finding.kind is Kind.DANGLING_DATA_DV and not on_branch
        ):
            yield finding


# --- history -----------------------------------------------------------------------------------


def _lost_pages(table: Table, findings: Iterable[Finding]) -> Iterator[Action]:
    gone = {each.file for each in findings if each.kind is Kind.LOST_PAGE}
    pages = [page for page in table.metadata.snapshot_pages if page.location in gone]
    if not pages:
        return
    known = _remembered(table, pages)
    for page in pages:
        back = _given_back(table, page, known)
        lost = page.count - len(back)
        parts = [f"{lost} of {page.count} snapshots"] if lost > 0 else []
        parts += [f"{page.log_count} entries of the snapshot log"] if page.log_count else []
        span = f"sequence numbers {page.first_sequence_number} to {page.last_sequence_number}"
        yield Action(
            does=(
                f"forget the lost page {page.location} ({span}) and bring back "
                f"{len(back)} of its snapshots from former metadata files"
            ),
            loses=" and ".join(parts) or "nothing",
            updates=(
                *(RecallSnapshot(snapshot=each, page_location=page.location) for each in back),
                DropSnapshotPages(locations=(page.location,)),
            ),
        )


def _given_back(table: Table, page: SnapshotPage, known: dict[int, Snapshot]) -> list[Snapshot]:
    """Return the snapshots of a lost page that are known elsewhere and have not expired."""
    found = [
        each
        for id, each in known.items()
        if id not in table.metadata.by_id
        and _was_on(each, page)
        and table.files.store.exists(absolute(each.root_file, table.location))
    ]
    # More than the page held: some have expired since, and nothing tells which.
    return found if len(found) <= page.count else []


def _was_on(snapshot: Snapshot, page: SnapshotPage) -> bool:
    return (
        page.first_sequence_number <= snapshot.sequence_number <= page.last_sequence_number
        and page.first_timestamp_ms <= snapshot.timestamp_ms <= page.last_timestamp_ms
    )


def _remembered(table: Table, pages: list[SnapshotPage]) -> dict[int, Snapshot]:
    """Return snapshots of lost pages that former metadata files still hold, or pages they name.

    Only those that another page does not hold: a snapshot that expired must not come back.
    """
    found: dict[int, Snapshot] = {}
    wanted = sum(page.count for page in pages)
    lost = {page.location for page in pages}
    elsewhere = _held_elsewhere(table, lost)
    for former in reversed(table.metadata.metadata_log):
        try:
            old = read_metadata(table.files.store, absolute(former.metadata_file, table.location))
        except (NotFound, CorruptTable):
            continue
        for each in _all_of(old, table, lost):
            on_one = any(_was_on(each, page) for page in pages)
            if on_one and each.snapshot_id not in elsewhere:
                found.setdefault(each.snapshot_id, each)
        if len(found) >= wanted:
            break
    by_age = sorted(found.values(), key=lambda each: each.sequence_number)
    return {each.snapshot_id: each for each in by_age}


def _all_of(former: TableMetadata, table: Table, lost: set[str]) -> Iterator[Snapshot]:
    """Yield the snapshots of former metadata, with those on pages that have merged since."""
    yield from former.snapshots
    known = lost | {page.location for page in table.metadata.snapshot_pages}
    for page in former.snapshot_pages:
        if page.location not in known:
            with suppress(NotFound, CorruptTable):
                yield from table.files.page(page).snapshots


def _held_elsewhere(table: Table, lost: set[str]) -> set[int]:
    ids: set[int] = set()
    for page in table.metadata.snapshot_pages:
        if page.location not in lost:
            ids |= {each.snapshot_id for each in table.files.page(page).snapshots}
    return ids


def _lost_statistics(table: Table, findings: Iterable[Finding]) -> Iterator[Action]:
    gone = {each.file for each in findings if each.kind is Kind.LOST_STATISTICS}
    metadata = table.metadata
    for each in metadata.statistics:
        if each.statistics_path in gone:
            yield Action(
                does=f"forget the lost statistics {each.statistics_path}",
                loses=f"the statistics of snapshot {each.snapshot_id}, until computed again",
                updates=(RemoveStatistics(snapshot_id=each.snapshot_id),),
                relies_on=(f"statistics of {each.snapshot_id}",),
            )
    for part in metadata.partition_statistics:
        if part.statistics_path in gone:
            yield Action(
                does=f"forget the lost partition statistics {part.statistics_path}",
                loses=f"those of snapshot {part.snapshot_id}, until computed again",
                updates=(RemovePartitionStatistics(snapshot_id=part.snapshot_id),),
                relies_on=(f"partition statistics of {part.snapshot_id}",),
            )


# --- data DVs ----------------------------------------------------------------------------------


def _dangling_data_dvs(table: Table, findings: Iterable[Finding]) -> Iterator[Action]:
    if not any(each.kind is Kind.DANGLING_DATA_DV for each in findings):
        return
    files = replace(table.files, cache=Cache())
    shape = table.metadata.shape()
    for name, ref in table.metadata.refs.items():
        if ref.type != "branch":
            continue
        root = files.root(table.metadata.snapshot(ref.snapshot_id), shape)
        try:
            live = live_files(root, files.reader(shape))
        except (CorruptTable, NotFound):
            continue  # its findings stay
        targets = tuple(dangling_data_dvs(live).to_pylist())
        if targets:
            count = len(targets)
            yield Action(
                does=(
                    f"remove {count} data DV{'s' if count > 1 else ''} of files that are gone, "
                    f"such as {targets[0]}, from branch {name}"
                ),
                branch=name,
                vectors_of=targets,
            )
