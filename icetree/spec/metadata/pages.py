"""History in pages: old snapshots leave metadata.json, so that commits do not slow with age.

Inline stay the newest snapshots and those that refs point to. When enough others have gathered,
they move to a page, an immutable file, together with the oldest part of the snapshot log.

Pages start small, so that few snapshots wait in metadata.json for the next, and merge as they age: one
of fewer than 50 snapshots is of level 0, of fewer than 250 of level 1, and so on by fives; from 6,250
on one is left alone (with pages of 10, which is the default). As soon as five pages are of one level,
they become one. So a snapshot is written to pages five times in its life; n snapshots have at most
16 + n / 6,250 pages; and no commit, however old the table, merges more than about 6,250 snapshots,
which happens once in 6,250 commits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from heapq import merge
from typing import Final, TypeAlias

from msgspec.structs import replace

from icetree.errors import InvalidInput, NotFound
from icetree.spec.metadata.encryption import without_keys
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import LogEntry, Page, Snapshot, SnapshotPage

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)

PAGE_SIZE: Final = 10
FAN_OUT: Final = 5
LEVELS: Final = 4

ReadPage: TypeAlias = Callable[[SnapshotPage], Page]


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedOut:
    """Metadata with history moved to pages, and what must be written for it to hold."""

    metadata: TableMetadata
    #: New page files, by stored location.
    files: dict[str, bytes] = field(default_factory=dict)
    #: Stored locations of pages that this metadata no longer names; former metadata may.
    replaced: tuple[str, ...] = ()


@dataclass(slots=True)
class _Shelf:
    """The pages while they change: what is new is encoded only once it has settled."""

    read: ReadPage
    encode: Callable[[Page], bytes]
    name: Callable[[], str]
    pages: list[tuple[SnapshotPage, Page | None]]
    gone: list[str] = field(default_factory=list)

    def content(self, index: int) -> Page:
        ref, page = self.pages[index]
        return self.read(ref) if page is None else page

    def add(self, page: Page) -> None:
        self.pages.append((_reference(page, location="", size_in_bytes=0), page))

    def drop(self, index: int) -> None:
        ref, page = self.pages.pop(index)
        if page is None:
            self.gone.append(ref.location)

    def settle(self, metadata: TableMetadata) -> PagedOut:
        files, refs = {}, []
        for ref, page in self.pages:
            if page is not None:
                data = self.encode(page)
                ref = replace(ref, location=self.name(), size_in_bytes=len(data))
                files[ref.location] = data
            refs.append(ref)
        refs.sort(key=lambda ref: (ref.last_sequence_number, ref.first_sequence_number))
        return PagedOut(
            metadata=replace(metadata, snapshot_pages=tuple(refs)),
            files=files,
            replaced=tuple(self.gone),
        )


def page_out(
    metadata: TableMetadata,
    *,
    keep: int,
    read_page: ReadPage,
    encode_page: Callable[[Page], bytes],
    new_location: Callable[[], str],
    page_size: int = PAGE_SIZE,
) -> PagedOut:
    """Move history beyond the newest `keep` snapshots to pages, a page at a time.

    Until `page_size` of them have gathered, nothing changes; so metadata.json holds fewer than
    `keep + page_size` snapshots besides those of refs. Old pages are read only to merge them.
    """
    size = max(len(metadata.snapshots), len(metadata.snapshot_log))
    if metadata.format_version < 4 or size < keep + page_size:
        return PagedOut(metadata=metadata)
    held = {ref.snapshot_id for ref in metadata.refs.values()}
    by_age = sorted(metadata.snapshots, key=_age)
    old = [each for each in by_age[: max(len(by_age) - keep, 0)] if each.snapshot_id not in held]
    log_excess = _apart(metadata.snapshot_log, max(len(metadata.snapshot_log) - keep, 0))
    if max(len(old), log_excess) < page_size:
        return PagedOut(metadata=metadata)
    moved = {each.snapshot_id for each in old}
    rest = replace(
        metadata,
        snapshots=tuple(each for each in metadata.snapshots if each.snapshot_id not in moved),
        snapshot_log=metadata.snapshot_log[log_excess:],
    )
    shelf = _shelf(metadata, read_page, encode_page, new_location)
    for page in _cut(old, metadata.snapshot_log[:log_excess], page_size * FAN_OUT**LEVELS):
        shelf.add(page)
    _merge(shelf, page_size)
    return shelf.settle(rest)


def _merge(shelf: _Shelf, page_size: int) -> None:
    for level in range(LEVELS):
        low = page_size * FAN_OUT**level if level else 0
        high = page_size * FAN_OUT ** (level + 1)
        alike = [
            index
            for index, (ref, _) in enumerate(shelf.pages)
            if low <= max(ref.count, ref.log_count) < high
        ]
        if len(alike) >= FAN_OUT:
            merged = _union(shelf.content(index) for index in alike)
            for index in reversed(alike):
                shelf.drop(index)
            shelf.add(merged)


def _cut(snapshots: list[Snapshot], log: tuple[LogEntry, ...], size: int) -> Iterator[Page]:
    logged = 0
    for start in range(0, max(len(snapshots), len(log)), size):
        upto = _apart(log, start + size)
        yield Page(snapshots=tuple(snapshots[start : start + size]), snapshot_log=log[logged:upto])
        logged = upto


def _apart(log: tuple[LogEntry, ...], at: int) -> int:
    """Return where to part a log, at most there: what was logged within a millisecond stays together.

    Pages that merge are put in the order of time, which would not tell what was last.
    """
    if at >= len(log):
        return len(log)
    while at > 0 and log[at - 1].timestamp_ms == log[at].timestamp_ms:
        at -= 1
    return at


def _union(pages: Iterable[Page]) -> Page:
    snapshots: dict[int, Snapshot] = {}
    logs: list[tuple[LogEntry, ...]] = []
    extra: dict[str, object] = {}
    for page in sorted(pages, key=_log_start):
        snapshots |= {each.snapshot_id: each for each in page.snapshots}
        logs.append(page.snapshot_log)
        extra |= page.extra
    # Pages may overlap in time; the order within each stays, even where a clock stepped back.
    log = tuple(merge(*logs, key=lambda each: each.timestamp_ms))
    return Page(
        snapshots=tuple(sorted(snapshots.values(), key=_age)), snapshot_log=log, extra=extra
    )


def _log_start(page: Page) -> int:
    return page.snapshot_log[0].timestamp_ms if page.snapshot_log else 0


def _reference(page: Page, *, location: str, size_in_bytes: int) -> SnapshotPage:
    numbers = [each.sequence_number for each in page.snapshots] or [0]
    times = [each.timestamp_ms for each in page.snapshots] or [0]
    logged = [each.timestamp_ms for each in page.snapshot_log]
    return SnapshotPage(
        location=location,
        size_in_bytes=size_in_bytes,
        count=len(page.snapshots),
        first_sequence_number=min(numbers),
        last_sequence_number=max(numbers),
        first_timestamp_ms=min(times),
        last_timestamp_ms=max(times),
        log_count=len(logged),
        first_log_timestamp_ms=min(logged, default=None),
        last_log_timestamp_ms=max(logged, default=None),
    )


def _shelf(
    metadata: TableMetadata,
    read_page: ReadPage,
    encode_page: Callable[[Page], bytes],
    new_location: Callable[[], str],
) -> _Shelf:
    return _Shelf(
        read=read_page,
        encode=encode_page,
        name=new_location,
        pages=[(ref, None) for ref in metadata.snapshot_pages],
    )


def _age(snapshot: Snapshot) -> tuple[int, int]:
    return (snapshot.sequence_number, snapshot.timestamp_ms)


def history(metadata: TableMetadata, read_page: ReadPage) -> Iterator[Snapshot]:
    """Yield every snapshot once, the inline ones first, then page by page, newest pages first."""
    seen: set[int] = set()
    for each in sorted(metadata.snapshots, key=_age, reverse=True):
        seen.add(each.snapshot_id)
        yield each
    for ref in reversed(metadata.snapshot_pages):
        for each in reversed(read_page(ref).snapshots):
            if each.snapshot_id not in seen:
                seen.add(each.snapshot_id)
                yield each


def find_snapshot(metadata: TableMetadata, id: int, read_page: ReadPage) -> Snapshot:
    """Return a snapshot by id, from metadata.json or else from the pages, newest first."""
    found = metadata.by_id.get(id)
    if found is not None:
        return found
    for ref in reversed(metadata.snapshot_pages):
        for each in read_page(ref).snapshots:
            if each.snapshot_id == id:
                return each
    raise NotFound(f"there is no snapshot {id}")


def snapshot_as_of(metadata: TableMetadata, at_ms: int, read_page: ReadPage) -> Snapshot:
    """Return the snapshot that was current at a time, as the snapshot log tells.

    Reads only pages whose part of the log can hold the answer, as a rule at most one.
    """
    found = _logged(metadata.snapshot_log, at_ms)
    for ref in reversed(metadata.snapshot_pages):
        first, last = ref.first_log_timestamp_ms, ref.last_log_timestamp_ms
        if first is None or last is None or first > at_ms:
            continue
        # A page that expiry shrank may merge with newer ones, so ranges can overlap.
        if found is None or last > found.timestamp_ms:
            other = _logged(read_page(ref).snapshot_log, at_ms)
            if other is not None and (found is None or other.timestamp_ms > found.timestamp_ms):
                found = other
    if found is None:
        raise NotFound(
            f"the snapshot log has nothing as early as {_utc(at_ms)}: the table is younger, or what "
            "was then has expired"
        )
    return find_snapshot(metadata, found.snapshot_id, read_page)


def _utc(at_ms: int) -> str:
    try:
        return (_EPOCH + timedelta(milliseconds=at_ms)).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return f"{at_ms} ms"


def _logged(log: tuple[LogEntry, ...], at_ms: int) -> LogEntry | None:
    # Not a binary search: clocks of writers differ, so the log may step back now and then.
    return next((each for each in reversed(log) if each.timestamp_ms <= at_ms), None)


def remove_snapshots(
    metadata: TableMetadata,
    ids: Collection[int],
    *,
    read_page: ReadPage,
    encode_page: Callable[[Page], bytes],
    new_location: Callable[[], str],
) -> PagedOut:
    """Return the metadata without the snapshots, wherever they are: for expiry.

    Pages that hold any are rewritten, or dropped when nothing is left. Statistics of the
    snapshots go with them, and so does the log up to its last mention of one of them: what
    was current then can no longer be told. Ids that are not there are ignored.
    """
    unwanted = set(ids)
    rest = inline_forgotten(metadata, unwanted)
    shelf = _shelf(metadata, read_page, encode_page, new_location)
    contents = [shelf.content(index) for index in range(len(shelf.pages))]
    # What is inline is later than all that is in pages, but pages may overlap in time.
    all_goes = len(rest.snapshot_log) < len(metadata.snapshot_log)
    mentions = [_last_mention(each.snapshot_log, unwanted) for each in contents]
    moment = max((each for each in mentions if each is not None), default=None)
    changed: dict[int, Page] = {}
    for index, before in enumerate(contents):
        rest = without_keys(rest, [e.key_id for e in before.snapshots if e.snapshot_id in unwanted])
        kept = tuple(each for each in before.snapshots if each.snapshot_id not in unwanted)
        log = () if all_goes else _later(before.snapshot_log, unwanted)
        if moment is not None and mentions[index] != moment:
            log = tuple(each for each in log if each.timestamp_ms > moment)
        if len(kept) < len(before.snapshots) or len(log) < len(before.snapshot_log):
            changed[index] = replace(before, snapshots=kept, snapshot_log=log)
    for index in sorted(changed, reverse=True):
        shelf.drop(index)
    for page in changed.values():
        if page.snapshots or page.snapshot_log:
            shelf.add(page)
    return shelf.settle(rest)


def inline_forgotten(metadata: TableMetadata, ids: Collection[int]) -> TableMetadata:
    """Do the inline part of `remove_snapshots`: all of it where there are no pages."""
    unwanted = set(ids)
    for name, ref in metadata.refs.items():
        if ref.snapshot_id in unwanted:
            raise InvalidInput(f"snapshot {ref.snapshot_id} cannot go: {name!r} points to it")
    gone = [each.key_id for each in metadata.snapshots if each.snapshot_id in unwanted]
    gone += [each.key_metadata for each in metadata.statistics if each.snapshot_id in unwanted]
    rest = without_keys(metadata, gone)
    return replace(
        rest,
        snapshots=tuple(e for e in metadata.snapshots if e.snapshot_id not in unwanted),
        snapshot_log=_later(metadata.snapshot_log, unwanted),
        statistics=tuple(e for e in metadata.statistics if e.snapshot_id not in unwanted),
        partition_statistics=tuple(
            e for e in metadata.partition_statistics if e.snapshot_id not in unwanted
        ),
    )


def _later(log: tuple[LogEntry, ...], unwanted: Collection[int]) -> tuple[LogEntry, ...]:
    """Return the log after its last mention of an unwanted snapshot."""
    for index in range(len(log) - 1, -1, -1):
        if log[index].snapshot_id in unwanted:
            return log[index + 1 :]
    return log


def _last_mention(log: tuple[LogEntry, ...], unwanted: Collection[int]) -> int | None:
    """Return when the log mentions an unwanted snapshot for the last time."""
    return next((e.timestamp_ms for e in reversed(log) if e.snapshot_id in unwanted), None)
