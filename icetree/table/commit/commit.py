"""The commit loop: validate, grow, store, swap; again on the new head when another came first."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

import pyarrow as pa

from icetree.catalog.base import Catalog, Outcome, Stale, Swapped, Unknown
from icetree.codec import manifest
from icetree.codec import metadata as metadata_codec
from icetree.errors import (
    CommitConflict,
    CommitExhausted,
    CommitUnknown,
    IcetreeError,
    NotFound,
    Unavailable,
)
from icetree.files.table_files import TableFiles, read_metadata
from icetree.spec.apply import apply
from icetree.spec.location import absolute, stored_form
from icetree.spec.locations import stored_form_array
from icetree.spec.metadata import (
    DEFAULT_INLINE_SNAPSHOTS,
    INLINE_SNAPSHOTS,
    TableMetadata,
    with_previous,
    with_snapshot,
)
from icetree.spec.pages import history, page_out
from icetree.spec.properties import whole_number
from icetree.spec.snapshot import Snapshot
from icetree.spec.table_properties import METADATA_COMPRESSION
from icetree.surroundings import new_uuid, now_ms
from icetree.table.commit.backoff import between_questions, between_tries
from icetree.table.commit.counts import RowCounts
from icetree.table.commit.merge import merge
from icetree.table.commit.report import Report
from icetree.table.commit.validate import KEY, already_applied, validate
from icetree.table.commit.widen import widen_changes, widen_prepared
from icetree.table.state import State, Work
from icetree.tree.draft import Head, Prepared, Stamp
from icetree.tree.grow import grow, prepare
from icetree.tree.leaf import NewFile
from icetree.tree.policy import policy_of
from icetree.tree.recount import with_counts

log = logging.getLogger(__name__)

_VERSION = re.compile(r"(\d+)-[^/]*$")


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
        return f"table {self.state.name}: {what}{' (made before)' if self.repeated else ''}"


def _is_change(name: str) -> bool:
    """Tell what a snapshot changed from what the table has in all."""
    return name.startswith(("added-", "deleted-", "removed-")) and not name.endswith("-size")


def _short(snapshot: Snapshot) -> str:
    return f"snapshot={snapshot.snapshot_id}, operation={snapshot.operation!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """A head-to-be and the files it needs."""

    state: State
    snapshot: Snapshot | None
    files: tuple[NewFile, ...]


@dataclass(slots=True, kw_only=True)
class _Trail:
    """What a commit leaves behind if it comes to nothing."""

    #: Files that only this commit can have made part of the table.
    written: list[str]
    #: A swap was begun, and whether it happened is not known for certain.
    in_doubt: bool = False


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
        if isinstance(error, IcetreeError) or not trail.in_doubt:
            _discard(files, trail.written)
        raise
    if done.repeated:
        _discard(files, trail.written)
    return done


def _commit(
    work: Work, catalog: Catalog, files: TableFiles, head: State, trail: _Trail
) -> Committed:
    if not (work.changes or work.updates):
        return _checked(work, catalog, files, head)
    report = Report()
    prepared: Prepared | None = None
    schema_id: int | None = None
    name = work.base.name
    tried: list[str] = []
    for pause in between_tries(_properties_after(work, head.metadata)):
        report.attempts += 1
        with report.phase("validate"):
            done = already_applied(work, head.metadata, files) if work.key else None
            if done is not None:
                return Committed(state=head, snapshot=done, report=report, repeated=True)
            validate(work, head, files)
        leaves: list[NewFile] = []
        if work.changes and prepared is None:
            with report.phase("grow"):
                prepared = _prepare(work, head.metadata)
            leaves = [leaf.file for leaf in prepared.leaves]
        elif prepared is not None and head.metadata.current_schema_id != schema_id:
            prepared = widen_prepared(prepared, head.metadata.shape())
        schema_id = head.metadata.current_schema_id
        attempt = _attempt(work, head, prepared, files, report)
        new = [*leaves, *attempt.files]
        tried += [file.location for file in new]
        trail.written += [file.location for file in new]
        report.files += len(new)
        report.size_bytes += sum(len(file.content) for file in new)
        with report.phase("store"):
            files.write(new)
        trail.in_doubt = True
        with report.phase("swap"):
            outcome = _swap(work, catalog, head, attempt, files)
        match outcome:
            case Stale(metadata_location=newer):
                trail.in_doubt = False
                with report.phase("wait"):
                    pause()
                    # Others went on meanwhile: on the head that won, this try would lose again.
                    with suppress(Unavailable), _still_there():
                        newer = catalog.load(name)
                head = _state_at(newer, head, files)
            case Swapped():
                kept = {file.location for file in attempt.files}
                kept |= {leaf.file.location for leaf in prepared.leaves} if prepared else set()
                _discard(files, [location for location in tried if location not in kept])
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


def _checked(work: Work, catalog: Catalog, files: TableFiles, head: State) -> Committed:
    """Return the newest head, on which all that the work relies on holds; nothing is written."""
    with _still_there():
        newest = catalog.load(work.base.name)
    if newest != head.metadata_location:
        head = _state_at(newest, head, files)
    validate(work, head, files)
    return Committed(state=head, snapshot=None, report=Report())


def _properties_after(work: Work, metadata: TableMetadata) -> Mapping[str, str]:
    """Return the properties the commit leaves; ones that no later commit could work with are refused.

    Not those before it: else a bad value could never be mended.
    """
    if work.updates:
        metadata = apply(metadata, work.updates, at_ms=metadata.last_updated_ms)
        policy_of(metadata.properties)
    return metadata.properties


def _prepare(work: Work, metadata: TableMetadata) -> Prepared:
    if work.updates:
        metadata = apply(metadata, work.updates, at_ms=metadata.last_updated_ms)
    policy, shape, changes = policy_of(metadata.properties), metadata.shape(), work.changes
    if metadata.current_schema_id != work.base.metadata.current_schema_id:
        changes = tuple(widen_changes(each, shape) for each in changes)
    fresh = stored_form_array(pa.array(work.written, pa.string()), metadata.location)
    whole = replace(merge(changes), fresh=fresh)
    return prepare(whole, shape, policy, commit_id=work.commit_id)


def _attempt(
    work: Work, head: State, prepared: Prepared | None, files: TableFiles, report: Report
) -> _Attempt:
    """Build the next head: pure but for reading what the tree needs."""
    at_ms = max(now_ms(), head.metadata.last_updated_ms)
    metadata = head.metadata
    if work.updates:
        metadata = apply(metadata, work.updates, at_ms=at_ms)
    new: list[NewFile] = []
    snapshot = None
    if prepared is not None:
        snapshot, new = _snapshot(work, head, metadata, prepared, files, report, at_ms)
        metadata = with_snapshot(metadata, snapshot, ref=work.branch, at_ms=at_ms)
    with report.phase("encode"):
        paged = page_out(
            metadata,
            keep=whole_number(
                metadata.properties, INLINE_SNAPSHOTS, default=DEFAULT_INLINE_SNAPSHOTS, least=1
            ),
            read_page=files.page,
            encode_page=metadata_codec.encode_page,
            new_location=lambda: f"metadata/{new_uuid()}.page.json.gz",
        )
        new += [NewFile(location=at, content=page) for at, page in paged.files.items()]
        previous = stored_form(head.metadata_location, metadata.location)
        metadata = with_previous(paged.metadata, previous, head.metadata)
        compress = metadata.properties.get(METADATA_COMPRESSION, "gzip").lower() == "gzip"
        location = next_metadata_location(head.metadata_location, compress=compress)
        new.append(
            NewFile(location=location, content=metadata_codec.encode(metadata, compress=compress))
        )
    state = State(
        name=head.name,
        metadata=metadata,
        metadata_location=absolute(location, metadata.location),
    )
    return _Attempt(state=state, snapshot=snapshot, files=tuple(new))


def _snapshot(
    work: Work,
    head: State,
    metadata: TableMetadata,
    prepared: Prepared,
    files: TableFiles,
    report: Report,
    at_ms: int,
) -> tuple[Snapshot, list[NewFile]]:
    parent = head.head(work.branch) if work.branch else head.metadata.current_snapshot()
    shape = metadata.shape()
    policy = policy_of(metadata.properties)
    stamp = Stamp(
        snapshot_id=work.snapshot_id,
        sequence_number=metadata.last_sequence_number + 1,
        commit_id=work.commit_id,
        attempt=report.attempts - 1,
    )
    with report.phase("grow"):
        root_before = files.root(parent, shape, keep=True)
        if parent is not None and parent.root_manifest is None:
            root_before = with_counts(root_before, files.reader(shape))
        start = Head(
            root=root_before,
            next_row_id=metadata.next_row_id or 0,
            summary=None if parent is None else parent.summary,
            root_file="root" if parent is None else parent.root_file,
        )
        draft = grow(
            start,
            prepared,
            stamp,
            shape,
            policy,
            files.reader(shape),
            encode=report.timed("encode", manifest.encode),
        )
    root = NewFile(location=stamp.name("root", 0) + ".parquet", content=draft.root_bytes)
    files.remember_root(root.location, shape, draft.root)
    snapshot = Snapshot(
        snapshot_id=work.snapshot_id,
        parent_snapshot_id=None if parent is None else parent.snapshot_id,
        sequence_number=stamp.sequence_number,
        timestamp_ms=at_ms,
        root_manifest=root.location,
        summary=_summary(draft.summary, work),
        schema_id=metadata.current_schema_id,
        first_row_id=draft.first_row_id,
        added_rows=draft.added_rows,
    )
    return snapshot, [root, *draft.files]


def _summary(counted: Mapping[str, str], work: Work) -> dict[str, str]:
    keyed = {} if work.key is None else {KEY: work.key}
    return {**counted, **work.summary, **keyed}


def next_metadata_location(previous: str | None, *, compress: bool) -> str:
    """Return the name of the metadata file that follows another."""
    found = _VERSION.search(previous or "")
    version = int(found[1]) + 1 if found else 0
    return f"metadata/{version:05d}-{new_uuid()}{'.gz' if compress else ''}.metadata.json"


def _state_at(location: str, before: State, files: TableFiles) -> State:
    metadata = read_metadata(files.store, location)
    with _still_there():
        return before.at(metadata, location)


@contextmanager
def _still_there() -> Iterator[None]:
    """Tell a commit of a table whose name is gone, or another table's now, as the conflict it is."""
    try:
        yield
    except NotFound as error:
        raise CommitConflict(str(error)) from None


