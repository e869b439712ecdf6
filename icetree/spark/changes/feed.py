"""The change feed as a DataFrame: which rows came, went and were updated, commit by commit.

Spark's own reader does the reading. A file that came or went as a whole is a scan like any other;
rows that a data DV took are the file joined with the DV's positions, so that a file is read once
however many commits took rows from it. Only what equality deletes and position deletes of v2 took
goes through our own reader, on the executors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema, index_by_name
from pyiceberg.types import NestedField
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from icetree.codec import metadata as metadata_codec
from icetree.errors import InvalidInput
from icetree.rows.read.deletes import VECTOR_COLUMNS, Rows, read_vector
from icetree.rows.read.read import read_tasks
from icetree.spark.changes.marks import marks, spread
from icetree.spark.changes.pairs import (
    TASK_NUMBER,
    comparable,
    unchanged_dropped,
    updates_told,
)
from icetree.spark.frames import empty_frame
from icetree.spark.read.arrow import for_spark
from icetree.spark.read.listing import ORDINAL, POSITION
from icetree.spark.read.scan import dataframe
from icetree.spark.ship import shipped, shipped_metadata, unshipped
from icetree.spark.types import spark_type
from icetree.spec.schema.columns import field_paths, identifier_paths
from icetree.spec.schema.metadata_columns import IDS, METADATA_COLUMNS, under_other_name
from icetree.spec.texts import did_you_mean
from icetree.table.changes.changes import ChangePlan
from icetree.table.changes.rows import CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID, require_told
from icetree.table.point import Point
from icetree.table.scan.scan import Scan
from icetree.tree.plan.row_changes import CHANGE_TYPE, as_plan, by_those_within

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake
    from icetree.table.table import Table

_ROW_ID: Final = under_other_name(METADATA_COLUMNS["_row_id"])
_POS: Final = under_other_name(METADATA_COLUMNS["_pos"])
_STAMP: Final = (CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID)
_OTHER: Final = ("equality_deletes", "position_deletes")
#: Columns go by number while rows are compared: no name of the table can be in the way.
_COLUMN: Final = "__icetree_column_"


def changes(
    lake: SparkLake,
    name: str,
    since: Point | None = None,
    upto: Point | None = None,
    *,
    net: bool = False,
    images: bool = False,
    columns: Iterable[str] | None = None,
    on: Sequence[str] | None = None,
) -> DataFrame:
    """Return the rows that changed after `since`, up to and with `upto`, in no order.

    Beside the table's columns there are `_change_type` (INSERT, DELETE, and with `images`
    UPDATE_BEFORE and UPDATE_AFTER), `_change_ordinal` and `_commit_snapshot_id`. All means what
    it means to `table.changes().to_arrow()`: a row that a commit deletes and inserts with the
    same values has not changed, and with `net` that holds for the range as a whole. Where `on`
    names columns, an update is told by these alone.
    """
    table = lake.table(name)
    feed = _feed(lake.spark, table, table.changes(since, upto).plan(), columns, on)
    rows = _paired(feed, net=net, images=images)
    named = [f.col(f"{_COLUMN}{number}").alias(field.name) for number, field in enumerate(feed.out)]
    return rows.select(*named, *_STAMP)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Feed:
    """A change plan on a Spark session, and the columns that its rows are read with."""

    spark: SparkSession
    #: Reads what comes out, and then what rows are paired by.
    scan: Scan
    out: tuple[NestedField, ...]
    plan: ChangePlan
    location: str
    #: What tells updates: row ids first, unless columns were named, and then these fields.
    by_row_id: bool
    keys: tuple[tuple[NestedField, tuple[str, ...]], ...]

    @property
    def columns(self) -> list[str]:
        """What the columns are called among the rows."""
        return [f"{_COLUMN}{number}" for number in range(len(self.scan.columns.fields))]

    def number(self, field_id: int) -> int:
        """Return which column holds a top-level field."""
        fields = self.scan.columns.fields
        return next(at for at, field in enumerate(fields) if field.field_id == field_id)


def _feed(
    spark: SparkSession,
    table: Table,
    plan: ChangePlan,
    columns: Iterable[str] | None,
    on: Sequence[str] | None,
) -> _Feed:
    scan = table.scan(columns=columns)
    require_told(scan.columns)
    out = tuple(scan.columns.fields)
    seen = {field.field_id for field in out}
    keys = identifier_paths(table.schema) if on is None else _keys(table, on)
    needed = {field.field_id: field for field, _ in keys}
    more = [field for field in (_ROW_ID, *needed.values()) if field.field_id not in seen]
    scan.columns = Schema(*out, *more, schema_id=table.schema.schema_id)
    tasks = plan.tasks.append_column(
        TASK_NUMBER, pa.array(np.arange(plan.tasks.num_rows, dtype=np.int32))
    )
    numbered = ChangePlan(tasks=tasks, deletes=plan.deletes, pair_by=plan.pair_by)
    return _Feed(
        spark=spark,
        scan=scan,
        out=out,
        plan=numbered,
        location=table.location,
        by_row_id=on is None,
        keys=tuple(keys),
    )


def _keys(table: Table, names: Sequence[str]) -> list[tuple[NestedField, tuple[str, ...]]]:
    """Return where columns are, by their names; InvalidInput for one that is not there."""
    known = index_by_name(table.schema)
    for name in names:
        if name not in known:
            raise InvalidInput(
                f"table {table.name} has no column {name!r} to tell updates by"
                f"{did_you_mean(name, known)}"
            )
    return field_paths(table.schema, [known[name] for name in names])


# --- rows that pair ----------------------------------------------------------------------------


def _paired(feed: _Feed, *, net: bool, images: bool) -> DataFrame:
    """Return the rows that changed, read and compared; most commits need no comparing."""
    tasks = feed.plan.tasks
    both = _both_ways(tasks)
    within_commits = pc.is_in(tasks[CHANGE_ORDINAL], value_set=both)
    if net and len(pc.unique(tasks[CHANGE_TYPE])) > 1:
        rows = _rows(feed, tasks)
        if len(both):
            rows = unchanged_dropped(rows, _values(feed), scope=[f.col(CHANGE_ORDINAL)])
        rows = unchanged_dropped(rows, _values(feed), scope=[])
        return _with_images(feed, rows, scope=[]) if images else rows
    alone = tasks.filter(pc.invert(within_commits))
    parts = [_rows(feed, alone)] if alone.num_rows or not len(both) else []
    if len(both):
        scope = [f.col(CHANGE_ORDINAL)]
        rows = unchanged_dropped(
            _rows(feed, tasks.filter(within_commits)), _values(feed), scope=scope
        )
        parts.append(_with_images(feed, rows, scope=scope) if images else rows)
    return reduce(DataFrame.unionAll, parts)


def _both_ways(tasks: pa.Table) -> pa.Array:
    """Return the ordinals of commits that both deleted and inserted rows."""
    kinds = tasks.select([CHANGE_ORDINAL, CHANGE_TYPE]).group_by(CHANGE_ORDINAL)
    counted = kinds.aggregate([(CHANGE_TYPE, "count_distinct")])
    mixed = counted.filter(pc.greater(counted[f"{CHANGE_TYPE}_count_distinct"], 1))
    return mixed[CHANGE_ORDINAL].combine_chunks()


def _values(feed: _Feed) -> list[Any]:
    """Return what must be the same in rows that have not changed."""
    return [
        comparable(f.col(f"{_COLUMN}{number}"), spark_type(field.field_type))
        for number, field in enumerate(feed.out)
        if field.field_id not in IDS
    ]


def _with_images(feed: _Feed, rows: DataFrame, *, scope: list[Any]) -> DataFrame:
    row_id = f.col(f"{_COLUMN}{feed.number(_ROW_ID.field_id)}") if feed.by_row_id else None
    keys = []
    for field, path in feed.keys:
        column = f.col(f"{_COLUMN}{feed.number(field.field_id)}")
        for name in path:
            column = column.getField(name)
        keys.append(column)
    return updates_told(rows, row_id=row_id, keys=keys, scope=scope)


# --- rows that are read ------------------------------------------------------------------------


def _rows(feed: _Feed, tasks: pa.Table) -> DataFrame:
    """Return the rows of tasks, each with where it stands and what became of it."""
    by_rows = _any_of(tasks, [f"within_{name}" for name in _OTHER])
    by_dv = pc.and_not(pc.is_valid(tasks["within_dv_location"]), by_rows)
    whole = pc.invert(pc.or_(by_rows, by_dv))
    parts = [_stamped(feed, _live(feed, wave), wave) for wave in _waves(tasks.filter(whole))]
    marked = tasks.filter(by_dv)
    has_others = _any_of(marked, list(_OTHER))
    plain = marked.filter(pc.invert(has_others))
    if plain.num_rows:
        parts.append(_marked(feed, _once_each(plain), plain))
    parts += [_marked(feed, wave, wave) for wave in _waves(marked.filter(has_others))]
    rest = tasks.filter(by_rows)
    if rest.num_rows:
        parts.append(_stamped_by_task(feed, _through_python(feed, rest), rest))
    if not parts:
        return _nothing(feed)
    return reduce(DataFrame.unionAll, parts)


def _any_of(tasks: pa.Table, lists: list[str]) -> pa.ChunkedArray:
    found = [pc.greater(pc.fill_null(pc.list_value_length(tasks[name]), 0), 0) for name in lists]
    return reduce(pc.or_, found)


def _waves(tasks: pa.Table) -> Iterator[pa.Table]:
    """Yield the tasks such that no file is twice in one table: a scan has each file once."""
    while tasks.num_rows:
        first = _first_of_each(tasks)
        yield tasks.take(first)
        left = np.ones(tasks.num_rows, np.bool_)
        left[first.to_numpy()] = False
        tasks = tasks.filter(pa.array(left))


def _once_each(tasks: pa.Table) -> pa.Table:
    """Return a task for each file, without its DV: whoever joins knows which rows are meant."""
    tasks = tasks.take(_first_of_each(tasks))
    for name in VECTOR_COLUMNS:
        at = tasks.schema.get_field_index(name)
        tasks = tasks.set_column(at, name, pa.nulls(tasks.num_rows, tasks[name].type))
    return tasks


def _first_of_each(tasks: pa.Table) -> pa.Array:
    numbered = pa.table({"location": tasks["location"], "at": pa.array(np.arange(tasks.num_rows))})
    firsts = numbered.group_by("location").aggregate([("at", "min")])["at_min"]
    return firsts.combine_chunks().sort()


def _live(feed: _Feed, tasks: pa.Table) -> DataFrame:
    """Return the rows that the tasks' own deletes leave; `ORDINAL` is a row of the tasks."""
    rows = dataframe(feed.spark, feed.scan, plan=as_plan(tasks, feed.plan.deletes), located=True)
    return rows.toDF(*feed.columns, ORDINAL, POSITION)


