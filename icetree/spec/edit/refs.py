"""Branches and tags: what moves them, as updates of a table's metadata.

Snapshots are looked up in metadata.json first and then in the pages of history, through the
`read_page` that is passed in. A ref that is as it should be is set all the same, so that who
carries the updates out knows that it matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from icetree.errors import AlreadyExists, InvalidInput, NotFound
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.pages import ReadPage
from icetree.spec.metadata.snapshot import MAIN, Ref, Snapshot, SnapshotPage
from icetree.spec.metadata.update import (
    AddSnapshot,
    RecallSnapshot,
    RemoveSnapshotRef,
    SetSnapshotRef,
    Update,
)
from icetree.spec.texts import storable


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long a ref, and what a branch reaches, are kept; None leaves it to the table.

    A tag has `max_ref_age_ms` only.
    """

    max_ref_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None


#: What a ref says of its retention.
KEPT = ("max_ref_age_ms", "min_snapshots_to_keep", "max_snapshot_age_ms")


def create_branch(
    metadata: TableMetadata,
    read_page: ReadPage,
    name: str,
    *,
    at: int | None = None,
    retention: Retention | None = None,
) -> tuple[Update, ...]:
    """Make a branch at a snapshot, the current one unless told."""
    return _create(metadata, read_page, name, "branch", at, retention or Retention())


def create_tag(
    metadata: TableMetadata,
    read_page: ReadPage,
    name: str,
    *,
    at: int | None = None,
    max_ref_age_ms: int | None = None,
) -> tuple[Update, ...]:
    """Make a tag at a snapshot, the current one unless told."""
    kept = Retention(max_ref_age_ms=max_ref_age_ms)
    return _create(metadata, read_page, name, "tag", at, kept)


def replace_branch(
    metadata: TableMetadata, read_page: ReadPage, name: str, *, at: int
) -> tuple[Update, ...]:
    """Point a branch at any snapshot; its retention stays."""
    return _point(metadata, read_page, name, metadata.ref(name, "branch"), at)


def replace_tag(
    metadata: TableMetadata, read_page: ReadPage, name: str, *, at: int
) -> tuple[Update, ...]:
    """Point a tag at any snapshot; its retention stays."""
    return _point(metadata, read_page, name, metadata.ref(name, "tag"), at)


def set_retention(metadata: TableMetadata, name: str, retention: Retention) -> tuple[Update, ...]:
    """Change how long a branch or tag is kept, all of it."""
    changed = _with_retention(metadata.ref(name), retention, name)
    return (SetSnapshotRef(ref_name=name, ref=changed),)


def remove_branch(metadata: TableMetadata, name: str) -> tuple[Update, ...]:
    """Drop a branch; snapshots that only it reached stay until they are expired."""
    metadata.ref(name, "branch")
    if name == MAIN:
        raise InvalidInput(f"{MAIN!r} is the table's own branch and cannot be removed")
    return (RemoveSnapshotRef(ref_name=name),)


def remove_tag(metadata: TableMetadata, name: str) -> tuple[Update, ...]:
    """Drop a tag."""
    metadata.ref(name, "tag")
    return (RemoveSnapshotRef(ref_name=name),)


def fast_forward(
    metadata: TableMetadata, read_page: ReadPage, branch: str, to: str | int
) -> tuple[Update, ...]:
    """Move a branch ahead to a ref's snapshot, or one given by id, that descends from its head.

    A branch that is not there yet is made.
    """
    target = metadata.ref(to).snapshot_id if isinstance(to, str) else to
    if storable(branch, what="branch") not in metadata.refs:
        return create_branch(metadata, read_page, branch, at=target)
    ref = metadata.ref(branch, "branch")
    if not is_ancestor(metadata, ref.snapshot_id, target, read_page):
        raise InvalidInput(
            f"branch {branch!r} cannot be fast-forwarded to {to!r}: it has commits that snapshot "
            f"{target} does not descend from; cherry-pick them, or replace the branch"
        )
    return _point(metadata, read_page, branch, ref, target)


def rollback_to(
    metadata: TableMetadata, read_page: ReadPage, snapshot_id: int, *, branch: str = MAIN
) -> tuple[Update, ...]:
    """Move a branch back to an ancestor of its head."""
    ref = metadata.ref(branch, "branch")
    if not is_ancestor(metadata, snapshot_id, ref.snapshot_id, read_page):
        raise InvalidInput(
            f"snapshot {snapshot_id} is not an ancestor of branch {branch!r}, so this would be no "
            "roll back; set it as the current one if that is what you want"
        )
    return _point(metadata, read_page, branch, ref, snapshot_id)


def rollback_to_time(
    metadata: TableMetadata, read_page: ReadPage, at_ms: int, *, branch: str = MAIN
) -> tuple[Update, ...]:
    """Move a branch back to its newest snapshot that was made at a time or before it."""
    ref = metadata.ref(branch, "branch")
    for snapshot in ancestors(metadata, ref.snapshot_id, read_page):
        if snapshot.timestamp_ms <= at_ms:
            return _point(metadata, read_page, branch, ref, snapshot.snapshot_id)
    raise InvalidInput(f"branch {branch!r} has no snapshot as old as {at_ms} ms")


