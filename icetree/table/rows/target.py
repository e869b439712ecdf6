"""The rows of a table that a statement may change: planned, and read with where they stand."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, UnknownType

from icetree.rows.read.deletes import Rows
from icetree.rows.read.read import read_by_task
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.properties.names import MODE, MODES
from icetree.spec.properties.values import choice
from icetree.spec.schema.metadata_columns import METADATA_COLUMNS, stored_lineage, under_other_name
from icetree.spec.schema.shape import Shape
from icetree.table.commit.counts import rows_in
from icetree.table.scan.planning import planner
from icetree.tree.plan.tasks import Plan

if TYPE_CHECKING:
    from icetree.table.transaction import Transaction

#: Where a row stands in its file.
POSITION: Final = under_other_name(METADATA_COLUMNS["_pos"])


@dataclass(frozen=True, kw_only=True)
class Target:
    """A table as a statement finds it."""

    transaction: Transaction
    #: `delete`, `update` or `merge`, as table properties name them.
    verb: str
    #: What files are chosen by, and what others that commit are told.
    filter: BooleanExpression = field(default_factory=AlwaysTrue)

    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata, as new files are to see it."""
        return self.transaction.metadata

    @cached_property
    def shape(self) -> Shape:
        """What the table's columns are."""
        return self.metadata.shape()

    @property
    def fields(self) -> tuple[NestedField, ...]:
        """The columns that files hold."""
        return tuple(
            each
            for each in self.shape.schema.fields
            if not isinstance(each.field_type, UnknownType)
        )

    @property
    def lineage(self) -> tuple[NestedField, ...]:
        """The columns of a row's lineage: its id, and its age."""
        return stored_lineage(self.shape.schema)

    @property
    def merges_on_read(self) -> bool:
        """Whether rows are marked as deleted, instead of files rewritten."""
        name = MODE.format(self.verb)
        return choice(self.metadata.properties, name, MODES, default=MODES[0]) == MODES[0]

    @cached_property
    def plan(self) -> Plan:
        """The files that may hold rows which the filter lets through."""
        return self._planned(every_row=False)

    @cached_property
    def _whole_plan(self) -> Plan:
        """The same files, with what is needed to read those of their rows that do not match."""
        plan = self._planned(every_row=True)
        order = pc.index_in(
            self.plan.tasks["location"], value_set=plan.tasks["location"].combine_chunks()
        )
        return replace(plan, tasks=plan.tasks.take(order)).unfiltered()

    def rows_in(self, tasks: Sequence[int]) -> int | None:
        """Return how many rows files hold; None where only a look at them would tell."""
        return rows_in(self.plan.tasks.take(pa.array(tasks, pa.int64())))

    def _planned(self, *, every_row: bool) -> Plan:
        return planner(
            self.transaction.table_files,
            self.metadata,
            self.transaction.snapshot,
            self.filter,
            stats_columns=True,
            every_row=every_row,
        ).whole()

    def read(
        self,
        names: Collection[str] | None = None,
        *,
        lineage: bool = False,
        tasks: Sequence[int] | None = None,
        picked: Mapping[int, Rows] | None = None,
        every_row: bool = False,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield rows file by file: columns by name, lineage where asked for, last the position.

        Each batch comes after the number of its file in the plan. All columns come without
        `names`, and rows of all files without `tasks`. Of files in `picked` only the rows at these
        positions come, of others none; with `every_row` also rows that the filter does not let
        through.
        """
        fields = [each for each in self.fields if names is None or each.name in names]
        columns = Schema(*fields, *(self.lineage if lineage else ()), POSITION)
        plan = self._whole_plan if every_row else self.plan
        if picked is not None:
            plan = plan.unfiltered()
        if tasks is not None:
            plan = replace(plan, tasks=plan.tasks.take(pa.array(tasks, pa.int64())))
        found = read_by_task(
            plan,
            store=self.transaction.table_files.store,
            metadata=self.metadata,
            columns=columns,
            schema=self.shape.schema,
            picked=picked,
        )
        with closing(found):
            for number, batch in found:
                yield number if tasks is None else tasks[number], batch


def positions_of(batch: pa.RecordBatch) -> Rows:
    """Return where the rows of a batch stand in their file."""
    found: Rows = batch.column(batch.num_columns - 1).to_numpy(zero_copy_only=False)
    return found.astype(np.int64, copy=False)