def _stamped(feed: _Feed, rows: DataFrame, tasks: pa.Table) -> DataFrame:
    """Return rows with what became of them, which their file tells."""
    ordinals = pa.array(np.arange(tasks.num_rows, dtype=np.int32))
    facts = tasks.select([TASK_NUMBER, *_STAMP]).add_column(0, ORDINAL, ordinals)
    found = rows.join(f.broadcast(feed.spark.createDataFrame(facts)), on=ORDINAL)
    return found.select(*feed.columns, POSITION, TASK_NUMBER, *_STAMP)


def _stamped_by_task(feed: _Feed, rows: DataFrame, tasks: pa.Table) -> DataFrame:
    """Return rows with what became of them, which their task tells."""
    facts = feed.spark.createDataFrame(tasks.select([TASK_NUMBER, *_STAMP]))
    found = rows.join(f.broadcast(facts), on=TASK_NUMBER)
    return found.select(*feed.columns, POSITION, TASK_NUMBER, *_STAMP)


def _marked(feed: _Feed, files: pa.Table, tasks: pa.Table) -> DataFrame:
    """Return the rows that the DVs of tasks took, of files that each are there once."""
    at = pc.index_in(tasks["location"], value_set=files["location"].combine_chunks())
    taken = marks(
        feed.spark,
        tasks.append_column(ORDINAL, at.cast(pa.int32())),
        store=feed.scan.files.store,
        location=feed.location,
    )
    found = _live(feed, files).join(taken, on=[ORDINAL, POSITION])
    return _stamped_by_task(feed, found, tasks)


