"""Overwriting by a condition: rows that it is true of go, these come, in one snapshot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import BooleanExpression
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from icetree.filters.filter import Filter
from icetree.spark.complaints import one_line
from icetree.spark.names import as_column
from icetree.spark.read.condition import condition_filter
from icetree.spark.read.filters import row_condition
from icetree.spark.read.scan import dataframe
from icetree.spark.rows.marks import positions, write_marks
from icetree.spark.write.arrange import arranged
from icetree.spark.write.sink import sink
from icetree.spec.entry.entry import concat
from icetree.spec.metadata.metadata import TableMetadata
from icetree.table.commit.commit import Committed
from icetree.table.commit.counts import RowCounts, rows_in
from icetree.table.commit.removing import removal_of_tasks
from icetree.table.scan.planning import planner
from icetree.table.scan.scan import Scan
from icetree.table.table import Table
from icetree.table.transaction import Transaction
from icetree.tree.plan.tasks import Plan

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake


@dataclass(frozen=True, slots=True, kw_only=True)
class _Going:
    """The rows that go: all of some files, and some of others."""

    #: What they are told by to others that commit.
    filter: BooleanExpression
    #: The same as a test of rows; none where all match.
    condition: Column | None
    #: Files to look into, and the scan that does.
    scan: Scan
    partial: Plan
    #: Files that go without a look.
    whole: pa.Table


def overwrite(
    lake: SparkLake,
    table: Table,
    transaction: Transaction,
    rows: DataFrame,
    where: Filter | Column,
    *,
    ref: str | None,
    metadata: TableMetadata,
    strict: bool,
) -> Committed:
    """Replace the rows that match by others, all of which must match too where it is `strict`.

    Text and a column mean what they mean to Spark, an expression what it means to a scan. `ref` is the branch
    to read, none for main, and `metadata` the table's as writers are to see it.
    """
    if isinstance(where, BooleanExpression):
        going = _by_filter(table, where, ref)
    else:
        with one_line():
            going = _by_condition(lake, table, as_column(where), ref)
    if strict and going.condition is not None:
        refusal = (
            f"icetree.errors.InvalidInput: table {table.name}: a new row does not match {_text(where)}, "
            "so it would stay when the same is overwritten again: filter the rows first"
        )
        fits = f.when(going.condition, True).otherwise(f.raise_error(refusal))
        rows = rows.alias(table.name.name).where(fits)
    store = table.files.store
    removed, partial = removal_of_tasks(going.whole), going.partial
    with transaction:
        name = str(table.name)
        made = sink(arranged(rows, metadata), table=name, metadata=metadata, store=store)
        written = transaction.adopt(made.files)
        counted = made.rows + RowCounts(deleted=rows_in(going.whole))
        if partial.tasks.num_rows:
            found = dataframe(lake.spark, going.scan, plan=partial, located=True)
            if going.condition is not None:
                found = found.alias(table.name.name).where(going.condition)
            gone = positions(found, partial, table)
            counted += RowCounts(deleted=sum(map(len, gone.values())))
            marks = transaction.adopt(write_marks(gone, partial, table))
            transaction.row_delta(
                concat([written, marks]), remove=removed, where=going.filter, tasks=partial.tasks
            )
        elif isinstance(where, BooleanExpression):
            transaction.overwrite(where, written, strict=strict)
        else:
            transaction.overwrite_files(removed, written, where=going.filter)
        transaction.count(counted)
        return transaction.commit()


def _text(where: Filter | Column) -> str:
    return str(where).removeprefix("Column<'").removesuffix("'>")


def _by_filter(table: Table, where: BooleanExpression, ref: str | None) -> _Going:
    scan = table.scan(at=ref)
    plan = _planned(table, scan, where)
    whole = plan.match_whole()
    return _Going(
        filter=where,
        condition=row_condition(where, table.schema),
        scan=scan,
        partial=replace(plan, tasks=plan.tasks.filter(pc.invert(whole))).unfiltered(),
        whole=plan.tasks.filter(whole),
    )


def _by_condition(lake: SparkLake, table: Table, condition: Column, ref: str | None) -> _Going:
    def filter_for(holds: Column) -> BooleanExpression:
        return condition_filter(lake.spark, table.schema, holds, alias=table.name.name)

    predicate, scan = filter_for(condition), table.scan(at=ref)
    plan = _planned(table, scan, predicate)
    # A filter keeps more files than it must. Where none is kept for rows that the condition is
    # not true of, it is true of all.
    others = _planned(table, scan, filter_for(~condition | condition.isNull())).tasks
    partial = pc.is_in(plan.tasks["location"], others["location"].combine_chunks())
    return _Going(
        filter=predicate,
        condition=condition,
        scan=scan,
        partial=replace(plan, tasks=plan.tasks.filter(partial)).unfiltered(),
        whole=plan.tasks.filter(pc.invert(partial)),
    )


def _planned(table: Table, scan: Scan, predicate: BooleanExpression) -> Plan:
    return planner(
        table.files, table.metadata, scan.snapshot, predicate, stats_columns=True
    ).whole()
