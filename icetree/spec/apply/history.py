"""What updates do to snapshots, pages of history, branches and tags: `spec.apply` calls them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

from msgspec.structs import replace

from icetree.errors import CommitConflict, InvalidInput, NotFound
from icetree.spec.metadata.metadata import TableMetadata, with_ref
from icetree.spec.metadata.pages import inline_forgotten
from icetree.spec.metadata.snapshot import MAIN
from icetree.spec.metadata.update import (
    DropSnapshotPages,
    ExpireSnapshots,
    RecallSnapshot,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetSnapshotRef,
)

#: Returns metadata without some snapshots.
Forget: TypeAlias = Callable[[TableMetadata, Collection[int]], TableMetadata]


def recall(m: TableMetadata, update: RecallSnapshot) -> TableMetadata:
    """Return the metadata with a snapshot that was on a page of history."""
    snapshot = update.snapshot
    if snapshot.snapshot_id in m.by_id:
        return m
    if all(page.location != update.page_location for page in m.snapshot_pages):
        raise CommitConflict(
            f"the history that held snapshot {snapshot.snapshot_id} was rewritten meanwhile; "
            "refresh the table and look for it again"
        )
    return replace(m, snapshots=(snapshot, *m.snapshots))


def drop_pages(m: TableMetadata, update: DropSnapshotPages) -> TableMetadata:
    """Return the metadata without pages of history."""
    gone = set(update.locations)
    missing = gone - {page.location for page in m.snapshot_pages}
    if missing:
        raise CommitConflict(
            f"{min(missing)} is no page of the table's history any more; verify the table again"
        )
    kept = tuple(page for page in m.snapshot_pages if page.location not in gone)
    return replace(m, snapshot_pages=kept)


def set_ref(m: TableMetadata, update: SetSnapshotRef, *, at_ms: int) -> TableMetadata:
    """Return the metadata with a branch or tag where it is to point."""
    name, ref = update.ref_name, update.ref
    before = m.refs.get(name)
    if before is not None and before.type != ref.type:
        raise InvalidInput(f"{name!r} is a {before.type} and cannot become a {ref.type}")
    if not name:
        raise InvalidInput("a branch or tag needs a name")
    try:
        return with_ref(m, name, ref, at_ms=at_ms)
    except NotFound as error:
        raise InvalidInput(f"{name!r} cannot point there: {error}") from None


def remove_ref(m: TableMetadata, update: RemoveSnapshotRef) -> TableMetadata:
    """Return the metadata without a branch or tag."""
    refs = dict(m.refs)
    if refs.pop(update.ref_name, None) is None:
        raise InvalidInput(f"there is no branch or tag {update.ref_name!r}")
    if update.ref_name == MAIN:
        return replace(m, refs=refs, current_snapshot_id=None)
    return replace(m, refs=refs)


def remove_snapshots(m: TableMetadata, update: RemoveSnapshots) -> TableMetadata:
    """Return the metadata without snapshots, none of which is on a page."""
    if m.snapshot_pages:
        raise InvalidInput("the table has history in pages: expire its snapshots instead")
    for id in update.snapshot_ids:
        if id not in m.by_id:
            raise InvalidInput(f"there is no snapshot {id}")
    return inline_forgotten(m, update.snapshot_ids)


def expire_snapshots(m: TableMetadata, update: ExpireSnapshots, *, forget: Forget) -> TableMetadata:
    """Return the metadata without snapshots, to which no branch or tag points."""
    for name, ref in m.refs.items():
        if ref.snapshot_id in update.snapshot_ids:
            raise CommitConflict(
                f"{ref.type} {name!r} points to snapshot {ref.snapshot_id} now, so it cannot expire"
            )
    return forget(m, update.snapshot_ids)
