"""The verbs of a lake on Spark that maintain a table, with the work on executors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from icetree.filters.filter import Filter
from icetree.spark.maintain.compact import rewrite_data_files
from icetree.spark.maintain.manifests import rewrite_manifests
from icetree.spark.maintain.orphans import lister
from icetree.spec.metadata.snapshot import MAIN
from icetree.spec.spelled import spelled
from icetree.table.lake import Lake
from icetree.table.maintain.compact.compact import Rewritten
from icetree.table.maintain.manifests import RewrittenManifests
from icetree.table.maintain.orphans.orphans import Orphans, remove_orphan_files
from icetree.table.progress import Progress


@spelled
class LakeMaintenance(Lake):
    """What `table.maintenance` does in one process, where a session does it better."""

    spark: SparkSession

    def rewrite_data_files(
        self,
        name: str,
        *,
        where: Filter | None = None,
        strategy: str | None = None,
        order_by: str | Sequence[str] | None = None,
        options: Mapping[str, Any] | None = None,
        branch: str = MAIN,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Rewritten:
        """Compact a table as `table.maintenance.rewrite_data_files` does, the work on executors.

        Each group of files is a task, which sorts by itself; `max-file-group-size-bytes` bounds it.
        """
        return rewrite_data_files(
            self,
            name,
            where=where,
            strategy=strategy,
            order_by=order_by,
            options=options,
            branch=branch,
            dry_run=dry_run,
            progress=progress,
        )

    def rewrite_manifests(
        self,
        name: str,
        *,
        by: str | Iterable[str] | None = None,
        branch: str = MAIN,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> RewrittenManifests:
        """Put leaves in order as `table.maintenance.rewrite_manifests` does.

        From `spark.icetree.maintenance.min-files` in them on, executors read and make them.
        """
        return rewrite_manifests(
            self, name, by=by, branch=branch, dry_run=dry_run, progress=progress
        )

    def remove_orphan_files(
        self,
        name: str,
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
        """Delete what nothing names as `table.maintenance.remove_orphan_files` does.

        Where the newest tree has `spark.icetree.maintenance.min-files` or more, executors list the
        folder and read leaves, and Spark joins what they found.
        """
        return remove_orphan_files(
            self.table(name),
            older_than=older_than,
            location=location,
            prefix_mismatch_mode=prefix_mismatch_mode,
            equal_schemes=equal_schemes,
            equal_authorities=equal_authorities,
            force=force,
            dry_run=dry_run,
            progress=progress,
            list_folder=lister(self.spark),
        )