def set_current(
    metadata: TableMetadata, read_page: ReadPage, snapshot_id: int, *, branch: str = MAIN
) -> tuple[Update, ...]:
    """Point a branch at any snapshot of the table; one that is not there yet is made."""
    if storable(branch, what="branch") not in metadata.refs:
        return create_branch(metadata, read_page, branch, at=snapshot_id)
    return replace_branch(metadata, read_page, branch, at=snapshot_id)


def ancestors(metadata: TableMetadata, snapshot_id: int, read_page: ReadPage) -> Iterator[Snapshot]:
    """Yield a snapshot and then its ancestors, up to where history was expired.

    Each page is read at most once, and only when the next ancestor may be in it.
    """
    known = dict(metadata.by_id)
    unread = list(metadata.snapshot_pages)
    seen: set[int] = set()
    id: int | None = snapshot_id
    # A chain that bites its own tail, in broken metadata, ends too.
    while id is not None and id not in seen:
        while id not in known and unread:
            known |= {each.snapshot_id: each for each in read_page(unread.pop()).snapshots}
        if id not in known:
            if not seen:
                raise NotFound(f"there is no snapshot {id}")
            return
        seen.add(id)
        yield known[id]
        id = known[id].parent_snapshot_id


def is_ancestor(metadata: TableMetadata, ancestor: int, of: int, read_page: ReadPage) -> bool:
    """Tell whether a snapshot is another one or precedes it."""
    oldest = _look_up(metadata, ancestor, read_page)[0].sequence_number
    for snapshot in ancestors(metadata, of, read_page):
        if snapshot.snapshot_id == ancestor:
            return True
        if snapshot.sequence_number < oldest:
            return False
    return False


def _create(
    metadata: TableMetadata,
    read_page: ReadPage,
    name: str,
    kind: Literal["branch", "tag"],
    at: int | None,
    retention: Retention,
) -> tuple[Update, ...]:
    if not storable(name, what=kind).strip():
        raise InvalidInput(f"a {kind} needs a name")
    if name == MAIN and kind == "tag":
        raise InvalidInput(f"{MAIN!r} is the table's own branch and cannot be a tag")
    if name in metadata.refs:
        raise AlreadyExists(f"there is a {metadata.refs[name].type} {name!r} already")
    at = metadata.current_snapshot_id if at is None else at
    if at is None:
        raise InvalidInput(f"{kind} {name!r} has nothing to point to: the table has no snapshot")
    ref = _with_retention(Ref(snapshot_id=at, type=kind), retention, name)
    return (
        *_recalled(metadata, at, read_page),
        SetSnapshotRef(ref_name=name, ref=ref),
    )


def _point(
    metadata: TableMetadata, read_page: ReadPage, name: str, ref: Ref, at: int
) -> tuple[Update, ...]:
    moved = SetSnapshotRef(ref_name=name, ref=replace(ref, snapshot_id=at))
    return (*_recalled(metadata, at, read_page), moved)


def _with_retention(ref: Ref, retention: Retention, name: str) -> Ref:
    if not isinstance(retention, Retention):
        raise InvalidInput(f"retention={retention!r}: give a Retention")
    values = {each: getattr(retention, each) for each in KEPT}
    for what, value in values.items():
        if value is not None and (type(value) is not int or value <= 0):
            raise InvalidInput(f"{name!r}: {what} is a positive number, not {value!r}")
        if value is not None and ref.type == "tag" and what != "max_ref_age_ms":
            raise InvalidInput(f"{name!r} is a tag, which has no {what}: only a branch has")
    if name == MAIN and retention.max_ref_age_ms is not None:
        raise InvalidInput(f"{MAIN!r} never goes, so it has no max_ref_age_ms")
    return replace(ref, **values)


def recalled(
    metadata: TableMetadata, updates: tuple[Update, ...], read_page: ReadPage
) -> tuple[Update, ...]:
    """Return updates that were made for older metadata, with what refs point to brought back.

    A snapshot may have moved to a page since, or to another page. One that is gone stays so.
    """
    if not any(isinstance(each, SetSnapshotRef | RecallSnapshot) for each in updates):
        return updates
    found: list[Update] = []
    added = {each.snapshot.snapshot_id for each in updates if isinstance(each, AddSnapshot)}
    for each in updates:
        match each:
            case RecallSnapshot(snapshot=snapshot):
                try:
                    found += _recalled(metadata, snapshot.snapshot_id, read_page)
                except NotFound:
                    # Whoever carries it out says that it is gone.
                    found.append(each)
            case SetSnapshotRef(ref=ref) if ref.snapshot_id not in added:
                with suppress(NotFound):
                    found += _recalled(metadata, ref.snapshot_id, read_page)
                found.append(each)
            case _:
                found.append(each)
    return tuple(found)


def _recalled(metadata: TableMetadata, id: int, read_page: ReadPage) -> tuple[Update, ...]:
    """Return what brings a snapshot back to metadata.json, where refs can point to it."""
    snapshot, page = _look_up(metadata, id, read_page)
    if page is None:
        return ()
    return (RecallSnapshot(snapshot=snapshot, page_location=page.location),)


def _look_up(
    metadata: TableMetadata, id: int, read_page: ReadPage
) -> tuple[Snapshot, SnapshotPage | None]:
    """Return a snapshot and the page that holds it, None for metadata.json itself."""
    found = metadata.by_id.get(id)
    if found is not None:
        return found, None
    for page in reversed(metadata.snapshot_pages):
        for each in read_page(page).snapshots:
            if each.snapshot_id == id:
                return each, page
    raise NotFound(f"there is no snapshot {id}")
