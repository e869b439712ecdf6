"""DELETE and UPDATE: rows are found by Spark, then marked as deleted or left out of new files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from icetree.errors import InvalidInput
from icetree.spark.arrange import arranged
from icetree.spark.fit import fit
from icetree.spark.listing import ORDINAL, POSITION
from icetree.spark.names import quoted
from icetree.spark.sink import ACTION, DELETE, KEEP, REPLACE, Sunk, sink
from icetree.spark.target import LINEAGE, Target, target
from icetree.spark.trouble import one_line
from icetree.spark.write import commit_written
from icetree.spec.entry import concat
from icetree.table.commit import Committed
from icetree.table.delete_files import write_data_vectors
from icetree.table.removing import removal_of_tasks
from icetree.table.transaction import Transaction

if TYPE_CHECKING:
    from icetree.spark.lake import Lake

PLACE = (ORDINAL, POSITION)


def delete(
    lake: Lake, name: str, condition: str | Column | None = None, *, branch: str | None = None
) -> Committed:
    """Delete the rows that the condition is true of, as one snapshot; all without one."""
    on = target(lake, name, "delete", condition, branch=branch)
    rows = on.rows()
    with one_line():
        hit = f.lit(True) if condition is None else _column(condition)
        if on.merges_on_read:
            acts = rows.where(hit).select(*PLACE, f.lit(DELETE).alias(ACTION))
        else:
            action = f.when(f.coalesce(hit, f.lit(False)), DELETE).otherwise(KEEP)
            acts = rows.withColumn(ACTION, action)
    return carry_out(on, acts)


def update(
    lake: Lake,
    name: str,
    to: Mapping[str, str | Column],
    condition: str | Column | None = None,
    *,
    branch: str | None = None,
) -> Committed:
    """Set columns of the rows that the condition is true of, as one snapshot."""
    on = target(lake, name, "update", condition, branch=branch)
    rows = on.rows()
    values = {_own(column, on): _column(value) for column, value in to.items()}
    if not values:
        raise InvalidInput(f"update of {name}: give at least one column to set")
    with one_line():
        hit = f.coalesce(f.lit(True) if condition is None else _column(condition), f.lit(False))
        if on.merges_on_read:
            rows, hit = rows.where(hit), f.lit(True)
        changed = updated(rows, values, hit, on)
        acts = changed.withColumn(ACTION, f.when(f.col(_HIT), REPLACE).otherwise(KEEP)).drop(_HIT)
    return carry_out(on, acts)


_HIT = "__icetree_hit"


def updated(rows: DataFrame, values: Mapping[str, Column], hit: Column, on: Target) -> DataFrame:
    """Return the rows with new values where hit; a row that changes is of this commit's age."""
    age = LINEAGE[1]
    rows = rows.withColumn(_HIT, hit)
    changed = f.col(_HIT)
    columns = [
        f.when(changed, values[name]).otherwise(f.col(quoted(name))).alias(name)
        if name in values
        else f.col(quoted(name))
        for name in on.columns
    ]
    return rows.select(
        *columns,
        LINEAGE[0],
        f.when(~changed, f.col(age)).alias(age),
        *PLACE,
        _HIT,
    )


def carry_out(on: Target, acts: DataFrame, *, key: str | None = None) -> Committed:
    """Write what the actions ask for and commit it."""
    transaction = on.table.transaction(**on.how, key=key)
    if on.merges_on_read:
        return _mark(on, _sunk(on, acts), transaction)
    return _rewrite(on, acts, transaction)


def _sunk(on: Target, acts: DataFrame) -> Sunk:
    metadata = on.table.metadata
    places = (ACTION, *PLACE)
    if any(name in acts.columns for name in on.columns):
        acts = fit(acts, on.table.schema, table=str(on.table.name), extra=(*places, *LINEAGE))
        acts = arranged(acts, metadata)
    return sink(acts, metadata=metadata, store=on.table.files.store, keep_lineage=True)


def _mark(on: Target, sunk: Sunk, transaction: Transaction) -> Committed:
    """Commit new files and data DVs of the rows that go; files left without rows go whole."""
    table, tasks = on.table, on.plan.tasks
    emptied, marked = _emptied(tasks, sunk)
    vectors = write_data_vectors(
        on.named(marked),
        tasks=tasks,
        metadata=table.metadata,
        store=table.files.store,
        deletes=on.plan.deletes,
    )
    written = concat([sunk.files, vectors])
    gone = removal_of_tasks(tasks.take(pa.array(emptied, pa.int64())))
    return commit_written(
        transaction,
        table,
        written,
        lambda: transaction.row_delta(
            written,
            remove=gone,
            where=on.filter,
            tasks=tasks.take(pa.array(list(marked), pa.int64())),
        ),
    )


def _emptied(tasks: pa.Table, sunk: Sunk) -> tuple[list[int], dict[int, Any]]:
    """Return the files of which no row is left, and the rows that go from the others."""
    counts = tasks["record_count"]
    marked_before = pc.fill_null(tasks["dv_cardinality"], 0)
    emptied = [
        ordinal
        for ordinal, rows in sunk.gone.items()
        if len(rows) + marked_before[ordinal].as_py() >= counts[ordinal].as_py()
    ]
    return emptied, {o: rows for o, rows in sunk.gone.items() if o not in set(emptied)}


def _rewrite(on: Target, acts: DataFrame, transaction: Transaction) -> Committed:
    """Commit new files in place of those that hold a row which changes."""
    table = on.table
    touched = sorted(
        row[0]
        for row in acts.where(f.col(ACTION) != KEEP).select(ORDINAL).distinct().collect()
        if row[0] is not None
    )
    of_touched = f.col(ORDINAL).isNull() | f.col(ORDINAL).isin(touched)
    sunk = _sunk(on, acts.where(of_touched))
    gone = removal_of_tasks(on.plan.tasks.take(pa.array(touched, pa.int64())))
    return commit_written(
        transaction,
        table,
        sunk.files,
        lambda: transaction.overwrite_files(sunk.files, gone, where=on.filter),
    )


def _own(name: str, on: Target) -> str:
    alike = [own for own in on.columns if own == name] or [
        own for own in on.columns if own.lower() == name.lower()
    ]
    if len(alike) != 1:
        known = ", ".join(on.columns)
        raise InvalidInput(f"{on.table.name} has no column {name!r} to set; there are: {known}")
    return alike[0]


def _column(value: str | Column) -> Column:
    return f.expr(value) if isinstance(value, str) else value
