"""DELETE and UPDATE: rows are found by Spark, then marked as deleted or left out of new files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyiceberg.expressions import BooleanExpression
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from typing_extensions import Unpack

from icetree.errors import InvalidInput
from icetree.filters.filter import Filter
from icetree.spark.complaints import one_line
from icetree.spark.names import as_column, as_value, column
from icetree.spark.progress import telling
from icetree.spark.read.filters import row_condition
from icetree.spark.read.listing import ORDINAL, POSITION
from icetree.spark.rows.marks import positions, write_marks
from icetree.spark.rows.target import Target, target
from icetree.spark.wap import begin
from icetree.spark.write.arrange import arranged
from icetree.spark.write.fit import cast, fit, raising_casts
from icetree.spark.write.lineage import AGE, ROW_ID
from icetree.spark.write.sink import ACTION, DELETE, KEEP, REPLACE, Sunk, sink
from icetree.spec.entry.entry import concat, to_table
from icetree.table.commit.commit import Committed
from icetree.table.commit.counts import RowCounts
from icetree.table.commit.options import CommitOptions, isolated
from icetree.table.commit.removing import emptied, removal_of_tasks

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

PLACE = (ORDINAL, POSITION)
#: What new values are called until they stand in the place of old ones.
NEW: Final = "__icetree_new_"


def delete(
    lake: SparkLake,
    name: str,
    condition: Filter | Column | None = None,
    *,
    alias: str | None = None,
    **how: Unpack[CommitOptions],
) -> Committed:
    """Delete the rows that the condition is true of, as one snapshot; all without one."""
    if condition is None:
        table = lake.table(name)
        told = isolated(how, "delete", table.properties)
        with begin(lake.spark, table, **told) as transaction:
            transaction.truncate()
            return transaction.commit()
    on = target(lake, name, "delete", condition, alias=alias, how=how)
    hit = _holds(condition, on)

    with one_line(), telling(lake.spark, f"DELETE from {name}"):
        if on.merges_on_read:
            gone = positions(on.rows().where(hit), on.plan, on.table)
            none = to_table([], on.table.metadata.shape())
            count = RowCounts(deleted=sum(map(len, gone.values())))
            return mark(on, Sunk(files=none, gone=gone, rows=count))
        acts = f.when(hit, DELETE).otherwise(KEEP)
        return _rewritten(on, lambda rows: rows.withColumn(ACTION, acts))


def update(
    lake: SparkLake,
    name: str,
    to: Mapping[str, Any],
    condition: Filter | Column | None = None,
    *,
    alias: str | None = None,
    **how: Unpack[CommitOptions],
) -> Committed:
    """Set columns of the rows that the condition is true of, as one snapshot."""
    on = target(lake, name, "update", condition, alias=alias, how=how)
    with one_line():
        values = {on.own(column): as_value(value) for column, value in to.items()}
    if not values:
        raise InvalidInput(f"table {name}: give at least one column to set")
    hit = _holds(condition, on)

    with one_line(), telling(lake.spark, f"UPDATE of {name}"):
        if on.merges_on_read:
            return mark(on, sunk(on, _updated(on.rows().where(hit), values, f.lit(True), on)))
        return _rewritten(on, lambda rows: _updated(rows, values, hit, on))


def _updated(rows: DataFrame, values: Mapping[str, Column], hit: Column, on: Target) -> DataFrame:
    """Return the rows with new values where hit."""
    # Once, since a condition may be another each time it is asked.
    rows = rows.withColumn(ACTION, f.when(hit, REPLACE).otherwise(KEEP))
    changed = f.col(ACTION) == REPLACE
    # Each in a column of its own: beside an old value both would take a type in common.
    rows = rows.withColumns({NEW + name: f.when(changed, each) for name, each in values.items()})
    types = on.assigned({name: rows.schema[NEW + name].dataType for name in values})
    with raising_casts(rows.sparkSession):
        new = {
            name: f.when(changed, cast(NEW + name, type)).otherwise(column(name))
            for name, type in types.items()
        }
        columns = [new.get(name, column(name)).alias(name) for name in on.columns]
        return rows.select(*columns, ROW_ID, AGE, *PLACE, ACTION)


def _rewritten(on: Target, acts: Callable[[DataFrame], DataFrame]) -> Committed:
    """Commit new files in place of those that hold a row which changes."""
    touched = touched_by(acts(on.rows()))
    return rewrite(on, touched, acts(on.rows(on.only(touched))))


def mark(on: Target, came: Sunk) -> Committed:
    """Commit new files, and data DVs of the rows that go; files left without rows go whole."""
    table, tasks, transaction = on.table, on.plan.tasks, on.transaction
    whole, marked = emptied(tasks, came.gone)
    with transaction:
        transaction.adopt(came.files)
        marks = transaction.adopt(
            write_marks({each: came.gone[each] for each in marked}, on.plan, table)
        )
        transaction.row_delta(
            concat([came.files, marks]),
            remove=removal_of_tasks(tasks.take(pa.array(whole, pa.int64()))),
            where=on.filter,
            tasks=tasks.take(pa.array(marked, pa.int64())),
        )
        transaction.count(came.rows)
        return transaction.commit()


def touched_by(acts: DataFrame) -> list[int]:
    """Return the files of which a row changes."""
    changing = acts.where((f.col(ACTION) != KEEP) & f.col(ORDINAL).isNotNull())
    return sorted(row[0] for row in changing.select(ORDINAL).distinct().collect())


def rewrite(on: Target, touched: list[int], acts: DataFrame, *, often: bool = False) -> Committed:
    """Commit new files in place of those that hold a row which changes.

    `acts` are all rows of the touched files, and new ones; `often` is as for `sunk`.
    """
    gone = removal_of_tasks(on.plan.tasks.take(pa.array(touched, pa.int64())))
    with on.transaction as transaction:
        came = sunk(on, acts, often=often)
        transaction.overwrite_files(gone, transaction.adopt(came.files), where=on.filter)
        transaction.count(came.rows)
        return transaction.commit()


def sunk(on: Target, acts: DataFrame, *, often: bool = False) -> Sunk:
    """Write rows that change or are kept, and gather where those stand that go.

    `often` says that a row may go more than once.
    """
    metadata = on.table.metadata
    extra = (ACTION, *PLACE, ROW_ID, AGE)
    acts = arranged(fit(acts, on.table.schema, table=str(on.table.name), extra=extra), metadata)
    store, origins = on.table.files.store, on.plan.tasks
    name = str(on.table.name)
    return sink(acts, table=name, metadata=metadata, store=store, origins=origins, often=often)


def _holds(condition: Filter | Column | None, on: Target) -> Column:
    """Return true where the condition is, and false where it is not or is not known."""
    if isinstance(condition, BooleanExpression):
        condition = row_condition(condition, on.table.schema)
    if condition is None:
        return f.lit(True)
    with one_line():
        return f.coalesce(as_column(condition), f.lit(False))
