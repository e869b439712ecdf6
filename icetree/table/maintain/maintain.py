"""The verbs that keep a table fast and small: `table.maintenance`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from icetree.table.arguments import spelled_out
from icetree.table.maintain.expire import Expired, expire_snapshots
from icetree.table.progress import Progress

if TYPE_CHECKING:
    from icetree.table.table import Table


class Maintenance:
    """What can be done for a table beside changing its rows; each verb has a `dry_run`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __repr__(self) -> str:
        return f"Maintenance({str(self._table.name)!r})"

    @spelled_out()
    def expire_snapshots(
        self,
        *,
        older_than: datetime | str | None = None,
        retain_last: int | None = None,
        snapshot_ids: Iterable[int] | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Expired:
        """Forget old snapshots and delete the files that only they needed.

        What goes is decided by the retention of branches and tags and by the table's properties
        `history.expire.*`; `older_than` and `retain_last` take the place of the properties, for
        branches that say nothing themselves. Or name the snapshots. Time travel and change feed of
        what stays are as before. Beside writers it is safe; one that started on a snapshot which
        goes has a conflict.
        """
        return expire_snapshots(
            self._table,
            older_than=older_than,
            retain_last=retain_last,
            snapshot_ids=snapshot_ids,
            dry_run=dry_run,
            progress=progress,
        )
