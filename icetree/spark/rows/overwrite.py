"""Overwriting by a filter: rows that match go, these come, in one snapshot."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from icetree.spark.read.filters import row_condition
from icetree.spark.read.scan import dataframe
from icetree.spark.rows.marks import positions, write_marks
from icetree.spark.write.arrange import arranged
from icetree.spark.write.sink import sink
from icetree.spec.entry import concat
from icetree.spec.snapshot import MAIN
from icetree.table.commit import Committed
from icetree.table.filters import parse_filter
from icetree.table.planning import planner
from icetree.table.removing import removal_of_tasks
from icetree.table.table import Table
from icetree.table.transaction import Filter, Transaction

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
    with transaction:
        written = transaction.adopt(sink(arranged(rows, new), metadata=new, store=store).files)
        whole = plan.match_whole()
        partial = replace(plan, tasks=plan.tasks.filter(pc.invert(whole)))
        if not partial.tasks.num_rows:
            transaction.overwrite(predicate, written)
            return transaction.commit()
        gone = positions(dataframe(lake.spark, scan, plan=partial, located=True), partial, table)
        marks = transaction.adopt(write_marks(gone, partial, table))
        transaction.row_delta(
            concat([written, marks]),
            remove=removal_of_tasks(plan.tasks.filter(whole)),
            where=predicate,
            tasks=partial.tasks,
        )
        return transaction.commit()
