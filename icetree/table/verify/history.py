"""Is a table's history sound: its metadata, its pages, its logs, and how snapshots follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final, TypeAlias

from icetree.errors import CorruptTable, NotFound
from icetree.files.table_files import TableFiles
from icetree.spec.location import absolute
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import LogEntry, Page, Snapshot, SnapshotPage
from icetree.spec.rules.metadata import broken_rule
from icetree.table.verify.findings import Gathering, Kind, Severity

#: Writers' clocks may differ by so much, as in Iceberg.
_CLOCKS_MS: Final = 60_000

_Snapshots: TypeAlias = dict[int, Snapshot]


def check_history(
    metadata: TableMetadata, files: TableFiles, found: Gathering, *, metadata_file: str
) -> tuple[list[Snapshot], int]:
    """Check all but the trees; return every snapshot, newest first, and how many pages there are.

    A page that cannot be read is a finding, and what the others hold is still returned.
    """
    broken = broken_rule(metadata)
    if broken is not None:
        found.add(Kind.METADATA, metadata_file, broken)
    known: _Snapshots = {each.snapshot_id: each for each in metadata.snapshots}
    log = list(metadata.snapshot_log)
    for ref in reversed(metadata.snapshot_pages):
        page = read_page(ref, files, found)
        if page is not None:
            _add_page(ref, page, known, found)
            log = [*page.snapshot_log, *log]
    whole = not found.files(Kind.LOST_PAGE)
    by_age = sorted(known.values(), key=lambda each: (each.sequence_number, each.timestamp_ms))
    for kind, rule, id in (
        *_order(by_age, metadata),
        *_parents(by_age, known),
        *_lineage(by_age, metadata, whole=whole),
    ):
        found.add(kind, metadata_file, rule, snapshot_id=id)
    for severity, rule in _log(log, known, metadata, whole=whole):
        found.add(Kind.HISTORY, metadata_file, rule, severity=severity)
    _check_beside(metadata, files, known, found, whole=whole)
    return by_age[::-1], len(metadata.snapshot_pages)


def read_page(ref: SnapshotPage, files: TableFiles, found: Gathering) -> Page | None:
    """Return a page of history; None, with a finding, where it is lost."""
    try:
        content = files.fetch_page(ref)
        page = files.page(ref)
    except NotFound:
        found.add(Kind.LOST_PAGE, ref.location, "this page of history is missing")
        return None
    except CorruptTable as error:
        found.add(Kind.LOST_PAGE, ref.location, f"this page of history is damaged: {error.rule}")
        return None
    if len(content) != ref.size_in_bytes:
        rule = f"has {len(content)} bytes, the metadata says {ref.size_in_bytes}"
        found.add(Kind.WRONG_SIZE, ref.location, rule)
    return page


def _add_page(ref: SnapshotPage, page: Page, known: _Snapshots, found: Gathering) -> None:
    for what, told, real in _told_of(ref, page):
        if told != real:
            rule = f"{what} is {real}, the metadata says {told}"
            found.add(Kind.HISTORY, ref.location, rule)
    for each in page.snapshots:
        other = known.setdefault(each.snapshot_id, each)
        if other != each:
            rule = f"snapshot {each.snapshot_id} is told of differently elsewhere"
            found.add(Kind.HISTORY, ref.location, rule, snapshot_id=each.snapshot_id)


def _told_of(ref: SnapshotPage, page: Page) -> Iterator[tuple[str, int | None, int | None]]:
    """Yield what a page should hold: its name, as the index tells it, as the page has it."""
    numbers = [each.sequence_number for each in page.snapshots]
    times = [each.timestamp_ms for each in page.snapshots]
    logged = [each.timestamp_ms for each in page.snapshot_log]
    yield "the number of its snapshots", ref.count, len(page.snapshots)
    yield "the number of its log entries", ref.log_count, len(page.snapshot_log)
    if numbers:
        yield "its first sequence number", ref.first_sequence_number, min(numbers)
        yield "its last sequence number", ref.last_sequence_number, max(numbers)
        yield "its first timestamp", ref.first_timestamp_ms, min(times)
        yield "its last timestamp", ref.last_timestamp_ms, max(times)
    yield "its first log timestamp", ref.first_log_timestamp_ms, min(logged, default=None)
    yield "its last log timestamp", ref.last_log_timestamp_ms, max(logged, default=None)


_Broken: TypeAlias = Iterator[tuple[Kind, str, int | None]]


def _order(by_age: list[Snapshot], metadata: TableMetadata) -> _Broken:
    for older, newer in pairwise(by_age):
        # A v1 table has no sequence numbers: all are 0.
        if older.sequence_number == newer.sequence_number != 0:
            rule = f"snapshots {older.snapshot_id} and {newer.snapshot_id} have one sequence number"
            yield Kind.HISTORY, f"{rule}, {newer.sequence_number}", newer.snapshot_id
    latest = metadata.last_updated_ms + _CLOCKS_MS
    for each in by_age:
        if each.sequence_number > metadata.last_sequence_number:
            rule = f"sequence number {each.sequence_number} of snapshot {each.snapshot_id} is above"
            rule += f" the table's last, {metadata.last_sequence_number}"
            yield Kind.HISTORY, rule, each.snapshot_id
        if each.timestamp_ms > latest:
            rule = f"snapshot {each.snapshot_id} is from after the table's last update"
            yield Kind.HISTORY, rule, each.snapshot_id


def _parents(by_age: list[Snapshot], known: Mapping[int, Snapshot]) -> _Broken:
    """A parent that is gone has expired; one that is there must be older."""
    for each in by_age:
        id = each.parent_snapshot_id
        if id is None or id not in known:
            continue
        parent = known[id]
        if id == each.snapshot_id or parent.sequence_number > each.sequence_number:
            rule = f"snapshot {each.snapshot_id} has parent {id}, which is not older"
            yield Kind.HISTORY, rule, each.snapshot_id


def _lineage(by_age: list[Snapshot], metadata: TableMetadata, *, whole: bool) -> _Broken:
    numbered = [each for each in by_age if each.first_row_id is not None]
    for each, following in pairwise(numbered):
        end, start = _end(each), following.first_row_id or 0
        adjacent = whole and following.sequence_number == each.sequence_number + 1
        if start < end or (adjacent and start != end):
            rule = f"snapshot {following.snapshot_id} starts at row id {start}, but the one before"
            yield Kind.ROW_LINEAGE, f"{rule} ended at {end}", following.snapshot_id
    for each in numbered[-1:]:
        if _end(each) > (metadata.next_row_id or 0):
            rule = f"snapshot {each.snapshot_id} gave out row ids up to {_end(each)}, but"
            rule += f" next-row-id is {metadata.next_row_id}"
            yield Kind.ROW_LINEAGE, rule, each.snapshot_id


def _end(snapshot: Snapshot) -> int:
    return (snapshot.first_row_id or 0) + (snapshot.added_rows or 0)


def _log(
    log: list[LogEntry], known: Mapping[int, Snapshot], metadata: TableMetadata, *, whole: bool
) -> Iterator[tuple[Severity, str]]:
    if log and metadata.current_snapshot_id not in (None, log[-1].snapshot_id):
        rule = f"the snapshot log ends with {log[-1].snapshot_id}, but the current snapshot is"
        yield Severity.ERROR, f"{rule} {metadata.current_snapshot_id}"
    unknown = [each.snapshot_id for each in log if each.snapshot_id not in known]
    # Those of a lost page are told of with it.
    if unknown and whole:
        rule = f"the snapshot log names snapshot {unknown[0]}, which the table does not have"
        yield Severity.WARNING, rule
    for earlier, later in pairwise(log):
        if later.timestamp_ms < earlier.timestamp_ms - _CLOCKS_MS:
            rule = f"the snapshot log goes back in time at snapshot {later.snapshot_id}"
            yield Severity.WARNING, rule
            return


def _check_beside(
    metadata: TableMetadata,
    files: TableFiles,
    known: Mapping[int, Snapshot],
    found: Gathering,
    *,
    whole: bool,
) -> None:
    """Look for what reading rows never needs: statistics and former metadata files."""
    for each in metadata.all_statistics:
        path, size = each.statistics_path, each.file_size_in_bytes
        real = _size_of(path, files)
        if real != size:
            rule = "these statistics are missing" if real is None else f"has {real} bytes"
            rule += "" if real is None else f", the metadata says {size}"
            found.add(
                Kind.LOST_STATISTICS,
                path,
                rule,
                snapshot_id=each.snapshot_id,
                severity=Severity.WARNING,
            )
        elif each.snapshot_id not in known and whole:
            rule = f"they are about snapshot {each.snapshot_id}, which the table does not have"
            found.add(Kind.LOST_STATISTICS, path, rule, severity=Severity.WARNING)
    for former in metadata.metadata_log:
        if _size_of(former.metadata_file, files) is None:
            found.add(
                Kind.MISSING_FILE,
                former.metadata_file,
                "the metadata log names this former metadata file, which is missing",
                severity=Severity.WARNING,
            )


def _size_of(stored: str, files: TableFiles) -> int | None:
    # Metadata of before v4 may name a file by its plain path.
    place = absolute(stored, files.location)
    try:
        return files.store.size(place)
    except NotFound:
        return None