#: How often a swap is asked for that did not reach the catalog: one that is closed is told soon.
_ASKS = 5


def _swap(
    work: Work, catalog: Catalog, head: State, attempt: _Attempt, files: TableFiles
) -> Outcome:
    """Swap, and find out what happened when the answer is lost.

    Asking again for the same swap is safe: it can only happen once, and whether it did is told
    by the head being ours or descending from ours. Raises only when it certainly did not happen.
    """
    ours = attempt.state.metadata_location
    doubt: str | None = None
    unsent: Unavailable | None = None
    for ask, pause in enumerate(between_questions(attempt.state.metadata.properties), 1):
        try:
            with _still_there():
                outcome = catalog.swap(work.base.name, expected=head.metadata_location, to=ours)
            # Without a lost answer, an answer is the truth.
            if isinstance(outcome, Stale) and (doubt or outcome.metadata_location == ours):
                return _whose(outcome, head, attempt, files)
            if not isinstance(outcome, Unknown):
                return outcome
            doubt = outcome.reason
        except CommitUnknown as lost:
            doubt = str(lost)
        except Unavailable as error:
            # This ask changed nothing; one before it whose answer was lost may have.
            unsent = error
            if doubt is None and ask >= _ASKS:
                break
        except IcetreeError as error:
            if doubt is None:
                raise
            return Unknown(reason=f"{doubt}; then {error}")
        pause()
    if doubt is None and unsent is not None:
        raise unsent
    return Unknown(reason=doubt or "never asked")


