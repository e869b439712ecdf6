"""May this work land on that head: requirements, conflicts, and whether it landed before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import index_by_id
from pyiceberg.types import NestedField, StructType

from icetree.errors import CommitConflict, InvalidInput, NotFound
from icetree.files.table_files import TableFiles
from icetree.spec.edit.refs import ancestors
from icetree.spec.entry import stats
from icetree.spec.entry.entry import BASE_COLUMNS, Entries, is_data_file, only
from icetree.spec.metadata.encryption import KEY_PROPERTY, require_told
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.pages import find_snapshot
from icetree.spec.metadata.snapshot import MAIN, Snapshot, SnapshotPage
from icetree.spec.metadata.update import AddSnapshot, RecallSnapshot, SetSnapshotRef
from icetree.spec.schema.columns import ids_in
from icetree.table.commit.carry import Carrier
from icetree.table.commit.merge import merge
from icetree.table.state import State, Work
from icetree.tree.changes import Changes, Intent, Operation
from icetree.tree.conflict.conflict import OtherCommit, find_conflicts
from icetree.tree.live import live_files

#: Where a commit's key stands in the summary of its snapshot.
KEY = "icetree.commit-key"


def already_applied(work: Work, metadata: TableMetadata, files: TableFiles) -> Snapshot | None:
    """Return the snapshot that carries the work's key, where the table still has it."""
    for snapshot in reversed(metadata.snapshots):
        if (snapshot.summary or {}).get(KEY) == work.key:
            return snapshot
    for ref in reversed(metadata.snapshot_pages):
        # Pages never change, so which keys one holds is worked out once.
        at = ("keys", files.location, ref.location)
        keys = files.cache.derive(at, partial(_keys_on, ref, files), most=1_000)
        if work.key in keys:
            return find_snapshot(metadata, keys[work.key], files.page)
    return None


def _keys_on(ref: SnapshotPage, files: TableFiles) -> dict[str, int]:
    return {
        snapshot.summary[KEY]: snapshot.snapshot_id
        for snapshot in files.page(ref).snapshots
        if snapshot.summary and KEY in snapshot.summary
    }


def validate(
    work: Work, head: State, files: TableFiles, carrier: Carrier | None = None
) -> tuple[Changes, ...]:
    """Return the work's changes as they may land on the head; `CommitConflict` when they may not."""
    for requirement in work.requirements:
        requirement.require(head.metadata, head.name)
    _require_targets(work, head)
    _require_picked(work, head, files)
    if not work.changes:
        return ()
    require_told(head.metadata)
    _require_same_secrecy(work, head)
    _require_version(work, head)
    _require_branch(work, head)
    _require_layouts(work, head)
    _require_columns(work, head)
    _require_no_new_nulls(work, head)
    _require_no_nulls(work, head)
    since = commits_since(work, head, files) if _minds_others(work) else []
    shape = head.metadata.shape()
    changes = work.changes if carrier is None else carrier.landing(head, since)
    beside = _added_together(changes)
    for change in changes:
        found = find_conflicts(
            change,
            isolation=work.isolation,
            since=since,
            shape=shape,
            lookup=lambda names: _lookup(names, work, files),
            beside=beside,
        )
        if found:
            sentence = "; ".join(conflict.message for conflict in found)
            # A change that contradicts itself is its writer's mistake, whoever else commits.
            own = any(conflict.snapshot_id is None for conflict in found)
            raise (InvalidInput if own else CommitConflict)(f"table {head.name}: {sentence}")
    return changes


def _require_version(work: Work, head: State) -> None:
    """Raise `CommitConflict` when the table has no tree any more that the work could grow."""
    was, now = (each.metadata.format_version for each in (work.base, head))
    if now < was:
        raise CommitConflict(
            f"table {head.name}: the table went back from v{was} to v{now} meanwhile; write to it with "
            f"another engine, or upgrade it again"
        )


def _require_branch(work: Work, head: State) -> None:
    """Raise `CommitConflict` when the branch is gone: made again, it would lack what it had."""
    branch, refs = work.branch, head.metadata.refs
    if branch is None or branch not in work.base.metadata.refs:
        return
    found = refs.get(branch)
    if found is None and not work.create_branch:
        raise CommitConflict(
            f"table {head.name}: another commit removed branch {branch!r}, which this change was made "
            "on; refresh the table and choose a branch"
        )
    if found is not None and found.type != "branch":
        raise CommitConflict(
            f"table {head.name}: another commit removed branch {branch!r} and made a tag of that name; "
            "refresh the table and choose a branch"
        )


