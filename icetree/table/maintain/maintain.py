"""The verbs that keep a table fast and small: `table.maintenance`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from icetree.filters.filter import Filter
from icetree.spec.metadata.snapshot import MAIN
from icetree.spec.spelled import spelled
from icetree.table.maintain.compact.compact import Rewritten, rewrite_data_files
from icetree.table.maintain.deletes import RewrittenDeletes, rewrite_position_delete_files
from icetree.table.maintain.expire import Expired, expire_snapshots
from icetree.table.maintain.manifests import RewrittenManifests, rewrite_manifests
from icetree.table.maintain.optimize import Optimized, optimize
from icetree.table.maintain.orphans.orphans import Orphans, remove_orphan_files
from icetree.table.maintain.statistics.partitions import (
    PartitionStatistics,
    compute_partition_stats,
)
from icetree.table.maintain.statistics.statistics import TableStatistics, compute_table_stats
from icetree.table.point import Point
from icetree.table.progress import Progress

if TYPE_CHECKING:
    from icetree.table.table import Table


@spelled
class Maintenance:
    """What can be done for a table beside changing its rows; each verb has a `dry_run`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __repr__(self) -> str:
        return f"Maintenance({str(self._table.name)!r})"

    def expire_snapshots(
        self,
        *,
        older_than: datetime | str | None = None,
        retain_last: int | None = None,
        snapshot_ids: Iterable[int] | None = None,
        clean_expired_metadata: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Expired:
        """Forget old snapshots and delete the files that only they needed.

        What goes is decided by the retention of branches and tags and by the table's properties
        `history.expire.*`; `older_than` and `retain_last` take the place of the properties, for
        branches that say nothing themselves. Or name the snapshots. Time travel and change feed of
        what stays are as before. Beside writers it is safe; one that started on a snapshot which
        goes has a conflict. With `clean_expired_metadata`, schemas, partition specs, sort orders and
        expressions go too that neither a snapshot left nor a file in its tree uses.
        """
        return expire_snapshots(
            self._table,
            older_than=older_than,
            retain_last=retain_last,
            snapshot_ids=snapshot_ids,
            clean_expired_metadata=clean_expired_metadata,
            dry_run=dry_run,
            progress=progress,
        )

    def remove_orphan_files(
        self,
        *,
        older_than: datetime | str | None = None,
        location: str | None = None,
        prefix_mismatch_mode: str = "error",
        equal_schemes: Mapping[str, str] | None = None,
        equal_authorities: Mapping[str, str] | None = None,
        force: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Orphans:
        """Delete files in the table's folder that nothing of the table names.

        Only those from before `older_than`, three days ago unless told otherwise: a commit that is
        under way has files that nothing names yet. Less than an hour is refused without `force`.
        Folders of other tables of the catalog are left alone, and so is what has a part of its name
        start with `_` or `.`. `location` narrows the search to a folder of the table. A file that
        the table names under another scheme or authority is refused, or with
        `prefix_mismatch_mode` "ignore" left and with "delete" deleted; `equal_schemes` and
        `equal_authorities` say which are the same, such as `{"s3a,s3n": "s3"}`.
        """
        return remove_orphan_files(
            self._table,
            older_than=older_than,
            location=location,
            prefix_mismatch_mode=prefix_mismatch_mode,
            equal_schemes=equal_schemes,
            equal_authorities=equal_authorities,
            force=force,
            dry_run=dry_run,
            progress=progress,
        )

    def rewrite_manifests(
        self,
        *,
        by: str | Iterable[str] | None = None,
        branch: str = MAIN,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> RewrittenManifests:
        """Put the entries of leaves in order, so that plans read fewer; no file changes.

        The order is that of the partition fields and the sort order, or `by` columns or partition
        fields. Rewritten are leaves with many entries removed, small ones, those of Avro, and ones
        that lie across others; what is in good order stays as it is. Others may commit meanwhile:
        what they remove goes from the new leaves too, and they have no conflict.
        """
        return rewrite_manifests(
            self._table, by=by, branch=branch, dry_run=dry_run, progress=progress
        )

    def rewrite_data_files(
        self,
        *,
        where: Filter | None = None,
        strategy: str | None = None,
        order_by: str | Sequence[str] | None = None,
        options: Mapping[str, Any] | None = None,
        branch: str = MAIN,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Rewritten:
        """Write small, oversized and worn data files anew, at the size they should have.

        Of files that may hold rows which match, with all their rows. The strategy is `binpack`,
        `sort` by `order_by` or the table's own, or `zorder`; `options` have Iceberg's names, such
        as `target-file-size-bytes` and `rewrite-all`. Rows keep their ids and ages, and their
        deletes are applied. Beside writers it is safe: what they delete or change meanwhile is taken
        in. Old files stay until their snapshots expire.
        """
        return rewrite_data_files(
            self._table,
            where=where,
            strategy=strategy,
            order_by=order_by,
            options=options,
            branch=branch,
            dry_run=dry_run,
            progress=progress,
        )

    def compute_table_stats(
        self,
        *,
        columns: Iterable[str] | None = None,
        at: Point | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> TableStatistics:
        """Read the columns of a snapshot, and keep how many distinct values they have, nearly.

        Without `columns`, of all that hold single values. Planners of other engines read it.
        """
        return compute_table_stats(
            self._table, columns=columns, at=at, dry_run=dry_run, progress=progress
        )

    def compute_partition_stats(
        self,
        *,
        at: Point | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> PartitionStatistics:
        """Keep what each partition of a snapshot holds, from metadata alone."""
        return compute_partition_stats(self._table, at=at, dry_run=dry_run, progress=progress)

    def rewrite_position_delete_files(
        self,
        *,
        where: Filter | None = None,
        rewrite_equality_deletes: bool = False,
        branch: str = MAIN,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> RewrittenDeletes:
        """Merge data DVs of many small files into few, and turn other deletes into data DVs.

        Position delete files of v2 become data DVs, and so do equality deletes where that is asked
        for: their data files are read. What deletes nothing any more goes. `where` narrows it to
        data files that may have rows which match. What is deleted stays the same, and others may
        commit meanwhile: what they changed is looked at anew.
        """
        return rewrite_position_delete_files(
            self._table,
            where=where,
            rewrite_equality_deletes=rewrite_equality_deletes,
            branch=branch,
            dry_run=dry_run,
            progress=progress,
        )

    def optimize(
        self,
        *,
        max_seconds: float | None = None,
        max_bytes: int | None = None,
        branch: str = MAIN,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Optimized:
        """Look at the table, and do what is worth it, each step with its reason.

        Small and worn data files, scattered deletes, leaves, snapshots that have had their time,
        files that nothing names. Nothing is begun once the seconds are over, or that would read and
        write more data than is left of the bytes; `left` of a step tells what it did not get to.
        Without arguments it is safe to run at any time, beside writers and readers.
        """
        return optimize(
            self._table,
            branch=branch,
            max_seconds=max_seconds,
            max_bytes=max_bytes,
            dry_run=dry_run,
            progress=progress,
        )