def _through_python(feed: _Feed, tasks: pa.Table) -> DataFrame:
    """Return the rows that equality deletes and position deletes took, read by our own reader."""
    store, location, deletes = feed.scan.files.store, feed.location, shipped(feed.plan.deletes)
    metadata, schema_id = shipped_metadata(feed.scan.metadata), feed.scan.schema.schema_id
    fields, names = tuple(feed.scan.columns.fields), feed.columns

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = metadata_codec.decode(metadata, file="table metadata")
        how: dict[str, Any] = {
            "store": store,
            "metadata": table,
            "schema": table.schema(schema_id),
            "threads": 1,
        }
        all_deletes = unshipped(deletes)
        for sent in (value for batch in batches for value in batch.column(0)):
            task = unshipped(sent.as_py())
            is_within = _within(task, all_deletes, how, location)
            plan = as_plan(task, all_deletes)
            for batch in read_tasks(plan, columns=Schema(*fields, _POS), **how):
                positions = batch.column(len(fields))
                kept = batch.filter(pa.array(is_within(positions.to_numpy())))
                number = pa.scalar(task[TASK_NUMBER][0].as_py(), pa.int32())
                arrays = [
                    for_spark(kept.column(at), each.field_type) for at, each in enumerate(fields)
                ]
                arrays += [kept.column(len(fields)), pa.repeat(number, kept.num_rows)]
                yield pa.RecordBatch.from_arrays(arrays, names=[*names, POSITION, TASK_NUMBER])

    schema = StructType()
    for name, field in zip(names, fields, strict=True):
        schema = schema.add(name, spark_type(field.field_type))
    return spread(feed.spark, tasks).mapInArrow(
        read, schema.add(POSITION, "long").add(TASK_NUMBER, "integer")
    )


