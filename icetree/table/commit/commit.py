"""The commit loop: validate, grow, store, swap; again on the new head when another came first."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pyarrow as pa

from icetree.catalog.base import Catalog, Stale, Swapped, Unknown
from icetree.catalog.memory import AsideCatalog
from icetree.errors import (
    CommitExhausted,
    CommitUnknown,
    CorruptTable,
    IcetreeError,
    NotFound,
    Unavailable,
)
from icetree.files.table_files import TableFiles, read_metadata
from icetree.spec.apply.apply import apply
from icetree.spec.edit.refs import recalled
from icetree.spec.locations import stored_form_array
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import Snapshot
from icetree.surroundings import new_uuid
from icetree.table.commit.attempt import Attempt, next_attempt
from icetree.table.commit.backoff import between_tries
from icetree.table.commit.carry import Carrier
from icetree.table.commit.counts import FileCounts, RowCounts, files_told
from icetree.table.commit.landed import after_landing
from icetree.table.commit.merge import merge
from icetree.table.commit.report import Report
from icetree.table.commit.swap import still_there, swap
from icetree.table.commit.turn import Turn
from icetree.table.commit.validate import already_applied, validate
from icetree.table.commit.widen import widen_changes, widen_prepared
from icetree.table.state import State, Work
from icetree.tree.changes import Changes
from icetree.tree.draft import Prepared
from icetree.tree.grow.grow import prepare
from icetree.tree.leaf import NewFile
from icetree.tree.policy import policy_of
from icetree.visible import log_of, visible

log = log_of(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The table after the commit."""

    state: State
    #: The snapshot made; None when only metadata changed.
    snapshot: Snapshot | None
    report: Report
    #: The commit's key was known already: nothing was done.
    repeated: bool = False
    #: How many rows were inserted, updated and deleted, as far as that is known.
    rows: RowCounts = field(default_factory=RowCounts)

    @property
    def files(self) -> FileCounts:
        """How many data files the snapshot added and removed."""
        return files_told({} if self.snapshot is None else self.snapshot.summary or {})

    def __repr__(self) -> str:
        made = "no snapshot" if self.snapshot is None else _short(self.snapshot)
        done = ", made before" if self.repeated else f", attempts={self.report.attempts}"
        done = f", {self.rows}{done}" if str(self.rows) else done
        return f"Committed({str(self.state.name)!r}, {made}{done})"

    def __str__(self) -> str:
        if self.snapshot is None:
            what = "no snapshot"
        else:
            told = (self.snapshot.summary or {}).items()
            counts = ", ".join(f"{name} {count}" for name, count in told if _is_change(name))
            what = f"{self.snapshot.operation}, snapshot {self.snapshot.snapshot_id}"
            what += f": {counts}" if counts else ""
        before = " (made before)" if self.repeated else ""
        return visible(f"table {self.state.name}: {what}{before}")


def _is_change(name: str) -> bool:
    """Tell what a snapshot changed from what the table has in all."""
    return name.startswith(("added-", "deleted-", "removed-")) and not name.endswith("-size")


def _short(snapshot: Snapshot) -> str:
    return f"snapshot={snapshot.snapshot_id}, operation={snapshot.operation!r}"


@dataclass(slots=True, kw_only=True)
class _Trail:
    """What a commit leaves behind if it comes to nothing."""

    #: Files that only this commit can have made part of the table.
    written: list[str]
    #: A swap was begun, and whether it happened is not known for certain.
    in_doubt: bool = False
    #: The head that the commit landed on; nothing that it wrote is discarded any more.
    landed_on: State | None = None


def commit(work: Work, catalog: Catalog, files: TableFiles, head: State | None = None) -> Committed:
    """Carry out the work on the table's head, once, and return the new head.

    `head` is the newest state known, to save asking for it. Raises `CommitConflict` when the
    work may not land, `CommitExhausted` when every try lost its race, `CommitUnknown` when it
    could not be learnt whether it landed. Only in the last case do new files stay behind, and
    after an error that nobody foresaw in the midst of a swap.
    """
    trail = _Trail(written=[*work.written])
    try:
        done = _commit(work, catalog, files, head or work.base, trail)
    except CommitUnknown:
        raise
    except BaseException as error:
        # One of ours is raised only when nothing was swapped in, and every try before lost.
        known = isinstance(error, IcetreeError) or not trail.in_doubt
        if known and trail.landed_on is None:
            _discard(files, trail.written)
        raise
    if done.repeated:
        _discard(files, trail.written)
    elif not isinstance(catalog, AsideCatalog):
        after_landing(trail.landed_on, done.state, done.snapshot, files)
    return done