def _require_targets(work: Work, head: State) -> None:
    """Raise `CommitConflict` when a branch or tag is to point to what has expired since."""
    if head.metadata_location == work.base.metadata_location:
        return
    there = set(head.metadata.by_id)
    for update in work.updates:
        match update:
            case AddSnapshot(snapshot=snapshot) | RecallSnapshot(snapshot=snapshot):
                there.add(snapshot.snapshot_id)
            case SetSnapshotRef(ref_name=name, ref=ref) if ref.snapshot_id not in there:
                raise CommitConflict(
                    f"table {head.name}: snapshot {ref.snapshot_id} expired before {name!r} pointed to it; "
                    "refresh the table and choose another"
                )


def _require_picked(work: Work, head: State, files: TableFiles) -> None:
    """Raise `CommitConflict` when what the work is about has expired: its files go, or are gone."""
    if work.picked is None:
        return
    try:
        find_snapshot(head.metadata, work.picked, files.page)
    except NotFound:
        raise CommitConflict(
            f"table {head.name}: snapshot {work.picked} expired before it was picked; its files are gone"
        ) from None


def _require_layouts(work: Work, head: State) -> None:
    """Raise `CommitConflict` for files of what another took away.

    That is a spec, a sort order, or a column that deletes match by. Ids do not tell: that of
    a spec or of an order that went may have been given again.
    """
    before, now = work.base.metadata, head.metadata
    specs = _kept(_specs(before), _specs(now))
    orders = _kept(_orders(before), _orders(now))
    columns = frozenset[int]()
    if before.schemas != now.schemas:
        columns = ids_in(before.schemas) - ids_in(now.schemas)
    if specs is None and orders is None and not columns:
        return
    for change in work.changes:
        added = change.added
        names = {
            *_lost("partition spec", added["partition_spec_id"], specs),
            *_lost("sort order", added["sort_order_id"], orders),
        }
        deleted_by = pc.unique(pc.list_flatten(added["equality_ids"])).to_pylist()
        names |= {f"column {id}" for id in deleted_by if id in columns}
        for name in sorted(names):
            raise CommitConflict(
                f"table {head.name}: another commit took away {name}, which nothing used any more but "
                "files of this change; refresh the table and write its rows again"
            )


def _specs(metadata: TableMetadata) -> dict[int, object]:
    return {each.spec_id: each.fields for each in metadata.partition_specs}


def _orders(metadata: TableMetadata) -> dict[int, object]:
    # Order 0 is unsorted, whether or not it is listed.
    return {0: (), **{each.order_id: each.fields for each in metadata.sort_orders}}


def _kept(before: dict[int, object], now: dict[int, object]) -> set[int] | None:
    """Return the ids that mean what they meant; None when all do."""
    kept = {id for id, fields in before.items() if now.get(id) == fields}
    return None if len(kept) == len(before) else kept


def _lost(what: str, ids: pa.ChunkedArray, kept: set[int] | None) -> set[str]:
    if kept is None:
        return set()
    return {f"{what} {id}" for id in set(pc.unique(ids).to_pylist()) - {None} - kept}


def _require_columns(work: Work, head: State) -> None:
    """Raise `CommitConflict` for equality deletes by a dropped column.

    Rows that were written again since then have no value of it, and would stay.
    """
    adding = [each.added for each in work.changes if each.added.num_rows]
    lists = [pc.list_flatten(each["equality_ids"]) for each in adding]
    compared = {id for each in lists for id in pc.unique(each).to_pylist()}
    if not compared:
        return
    before, now = work.base.metadata, head.metadata
    # A column that this very work adds is in no schema yet.
    dropped = (ids_in(before.schemas) | ids_in(now.schemas)) - set(index_by_id(now.schema()))
    for id in sorted(compared & dropped):
        raise CommitConflict(
            f"table {head.name}: equality deletes by column {id}, which the table has dropped, would miss "
            "rows that were written again since; refresh the table and delete by other columns"
        )


def _added_together(changes: Sequence[Changes]) -> Entries | None:
    """Return what several changes add in the end; None of one, which tells itself."""
    if len(changes) == 1:
        return None
    plain = [replace(each, added=each.added.select(BASE_COLUMNS)) for each in changes]
    return merge(plain).added


def _require_same_secrecy(work: Work, head: State) -> None:
    """Raise `CommitConflict` where files were written encrypted and the table is plain, or otherwise.

    Another key of the table is none of their business: each has a key of its own.
    """
    before, now = work.base.metadata.properties, head.metadata.properties
    if bool(before.get(KEY_PROPERTY)) != bool(now.get(KEY_PROPERTY)):
        raise CommitConflict(
            f"table {head.name}: another commit changed {KEY_PROPERTY}, so that what was written is not "
            "encrypted as the table is; refresh the table and write it again"
        )