def _within(task: pa.Table, deletes: pa.Table, how: dict[str, Any], location: str) -> Any:
    """Return a test of positions: those that the deletes to be within take."""
    [fact] = task.select(
        ["location", "record_count", *(f"within_{name}" for name in VECTOR_COLUMNS)]
    ).to_pylist()
    marked: Rows = np.zeros(0, np.int64)
    if fact["within_dv_location"] is not None:
        own = {name: fact[f"within_{name}"] for name in VECTOR_COLUMNS}
        marked = read_vector(how["store"], fact | own, location)
    found = read_tasks(as_plan(by_those_within(task), deletes), columns=Schema(_POS), **how)
    left = np.concatenate([np.zeros(0, np.int64), *(batch.column(0).to_numpy() for batch in found)])
    return lambda positions: np.isin(positions, marked) | ~np.isin(positions, left)


def _nothing(feed: _Feed) -> DataFrame:
    schema = StructType()
    for name, field in zip(feed.columns, feed.scan.columns.fields, strict=True):
        schema = schema.add(name, spark_type(field.field_type))
    schema = schema.add(POSITION, "long").add(TASK_NUMBER, "integer").add(CHANGE_TYPE, "string")
    schema = schema.add(CHANGE_ORDINAL, "integer").add(COMMIT_SNAPSHOT_ID, "long")
    return empty_frame(feed.spark, schema)
