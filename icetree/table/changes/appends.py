"""An incremental scan: only rows of files that append snapshots of a range added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue

from icetree.filters.filter import Filter, parse_filter
from icetree.filters.text import predicate_text
from icetree.rows.read.read import read_tasks
from icetree.spec.texts import shortened
from icetree.table.changes.changes import ChangeRange
from icetree.table.frames import Frames
from icetree.table.point import Point
from icetree.tree.plan.row_changes import added_tasks
from icetree.tree.plan.tasks import Metrics, Plan
from icetree.tree.prune.bind import bind
from icetree.tree.prune.prune import may_match, residuals

if TYPE_CHECKING:
    from icetree.table.table import Table


class AppendScan(Frames):
    """What was appended. Rows are as they were appended: deletes that came since do not count."""

    def __init__(
        self,
        table: Table,
        *,
        since: Point | None = None,
        upto: Point | None = None,
        where: Filter | None = None,
        columns: Iterable[str] | None = None,
        case_sensitive: bool = True,
    ) -> None:
        self._table = table
        self._changes = ChangeRange(table, since=since, upto=upto)
        self.snapshots = self._changes.snapshots
        self.where = AlwaysTrue() if where is None else parse_filter(where)
        self.case_sensitive = case_sensitive
        self._scan = table.scan(columns=columns, case_sensitive=case_sensitive)

    def __repr__(self) -> str:
        where = (
            "" if isinstance(self.where, AlwaysTrue) else f", where={predicate_text(self.where)!r}"
        )
        ids = [snapshot.snapshot_id for snapshot in self.snapshots]
        return f"AppendScan({str(self._table.name)!r}{where}, snapshots={shortened(ids)})"

    @property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return self._scan.arrow_schema

    @cached_property
    def _plan(self) -> Plan:
        shape = self._table.metadata.shape()
        bound = bind(self.where, shape, case_sensitive=self.case_sensitive)
        files = self._changes.appended()
        files = files.filter(may_match(files, bound))
        found = added_tasks(files, shape)
        codes, left = residuals(files, bound)
        at = found.tasks.schema.get_field_index("residual")
        return Plan(
            tasks=found.tasks.set_column(at, "residual", codes),
            deletes=found.deletes,
            residuals=left,
            metrics=Metrics(data_files=files.num_rows),
        )

    def plan(self) -> Plan:
        """Return the files to read and what is left to check on rows."""
        return self._plan

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, a batch at a time, in the order of the plan."""
        return read_tasks(
            self._plan,
            store=self._table.files.store,
            metadata=self._table.metadata,
            columns=self._scan.columns,
            schema=self._scan.schema,
            case_sensitive=self.case_sensitive,
        )
