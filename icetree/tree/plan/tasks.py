"""What planning comes to: tasks and deletes as Arrow tables, and what was looked at for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, BooleanExpression

from icetree.spec.entry.entry import BASE_SCHEMA, POSITION
from icetree.spec.short import short
from icetree.spec.spelled import spelled
from icetree.tree.live import LEAF
from icetree.tree.plan.deletes import DATA_DV
from icetree.tree.splits import DEFAULT_SIZES, SplitSizes, splits

#: Columns of a task that its data file's entry has.
FILE_COLUMNS: Final = (
    "location",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "partition_spec_id",
    "sort_order_id",
    "sequence_number",
    "file_sequence_number",
    "first_row_id",
    "split_offsets",
    "key_metadata",
)
#: Columns of a delete file that a task points to.
_DELETE_COLUMNS: Final = (
    "content_type",
    "location",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "partition_spec_id",
    "sequence_number",
    "referenced_file",
    "split_offsets",
    "key_metadata",
    "equality_ids",
)
#: Columns of `Plan.tasks`; stats columns follow where they were asked for.
TASK: Final = pa.schema(
    [BASE_SCHEMA.field(name) for name in FILE_COLUMNS]
    + [pa.field(LEAF, pa.string()), pa.field(POSITION, pa.int64())]
    + list(DATA_DV)
    + [
        pa.field("equality_deletes", pa.list_(pa.int32())),
        pa.field("position_deletes", pa.list_(pa.int32())),
        pa.field("residual", pa.int32()),
    ]
)
#: Columns of `Plan.deletes`.
DELETES: Final = pa.schema([BASE_SCHEMA.field(name) for name in _DELETE_COLUMNS])


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """What planning looked at. Entries of row groups that were never read count nowhere."""

    data_leaves_total: int = 0
    data_leaves_read: int = 0
    data_leaves_skipped: int = 0
    delete_leaves_total: int = 0
    delete_leaves_read: int = 0
    delete_leaves_skipped: int = 0
    root_entries_scanned: int = 0
    root_entries_skipped: int = 0
    leaf_entries_scanned: int = 0
    leaf_entries_skipped: int = 0
    data_files: int = 0
    delete_files: int = 0
    dvs: int = 0

    __repr__ = short


@spelled
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan:
    """The data files to read and what to do with their rows."""

    #: One row a data file, as `TASK` tells; the last columns point into the two lists below.
    tasks: pa.Table
    #: Equality deletes and position delete files that some task needs, as `DELETES` tells.
    deletes: pa.Table
    #: What is left to check on rows; a task's `residual` is a row number here.
    residuals: list[BooleanExpression]
    metrics: Metrics

    def __repr__(self) -> str:
        skipped = self.metrics.data_leaves_skipped
        return f"Plan(files={self.tasks.num_rows}, delete_files={self.deletes.num_rows}, data_leaves_skipped={skipped})"

    def match_whole(self) -> pa.ChunkedArray:
        """Tell of which files every row matches the filter."""
        sure = [code for code, left in enumerate(self.residuals) if isinstance(left, AlwaysTrue)]
        return pc.is_in(self.tasks["residual"], pa.array(sure, pa.int32()))

    def unfiltered(self) -> Plan:
        """Return the plan for whoever tests rows itself.

        Who wants rows that do not match, too, needs a plan of `every_row`: it has their deletes.
        """
        return replace(self, residuals=[AlwaysTrue() for _ in self.residuals])

    def splits(
        self,
        *,
        target_bytes: int = DEFAULT_SIZES.target_bytes,
        open_cost_bytes: int = DEFAULT_SIZES.open_cost_bytes,
        lookback: int = DEFAULT_SIZES.lookback,
    ) -> pa.Table:
        """Return the tasks as shares of work of about one size, as `tree.splits.SPLIT` tells.

        Large files are cut at their `split_offsets`, small ones are packed: every byte of every
        file is in one range of one split.
        """
        sizes = SplitSizes(
            target_bytes=target_bytes, open_cost_bytes=open_cost_bytes, lookback=lookback
        )
        return splits(self.tasks, self.deletes, sizes)
