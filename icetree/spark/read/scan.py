"""A scan as a DataFrame: Spark's own reader on the planned files, minus what is deleted in them.

Where it can, it plans nothing until Spark runs a query and asks for files: then the tree is pruned by
the conditions that Spark pushed down. What Spark's reader does not know (files without field ids,
defaults below the top, UUIDs, Avro, ORC, position deletes of v2) goes through our own reader, on the
executors. Such a table, and one with equality deletes, is planned at once.
"""

from __future__ import annotations

import logging
from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import NestedField
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from icetree.rows.deletes import key_column
from icetree.rows.equality_files import require_fields_of
from icetree.spark.frames import empty_frame
from icetree.spark.names import quoted
from icetree.spark.read.deleted import without_equality_deletes
from icetree.spark.read.facts import FACT
from icetree.spark.read.internals import internals
from icetree.spark.read.listing import GONE, ORDINAL, POSITION
from icetree.spark.read.plan import plan as plan_scan
from icetree.spark.read.python import read_in_python
from icetree.spark.read.reading import Reading
from icetree.spark.read.stored import PARTITION, STORED_PREFIX, Indexed, Listed, Stored
from icetree.spark.types import spark_schema
from icetree.spec.fields import ROW_ID_FIELD
from icetree.spec.metadata_columns import (
    DELETED_FIELD,
    FILE_FIELD,
    LINEAGE_IDS,
    PARTITION_FIELD,
    POS_FIELD,
    SPEC_ID_FIELD,
)
from icetree.table.scan.scan import Scan
from icetree.tree.tasks import Plan

log = logging.getLogger(__name__)

_PARQUET: Final = frozenset({"parquet"})


def dataframe(
    spark: SparkSession,
    scan: Scan,
    *,
    plan: Plan | None = None,
    files_only: bool = False,
    located: bool = False,
    lineage_as_stored: bool = False,
) -> DataFrame:
    """Return the rows of a scan, unread; without a plan, planned when they are read if possible.

    With `files_only` the scan's filter chooses files alone, and whoever asks tests rows. With
    `located` rows also tell where they stand: `ORDINAL`, a row of the plan unless its tasks have a
    column of that name, and `POSITION`. With `lineage_as_stored`, lineage that follows from there may
    be null.
    """
    if plan is None and not located and _may_be_lazy(spark, scan):
        found = _lazily(spark, scan, files_only=files_only)
    else:
        plan = plan_scan(spark, scan) if plan is None else plan
        plan = plan.unfiltered() if files_only else plan
        reading = Reading(
            spark=spark,
            scan=scan,
            residuals=tuple(plan.residuals),
            located=located,
            as_stored=lineage_as_stored,
        )
        found = _planned(reading, plan)
    return found if scan.limit is None else found.limit(scan.limit)


def is_lazy(spark: SparkSession, scan: Scan) -> bool:
    """Tell whether a scan is planned when it is read, not before."""
    return internals(spark) is not None and _why_not_lazy(spark, scan) is None


def _may_be_lazy(spark: SparkSession, scan: Scan) -> bool:
    """Do as `is_lazy`, and log why a scan is not."""
    if internals(spark) is None:
        return False
    why = _why_not_lazy(spark, scan)
    if why is not None:
        log.info("%r is planned before Spark runs a query: %s", scan, why)
    return why is None


def _why_not_lazy(spark: SparkSession, scan: Scan) -> str | None:
    reading = Reading(spark=spark, scan=scan, residuals=(scan.where,))
    if not reading.is_native:
        return "Spark cannot read its columns by itself"
    kinds = scan.kinds()
    if kinds.data_dvs and reading.is_wide:
        return "it has deleted rows, and more columns than Spark generates code for"
    if kinds.other_deletes:
        return "it has equality deletes or position delete files"
    if not kinds.formats <= _PARQUET:
        return f"it has files in {', '.join(sorted(kinds.formats - _PARQUET))}"
    return None


def _lazily(spark: SparkSession, scan: Scan, *, files_only: bool) -> DataFrame:
    java = internals(spark)
    assert java is not None
    residuals = () if files_only else (scan.where,)
    reading = Reading(spark=spark, scan=scan, residuals=residuals)
    return _read(Indexed(java=java), reading, marked=scan.kinds().data_dvs)