def _require_no_new_nulls(work: Work, head: State) -> None:
    """Raise `CommitConflict` for a file that may have nulls where they were forbidden meanwhile."""
    before, now = work.base.metadata, head.metadata
    if now.schema_json() == before.schema_json():
        return
    optional = {id for id, each in index_by_id(before.schema()).items() if not each.required}
    for id, column in index_by_id(now.schema()).items():
        if not column.required or id not in optional:
            continue
        for change in work.changes:
            for location in _may_hold_null(change.added, id)[:1].to_pylist():
                raise CommitConflict(
                    f"table {head.name}: another commit made column {now.shape().names[id]!r} required, "
                    f"and {location} may have a null there; refresh the table and write its rows "
                    "again"
                )


def _require_no_nulls(work: Work, head: State) -> None:
    """Refuse data files that tell of nulls where there are none: the table could not be read any more.

    Whoever wrote them may have seen the column before it was required, and commit on what there is now.
    """
    now = head.metadata
    columns = _always_there(now.schema().fields)
    required = {stats.column(each.field_id, "nulls"): each.field_id for each in columns}
    for change in work.changes:
        names = [each for each in change.added.column_names if each in required]
        # One that rewrites has what there was.
        if change.intent is Intent.REWRITE or not names:
            continue
        data = only(change.added.select(["location", *names]), is_data_file(change.added))
        for name in names:
            for location in data["location"].filter(pc.greater(data[name], 0))[:1].to_pylist():
                raise InvalidInput(
                    f"table {head.name}: column {now.shape().names[required[name]]!r} is required, and "
                    f"{location} tells of a null there: write its rows again, with a value in each"
                )


def _always_there(fields: Iterable[NestedField]) -> Iterator[NestedField]:
    """Yield required fields that no struct around them can lack."""
    for field in fields:
        if field.required:
            yield field
            if isinstance(field.field_type, StructType):
                yield from _always_there(field.field_type.fields)


def _may_hold_null(added: Entries, field_id: int) -> pa.ChunkedArray:
    """Return the data files that are not known to have a value of the field in every row."""
    data, nulls = only(added, is_data_file(added)), stats.column(field_id, "nulls")
    if nulls not in data.column_names:
        return data["location"]
    return data["location"].filter(pc.fill_null(pc.not_equal(data[nulls], 0), True))


def _minds_others(work: Work) -> bool:
    return any(
        change.intent is not Intent.APPEND and not _is_still(change) for change in work.changes
    )


def _is_still(change: Changes) -> bool:
    """Tell whether a change leaves every file as it is, as one that rewrites leaves does."""
    return change.intent is Intent.REWRITE and not (
        change.added.num_rows or change.removed.num_rows
    )


def commits_since(work: Work, head: State, files: TableFiles) -> list[OtherCommit]:
    """Return what others committed to the branch since the work's base, oldest first.

    A snapshot that stays staged follows the table's current one.
    """
    branch = work.branch or MAIN
    base, now = work.base.head(branch), head.head(branch)
    start = None if base is None else base.snapshot_id
    since: list[Snapshot] = []
    back_to: int | None = None
    for each in ancestors(head.metadata, now.snapshot_id, files.page) if now is not None else ():
        back_to = each.snapshot_id
        if back_to == start:
            break
        since.append(each)
        back_to = each.parent_snapshot_id
    if back_to != start:
        raise CommitConflict(
            f"table {head.name}: branch {branch} was moved, or expired, and no longer holds "
            f"snapshot {start}, which this change was made on; refresh the table and redo it"
        )
    return [_other(each, head.metadata, files) for each in reversed(since)]


def _other(snapshot: Snapshot, metadata: TableMetadata, files: TableFiles) -> OtherCommit:
    changed = files.changed(snapshot, metadata.shape())
    operation = Operation(snapshot.operation or Operation.OVERWRITE)
    return OtherCommit(snapshot_id=snapshot.snapshot_id, operation=operation, diff=changed)


def _lookup(names: pa.Array, work: Work, files: TableFiles) -> pa.Table:
    metadata = work.base.metadata
    shape = metadata.shape()
    root = files.root(work.base.head(work.branch or MAIN), shape)
    live = live_files(root, files.reader(shape))
    return live.filter(pc.is_in(live["location"], names))
