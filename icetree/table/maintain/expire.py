"""Expiring snapshots: history is forgotten by the table's rules, and files that only it needed go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from icetree.errors import CommitConflict, IcetreeError, InvalidInput
from icetree.spec.edit.unused import unused
from icetree.spec.entry.entry import Content
from icetree.spec.location import stored_form
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.pages import history
from icetree.spec.metadata.retention import Expiry, chosen, expired, rules_of
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.metadata.update import ExpireSnapshots, RemoveSnapshotRef
from icetree.surroundings import now_ms
from icetree.table.arguments import whole
from icetree.table.export.places import EXPORTS
from icetree.table.maintain.deleting import counts_of, delete, own_files, require_own_files
from icetree.table.maintain.exports import exports_only_of, stand_ins_of
from icetree.table.maintain.newest import on_newest
from icetree.table.maintain.reach import (
    Reach,
    both,
    less,
    less_needed,
    named,
    named_by,
    none_named,
    once,
    only_in,
)
from icetree.table.maintain.unused import forget_unused, names_of, used_by
from icetree.table.point import milliseconds
from icetree.table.progress import Progress
from icetree.visible import log_of, visible

if TYPE_CHECKING:
    from icetree.table.table import Table

log = log_of(__name__)

#: How often the plan is made anew when another points a branch or tag to what was to go.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Expired:
    """What went, or with `dry_run` would go; counts are named as Iceberg's procedure names them."""

    snapshot_ids: tuple[int, ...]
    #: Branches and tags that had outlived their own age.
    refs: tuple[str, ...]
    deleted_data_files_count: int
    deleted_position_delete_files_count: int
    deleted_equality_delete_files_count: int
    deleted_manifest_files_count: int
    deleted_manifest_lists_count: int
    deleted_statistics_files_count: int
    dry_run: bool
    #: Files that could not be deleted: nothing names them any more.
    left_behind: tuple[str, ...] = ()
    #: Schemas, partition specs, sort orders and expressions that nothing used any more.
    cleaned: tuple[str, ...] = ()

    def __repr__(self) -> str:
        files = sum(count for name, count in asdict(self).items() if name.endswith("_files_count"))
        counts = f"snapshots={len(self.snapshot_ids)}, refs={len(self.refs)}, files={files}"
        return f"Expired({counts}, dry_run={self.dry_run})"

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return asdict(self)

    def __str__(self) -> str:
        counts = ", ".join(
            f"{count:,} {name.removeprefix('deleted_').removesuffix('_count').replace('_', ' ')}"
            for name, count in asdict(self).items()
            if name.startswith("deleted_") and count
        )
        verb = "would expire" if self.dry_run else "expired"
        refs = visible(f" and {', '.join(self.refs)}") if self.refs else ""
        rest = f"; also {', '.join(self.cleaned)}" if self.cleaned else ""
        return f"{verb} {len(self.snapshot_ids):,} snapshots{refs}; files: {counts or 'none'}{rest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What goes from a table as one metadata file has it."""

    base: TableMetadata
    history: tuple[Snapshot, ...]
    expiry: Expiry
    #: The files that only expired snapshots need, with what the others need.
    files: pa.Table
    gone: Reach
    kept: Reach
    statistics: pa.Table