def _planned(reading: Reading, plan: Plan) -> DataFrame:
    tasks = plan.tasks
    if ORDINAL not in tasks.column_names:
        numbers = pa.array(np.arange(tasks.num_rows, dtype=np.int32))
        tasks = tasks.append_column(ORDINAL, numbers)
    native = _is_native(tasks, reading)
    has_dv = pc.is_valid(tasks["dv_location"])
    has_keys = pc.greater(pc.fill_null(pc.list_value_length(tasks["equality_deletes"]), 0), 0)
    plain = pc.and_(native, pc.invert(has_keys))
    # What rows are joined with costs each of them: files without deletes are apart then.
    joined = internals(reading.spark) is None or reading.is_wide
    groups = [pc.and_(plain, pc.invert(has_dv)), pc.and_(plain, has_dv)] if joined else [plain]
    parts = []
    for chosen in groups:
        files = tasks.filter(chosen)
        if files.num_rows:
            marked = _has_marks(files)
            parts.append(_read(_stored(reading, files, marked=marked), reading, marked=marked))
    files = tasks.filter(pc.and_(native, has_keys))
    if files.num_rows:
        parts.append(_with_equality_deletes(files, reading, plan.deletes))
    files = tasks.filter(pc.invert(native))
    if files.num_rows:
        located = reading.located
        parts.append(read_in_python(reading.spark, reading.scan, plan, files, located=located))
    return reduce(DataFrame.unionAll, parts) if parts else _nothing(reading)


def _stored(reading: Reading, tasks: pa.Table, *, marked: bool) -> Stored:
    java = internals(reading.spark)
    if java is None or (marked and reading.is_wide):
        return Listed(tasks=tasks)
    return Indexed(java=java, tasks=tasks)


def _has_marks(tasks: pa.Table) -> bool:
    return bool(tasks["dv_location"].null_count < tasks.num_rows)


def _is_native(tasks: pa.Table, reading: Reading) -> pa.ChunkedArray:
    """Tell which files Spark's own reader reads as the format says."""
    parquet = pc.equal(tasks["file_format"], "parquet")
    no_positions = pc.equal(pc.fill_null(pc.list_value_length(tasks["position_deletes"]), 0), 0)
    native = pc.and_(pc.and_(parquet, no_positions), pa.scalar(reading.is_native))
    if reading.keeps_gone:
        # Only our own reader tells of each row whether a key of it is deleted.
        no_keys = pc.equal(pc.fill_null(pc.list_value_length(tasks["equality_deletes"]), 0), 0)
        native = pc.and_(native, no_keys)
    return native


def _read(stored: Stored, reading: Reading, *, marked: bool) -> DataFrame:
    found = stored.rows(reading, located=reading.located, marked=marked)
    return _finished(_left(found, reading, marked=marked), reading)


def _left(rows: DataFrame, reading: Reading, *, marked: bool) -> DataFrame:
    """Return the rows that are not marked as gone, or all if those are asked for."""
    if not marked:
        return rows.withColumn(GONE, f.lit(False)) if reading.keeps_gone else rows
    return rows if reading.keeps_gone else rows.where(f"NOT {GONE}")


def _with_equality_deletes(tasks: pa.Table, reading: Reading, deletes: pa.Table) -> DataFrame:
    scan = reading.scan
    # Spark reads a column that a file lacks as null, and would take rows with nulls away.
    require_fields_of(deletes, scan.files, scan.metadata)
    ids = sorted({id for each in deletes["equality_ids"].to_pylist() for id in each or ()})
    keys = {id: key_column(id, scan.metadata, scan.schema) for id in ids}
    marked = _has_marks(tasks)
    more = [key.column for key in keys.values()]
    stored = _stored(reading, tasks, marked=marked)
    found = stored.rows(reading, located=True, marked=marked, more=more)
    found = _left(found, reading, marked=marked)
    return _finished(without_equality_deletes(found, tasks, deletes, keys, scan), reading)


def _finished(found: DataFrame, reading: Reading) -> DataFrame:
    """Return the columns that come out, metadata columns worked out."""
    made_up = reading.made_up
    columns = [
        f"{_made(field) if field in made_up else _own(field)} AS {quoted(field.name)}"
        for field in reading.asked
    ]
    if reading.located:
        columns += [ORDINAL, POSITION]
    return found.selectExpr(*columns)


def _own(field: NestedField) -> str:
    hidden = field.field_id in LINEAGE_IDS
    return f"{STORED_PREFIX}{field.field_id}" if hidden else quoted(field.name)


def _made(field: NestedField) -> str:
    plain = {
        FILE_FIELD: FACT.format("location"),
        POS_FIELD: POSITION,
        DELETED_FIELD: GONE,
        SPEC_ID_FIELD: FACT.format("partition_spec_id"),
        PARTITION_FIELD: PARTITION,
    }
    if field.field_id in plain:
        return plain[field.field_id]
    stored = _own(field)
    if field.field_id == ROW_ID_FIELD:
        return f"coalesce({stored}, {FACT.format('first_row_id')} + {POSITION})"
    return f"coalesce({stored}, {FACT.format('sequence_number')})"


def _nothing(reading: Reading) -> DataFrame:
    schema = spark_schema(reading.asked)
    if reading.located:
        schema = schema.add(ORDINAL, "integer").add(POSITION, "long")
    return empty_frame(reading.spark, schema)