def _whose(stale: Stale, before: State, attempt: _Attempt, files: TableFiles) -> Outcome:
    """Tell whether the head that a swap met was made on top of the attempt or instead of it.

    Both went from the same head `before`. Unknown when too much happened since: asking again
    would not help.
    """
    location = stale.metadata_location
    if location == attempt.state.metadata_location:
        return Swapped()
    metadata = read_metadata(files.store, location)
    if metadata.table_uuid != attempt.state.metadata.table_uuid:
        return Unknown(reason=f"{location} is of another table, which has taken the name")
    former = {stored_form(each.metadata_file, metadata.location) for each in metadata.metadata_log}
    if stored_form(attempt.state.metadata_location, metadata.location) in former:
        return Swapped()
    if stored_form(before.metadata_location, metadata.location) in former:
        return stale
    mine = attempt.snapshot
    if mine is not None:
        if metadata.last_sequence_number < mine.sequence_number:
            return stale
        for each in history(metadata, files.page):
            # A sequence number is given once: who has ours tells who won.
            if each.sequence_number == mine.sequence_number:
                return Swapped() if each.snapshot_id == mine.snapshot_id else stale
    return Unknown(reason=f"{location} was made too many commits later to tell")


def _discard(files: TableFiles, written: list[str]) -> None:
    """Remove files that no head can name; leaving one behind does no harm but space."""
    if written:
        with suppress(Exception):
            files.delete(written)


def _log(name: object, report: Report, attempt: _Attempt) -> None:
    phases = " ".join(f"{phase}={spent:.1f}ms" for phase, spent in report.phases_ms.items())
    number = attempt.snapshot.snapshot_id if attempt.snapshot else "none"
    log.info(
        "committed %s snapshot=%s retries=%d files=%d bytes=%d %s",
        name, number, report.retries, report.files, report.size_bytes, phases,
    )  # fmt: skip