def draft(work: Work, files: TableFiles) -> tuple[State, tuple[NewFile, ...]]:
    """Return the first head of a table that has no name yet, with its files; nothing is stored.

    The work's base has no `metadata_location`. The metadata file is the last, and is to be written
    after the others: then whoever finds it finds a whole table.
    """
    report = Report(attempts=1)
    prepared = None
    if work.changes:
        prepared = _prepare(work, work.changes, work.base.metadata, report.attempts)
    attempt = next_attempt(work, work.base, prepared, files, report)
    leaves = prepared.leaves if prepared else ()
    return attempt.state, (*(leaf.file for leaf in leaves), *attempt.files)


def _commit(
    work: Work, catalog: Catalog, files: TableFiles, head: State, trail: _Trail
) -> Committed:
    if not (work.changes or work.updates):
        return _checked(work, catalog, files, head)
    with Turn(catalog, work.base.name) as turn:
        if turn.wait_with_others():
            head = _newest(head, catalog, files)
        return _on_what_is_there(work, catalog, files, head, trail, turn)


def _on_what_is_there(
    work: Work, catalog: Catalog, files: TableFiles, head: State, trail: _Trail, turn: Turn
) -> Committed:
    """Try on a head, and on the newest if that one has expired since its writer looked."""
    try:
        return _try_until_swapped(work, catalog, files, head, trail, turn)
    except (CorruptTable, NotFound):
        newest = _newest(head, catalog, files)
        if trail.in_doubt or newest is head:
            raise
    _discard(files, trail.written[len(work.written) :])
    del trail.written[len(work.written) :]
    again = replace(work, commit_id=new_uuid())
    return _on_what_is_there(again, catalog, files, newest, trail, turn)


def _try_until_swapped(
    work: Work, catalog: Catalog, files: TableFiles, head: State, trail: _Trail, turn: Turn
) -> Committed:
    report = Report()
    prepared: Prepared | None = None
    schema_id: int | None = None
    name = work.base.name
    tried: list[str] = []
    # As its writer saw the table: on a newer head it may be a conflict, which is found below.
    pauses = between_tries(_properties_after(work, work.base.metadata))
    work = _made_for(work, head, files)
    carrier, landing = Carrier(work, files, trail.written), work.changes
    for pause in pauses:
        report.attempts += 1
        with report.phase("validate"):
            done = already_applied(work, head.metadata, files) if work.key else None
            if done is not None:
                return Committed(state=head, snapshot=done, report=report, repeated=True)
            before, landing = landing, validate(work, head, files, carrier)
        leaves: list[NewFile] = []
        if work.changes and (prepared is None or landing is not before):
            with report.phase("grow"):
                prepared = _prepare(work, landing, head.metadata, report.attempts)
            leaves = [leaf.file for leaf in prepared.leaves]
        elif prepared is not None and head.metadata.current_schema_id != schema_id:
            prepared = widen_prepared(prepared, head.metadata.shape())
        schema_id = head.metadata.current_schema_id
        attempt = next_attempt(
            work, head, prepared, files, report, stores_head=_stores_heads(catalog)
        )
        new = [*leaves, *attempt.files]
        tried += [file.location for file in new]
        trail.written += [file.location for file in new]
        report.files += len(new)
        report.size_bytes += sum(len(file.content) for file in new)
        with report.phase("store"):
            files.write(new)
        trail.in_doubt = True
        with report.phase("swap"):
            outcome = swap(work, catalog, head, attempt, files)
        match outcome:
            case Stale(metadata_location=newer):
                trail.in_doubt = False
                with report.phase("wait"):
                    turn.wait_after_losing(pause)
                    # Others went on meanwhile: on the head that won, this try would lose again.
                    with suppress(Unavailable), still_there():
                        newer = catalog.load(name)
                head = _state_at(newer, head, files)
                work = _made_for(work, head, files)
            case Swapped():
                trail.landed_on = head
                kept = {file.location for file in attempt.files}
                kept |= {leaf.file.location for leaf in prepared.leaves} if prepared else set()
                lost = [location for location in tried if location not in kept]
                _discard(files, [*lost, *carrier.unused()])
                _log(name, report, attempt)
                return Committed(state=attempt.state, snapshot=attempt.snapshot, report=report)
            case Unknown(reason=reason):
                raise CommitUnknown(
                    f"table {name}: snapshot {work.snapshot_id} may or may not have been committed "
                    f"({reason}); look for it in the table's history before trying again"
                )
    raise CommitExhausted(
        f"table {name}: {report.attempts} tries lost to other commits; try again later, "
        "or raise commit.retry.num-retries"
    )


