"""Overwriting by a filter: rows that match go, these come, in one snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from icetree.spark.read.filters import row_condition
from icetree.spark.read.scan import dataframe
from icetree.spark.rows.marks import positions, write_marks
from icetree.spark.write.arrange import arranged
from icetree.spark.write.sink import discard, sink
from icetree.spark.write.writer import commit_written
from icetree.spec.entry import concat
from icetree.spec.snapshot import MAIN
from icetree.table.commit import Committed
from icetree.table.filters import parse_filter
from icetree.table.planning import planner
from icetree.table.removing import removal_of_tasks
from icetree.table.table import Table
from icetree.table.transaction import Filter, Transaction
from icetree.tree.tasks import Plan

if TYPE_CHECKING:
    from icetree.spark.lake import Lake


def overwrite(
    lake: Lake,
    table: Table,
    transaction: Transaction,
    rows: DataFrame,
    where: Filter,
    *,
    branch: str,
) -> Committed:
    """Replace the rows that match by others, all of which must match too."""
    predicate = parse_filter(where)
    condition = row_condition(predicate, table.schema)
    metadata, store = table.metadata, table.files.store
    scan = table.scan(predicate, ref=None if branch == MAIN else branch)
    plan = planner(table.files, metadata, scan.snapshot, predicate, stats_columns=True).whole()
    if condition is not None:
        refusal = (
            f"icetree.errors.InvalidInput: {table.name}: a new row does not match {where!s}, "
            "so it would stay when the same is overwritten again: filter the rows first"
        )
        rows = rows.where(f.when(condition, True).otherwise(f.raise_error(refusal)))
    new = transaction.metadata
    written = sink(arranged(rows, new), metadata=new, store=store).files
    try:
        whole = [c for c, left in enumerate(plan.residuals) if isinstance(left, AlwaysTrue)]
        sure = pc.is_in(plan.tasks["residual"], pa.array(whole, pa.int32()))
        partial = Plan(
            tasks=plan.tasks.filter(pc.invert(sure)),
            deletes=plan.deletes,
            residuals=plan.residuals,
            metrics=plan.metrics,
        )
        if partial.tasks.num_rows:
            marks = dataframe(lake.spark, scan, plan=partial, located=True)
            written = concat(
                [written, write_marks(positions(marks, partial, table), partial, table)]
            )
    except BaseException:
        discard(written, metadata, store)
        raise

    def add() -> None:
        if partial.tasks.num_rows:
            removed = removal_of_tasks(plan.tasks.filter(sure))
            transaction.row_delta(written, remove=removed, where=predicate, tasks=partial.tasks)
        else:
            transaction.overwrite(predicate, written)

    return commit_written(transaction, table, written, add)