def expire_snapshots(
    table: Table,
    *,
    older_than: datetime | str | None = None,
    retain_last: int | None = None,
    snapshot_ids: Iterable[int] | None = None,
    clean_expired_metadata: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Expired:
    """Forget snapshots that the rules let go of, or those named, and delete what only they needed.

    Files are deleted once the commit has landed; when that is not known, none is.
    """
    clean = clean_expired_metadata
    require_own_files(table.metadata, table.name)
    older_than_ms = None if older_than is None else milliseconds(older_than, what="older_than")
    least = None if retain_last is None else whole(retain_last, what="retain_last", least=1)
    ids = None if snapshot_ids is None else {whole(id, what="snapshot_ids") for id in snapshot_ids}
    if ids is not None and (older_than is not None or retain_last is not None):
        raise InvalidInput("give snapshot_ids, or older_than and retain_last, not both")
    tell = progress or (lambda *_: None)
    for attempt in range(_TRIES):
        plan = on_newest(
            table,
            lambda: _plan(table, tell, older_than_ms=older_than_ms, retain_last=least, ids=ids),
        )
        if dry_run:
            names = _unused_after(table, plan) if clean else ()
            return _told(plan, plan.files, dry_run=True, cleaned=names)
        if not (plan.expiry.snapshot_ids or plan.expiry.refs):
            names = forget_unused(table) if clean else ()
            return _told(plan, plan.files, dry_run=False, cleaned=names)
        gone = [RemoveSnapshotRef(ref_name=name) for name in plan.expiry.refs]
        try:
            table.update_metadata(*gone, ExpireSnapshots(snapshot_ids=plan.expiry.snapshot_ids))
            break
        except CommitConflict:
            if attempt == _TRIES - 1:
                raise
    # It has landed: an error would say that nothing was changed.
    done, going = replace(plan, statistics=none_named()), none_named()
    left, names = tuple[str, ...](), tuple[str, ...]()
    try:
        going, statistics, left = _deleted(table, plan, tell)
        done = replace(plan, statistics=less(statistics, named(left)))
        going = less(going, named(left))
        names = forget_unused(table) if clean else ()
    except IcetreeError as error:
        log.warning(
            "table %s: what only expired snapshots had is left, for others could not be looked at; "
            "remove_orphan_files finds it, and clean_expired_metadata the next time: %s",
            table.name,
            error,
        )
    return _told(done, going, dry_run=False, left=left, cleaned=names)


def _deleted(
    table: Table, plan: _Plan, tell: Progress
) -> tuple[pa.Table, pa.Table, tuple[str, ...]]:
    """Delete what only expired snapshots had; return files of trees, statistics, and what is left."""
    going, statistics, exports = _still_unneeded(table, plan)
    unnamed = once([going, statistics, exports])["location"].to_pylist()
    left = delete(table.metadata, table.files, unnamed, tell)
    # Old pages of history are named by old metadata alone.
    pages = {each.location for each in plan.base.snapshot_pages}
    pages -= {each.location for each in table.metadata.snapshot_pages}
    left += delete(table.metadata, table.files, [*pages], lambda *_: None)
    return going, statistics, left


def _unused_after(table: Table, plan: _Plan) -> tuple[str, ...]:
    gone = plan.expiry.snapshot_ids
    staying = [each for each in plan.history if each.snapshot_id not in gone]
    return names_of(unused(plan.base, used_by(table, staying)))


def _plan(
    table: Table,
    tell: Progress,
    *,
    older_than_ms: int | None,
    retain_last: int | None,
    ids: set[int] | None,
) -> _Plan:
    metadata, files = table.metadata, table.files
    every = tuple(history(metadata, files.page))
    at_ms = now_ms()
    if ids is not None:
        expiry = chosen(metadata, every, ids)
    else:
        rules = rules_of(
            metadata.properties, at_ms=at_ms, older_than_ms=older_than_ms, keep_last=retain_last
        )
        expiry = expired(metadata, every, rules, at_ms=at_ms)
    going = [each for each in every if each.snapshot_id in expiry.snapshot_ids]
    staying = [each for each in every if each.snapshot_id not in expiry.snapshot_ids]
    gone, kept = Reach(), Reach()
    shape = metadata.shape()
    if going:
        gone.gather(going, files, shape, what="trees that go", tell=tell)
        kept.gather(staying, files, shape, what="trees that stay", tell=tell)
    statistics = _statistics(metadata, expiry)
    found = own_files(metadata, only_in(gone, kept, files.reader(shape), beside=statistics))
    found = less(found, named_by(table.state, but=expiry.snapshot_ids))
    return _Plan(
        base=metadata,
        history=every,
        expiry=expiry,
        files=less(found, statistics),
        gone=gone,
        kept=kept,
        statistics=both(found, statistics),
    )


def _statistics(metadata: TableMetadata, expiry: Expiry) -> pa.Table:
    """Return the statistics files that expired snapshots have.

    Who names them may have named any file so: they are looked for as those of trees are. What exports
    consist of no statistics are: that lives as long as the exports, which trees do not tell.
    """
    ids, every = expiry.snapshot_ids, metadata.all_statistics
    going = {each.statistics_path for each in every if each.snapshot_id in ids}
    names = {stored_form(each, metadata.location) for each in going}
    return named(sorted(each for each in names if not each.startswith(EXPORTS)), Content.DATA)


def _still_unneeded(table: Table, plan: _Plan) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Return the files that go: of trees, statistics, and those of exports.

    What commits that came in between need stays: the newest word counts.
    """
    reader = table.files.reader(table.metadata.shape())
    exports = exports_only_of(plan.gone, plan.kept, table.files)
    known = {each.snapshot_id for each in plan.history}
    new = [
        each for each in history(table.metadata, table.files.page) if each.snapshot_id not in known
    ]
    later, shape = Reach(), table.metadata.shape()
    for each in new:
        later.add(each, table.files, shape)
    going = pa.concat_tables([plan.files, plan.statistics])
    going = less_needed(going, later, reader, known=plan.kept) if new else going
    exports = pa.concat_tables([exports, stand_ins_of(going, table.files)])
    exports = less_needed(exports, plan.kept, reader)
    exports = less_needed(exports, later, reader, known=plan.kept)
    # Trees are not all that names files: so does the metadata, as it is now.
    beside = named_by(table.state, but=plan.expiry.snapshot_ids)
    going, exports = less(going, beside), less(exports, beside)
    return less(going, plan.statistics), both(going, plan.statistics), exports


def _told(
    plan: _Plan,
    files: pa.Table,
    *,
    dry_run: bool,
    left: tuple[str, ...] = (),
    cleaned: tuple[str, ...] = (),
) -> Expired:
    return Expired(
        snapshot_ids=tuple(sorted(plan.expiry.snapshot_ids)),
        refs=plan.expiry.refs,
        deleted_statistics_files_count=plan.statistics.num_rows,
        dry_run=dry_run,
        left_behind=left,
        cleaned=cleaned,
        **counts_of(files),
    )