def _stores_heads(catalog: Catalog) -> bool:
    """Tell whether a commit stores its head, or whoever makes it seen with others does."""
    return not isinstance(catalog, AsideCatalog) or catalog.stores_heads


def _newest(head: State, catalog: Catalog, files: TableFiles) -> State:
    """Return the head after a wait; where it cannot be learnt, the one known."""
    with suppress(Unavailable), still_there():
        newest = catalog.load(head.name)
        if newest != head.metadata_location:
            return _state_at(newest, head, files)
    return head


def _checked(work: Work, catalog: Catalog, files: TableFiles, head: State) -> Committed:
    """Return the newest head, on which all that the work relies on holds; nothing is written."""
    with still_there():
        newest = catalog.load(work.base.name)
    if newest != head.metadata_location:
        head = _state_at(newest, head, files)
    validate(work, head, files)
    return Committed(state=head, snapshot=None, report=Report())


def _made_for(work: Work, head: State, files: TableFiles) -> Work:
    """Return the work as a head asks for it: history may have moved to pages meanwhile."""
    return replace(work, updates=recalled(head.metadata, work.updates, files.page))


def _properties_after(work: Work, metadata: TableMetadata) -> Mapping[str, str]:
    """Return the properties the commit leaves; ones that no later commit could work with are refused.

    Not those before it: else a bad value could never be mended.
    """
    if work.updates:
        metadata = apply(metadata, work.updates, at_ms=metadata.last_updated_ms)
        policy_of(metadata.properties)
    return metadata.properties


def _prepare(
    work: Work, changes: tuple[Changes, ...], metadata: TableMetadata, attempt: int
) -> Prepared:
    if work.updates:
        metadata = apply(metadata, work.updates, at_ms=metadata.last_updated_ms)
    policy, shape = policy_of(metadata.properties), metadata.shape()
    if metadata.current_schema_id != work.base.metadata.current_schema_id:
        changes = tuple(widen_changes(each, shape) for each in changes)
    fresh = stored_form_array(pa.array(work.written, pa.string()), metadata.location)
    whole = replace(merge(changes), fresh=fresh)
    # Leaves of changes that did not land so have names, and must not be written over.
    commit_id = work.commit_id if attempt == 1 else f"{work.commit_id}-{attempt}"
    return prepare(whole, shape, policy, commit_id=commit_id)


def _state_at(location: str, before: State, files: TableFiles) -> State:
    metadata = read_metadata(files.store, location)
    files.ring.learn(metadata.encryption_keys)
    with still_there():
        return before.at(metadata, location)


def _discard(files: TableFiles, written: list[str]) -> None:
    """Remove files that no head can name; leaving one behind does no harm but space."""
    if written:
        with suppress(Exception):
            files.delete(written)


def _log(name: object, report: Report, attempt: Attempt) -> None:
    phases = " ".join(f"{phase}={spent:.1f}ms" for phase, spent in report.phases_ms.items())
    number = attempt.snapshot.snapshot_id if attempt.snapshot else "none"
    log.info(
        "committed %s snapshot=%s retries=%d files=%d bytes=%d %s",
        name, number, report.retries, report.files, report.size_bytes, phases,
    )  # fmt: skip
