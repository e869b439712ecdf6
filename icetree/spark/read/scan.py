"""A scan as a DataFrame: Spark's own reader on the planned files, minus what is deleted in them.

Where it can, it plans nothing until Spark runs a query and asks for files: then the tree is pruned by
the conditions that Spark pushed down. What Spark's reader does not know (files without field ids,
defaults below the top, UUIDs, Avro, ORC, very many position deletes of v2) goes through our own reader, on the
executors. Such a table is planned at once.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import NestedField
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from icetree.rows.read.deletes import key_column
from icetree.rows.read.equality_files import require_fields_of
from icetree.spark.frames import empty_frame
from icetree.spark.names import quoted
from icetree.spark.read.deletes.applying import numbered
from icetree.spark.read.deletes.deleted import without_equality_deletes
from icetree.spark.read.facts import FACT, marked
from icetree.spark.read.internals import internals
from icetree.spark.read.listing import GONE, ORDINAL, POSITION
from icetree.spark.read.plan import plan as plan_scan
from icetree.spark.read.python import read_in_python
from icetree.spark.read.reading import Reading
from icetree.spark.read.stored import PARTITION, STORED_PREFIX, Beside, Indexed, Listed, Stored
from icetree.spark.types import spark_schema
from icetree.spec.fields import ROW_ID_FIELD
from icetree.spec.schema.metadata_columns import (
    DELETED_FIELD,
    FILE_FIELD,
    LINEAGE_IDS,
    PARTITION_FIELD,
    POS_FIELD,
    SPEC_ID_FIELD,
)
from icetree.table.scan.scan import Scan
from icetree.tree.plan.kinds import Kinds
from icetree.tree.plan.tasks import Plan
from icetree.visible import log_of

log = log_of(__name__)

_PARQUET: Final = frozenset({"parquet"})
#: Position deletes of v2 that are looked up here, where Spark is told of files; more are on executors.
_MOST_BYTES: Final = 64 * 1024 * 1024
#: True of every row; Spark moves no condition past what does not follow from the row.
_NO_WAY_PAST: Final = "spark_partition_id() >= 0"


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
    if _has_marks(kinds) and reading.why_copied is not None:
        return f"it has deleted rows, and {reading.why_copied}"
    if kinds.position_delete_bytes > _MOST_BYTES:
        return "it has very many position deletes"
    if kinds.equality_deletes and reading.keeps_gone:
        return "it has equality deletes, and rows that these delete are asked for"
    if not kinds.formats <= _PARQUET:
        return f"it has files in {', '.join(sorted(kinds.formats - _PARQUET))}"
    return None


def _lazily(spark: SparkSession, scan: Scan, *, files_only: bool) -> DataFrame:
    java = internals(spark)
    assert java is not None
    residuals = () if files_only else (scan.where,)
    reading = Reading(spark=spark, scan=scan, residuals=residuals)
    stored, kinds = Indexed(java=java), scan.kinds()
    if kinds.equality_deletes:
        # Deletes that the filter leaves are few beside files, and wait in manifests of their own.
        deletes = scan.planner().equality_deletes
        return _with_equality_deletes(stored, reading, deletes, marked=_has_marks(kinds))
    return _read(stored, reading, marked=_has_marks(kinds))


def _has_marks(kinds: Kinds) -> bool:
    return kinds.data_dvs or kinds.position_delete_bytes > 0


def _planned(reading: Reading, plan: Plan) -> DataFrame:
    tasks = plan.tasks
    if ORDINAL not in tasks.column_names:
        numbers = pa.array(np.arange(tasks.num_rows, dtype=np.int32))
        tasks = tasks.append_column(ORDINAL, numbers)
    native = _is_native(tasks, plan.deletes, reading)
    has_marks = marked(tasks)
    has_keys = pc.greater(pc.fill_null(pc.list_value_length(tasks["equality_deletes"]), 0), 0)
    plain = pc.and_(native, pc.invert(has_keys))
    # What rows are joined with costs each of them: files without deletes are apart then.
    joined = internals(reading.spark) is None or reading.why_copied is not None
    groups = [plain]
    if joined:
        groups = [pc.and_(plain, pc.invert(has_marks)), pc.and_(plain, has_marks)]
    parts = []
    for chosen in groups:
        files = tasks.filter(chosen)
        if files.num_rows:
            parts.append(_read(_stored(reading, files, plan.deletes), reading, marked=_any(files)))
    files = tasks.filter(pc.and_(native, has_keys))
    if files.num_rows:
        # Spark reads a column that a file lacks as null, and would take rows with nulls away.
        require_fields_of(plan.deletes, reading.scan.files, reading.scan.metadata)
        stored = _stored(reading, files, plan.deletes)
        deletes = plan.deletes.filter(pc.is_valid(plan.deletes["equality_ids"]))
        parts.append(_with_equality_deletes(stored, reading, deletes, marked=_any(files)))
    files = tasks.filter(pc.invert(native))
    if files.num_rows:
        located = reading.located
        parts.append(read_in_python(reading.spark, reading.scan, plan, files, located=located))
    return reduce(DataFrame.unionAll, parts) if parts else _nothing(reading)


def _stored(reading: Reading, tasks: pa.Table, deletes: pa.Table) -> Stored:
    java = internals(reading.spark)
    if java is None or (_any(tasks) and reading.why_copied):
        return Listed(tasks=tasks, deletes=deletes)
    return Indexed(java=java, tasks=tasks, deletes=deletes)


def _any(tasks: pa.Table) -> bool:
    return bool(pc.any(marked(tasks)).as_py())


def _many_positions(deletes: pa.Table) -> bool:
    files = deletes.filter(pc.is_null(deletes["equality_ids"]))
    return (pc.sum(files["file_size_in_bytes"]).as_py() or 0) > _MOST_BYTES


def _is_native(tasks: pa.Table, deletes: pa.Table, reading: Reading) -> pa.ChunkedArray:
    """Tell which files Spark's own reader reads as the format says."""
    parquet = pc.equal(tasks["file_format"], "parquet")
    native = pc.and_(parquet, pa.scalar(reading.is_native))
    if internals(reading.spark) is None or reading.why_copied or _many_positions(deletes):
        named = pc.fill_null(pc.list_value_length(tasks["position_deletes"]), 0)
        native = pc.and_(native, pc.equal(named, 0))
    if reading.keeps_gone:
        # Only our own reader tells of each row whether a key of it is deleted.
        no_keys = pc.equal(pc.fill_null(pc.list_value_length(tasks["equality_deletes"]), 0), 0)
        native = pc.and_(native, no_keys)
    return native


def _read(stored: Stored, reading: Reading, *, marked: bool) -> DataFrame:
    found = stored.rows(reading, Beside(located=reading.located, marked=marked))
    return _finished(_left(found, reading, marked=marked, joined=stored.joins), reading)


def _left(rows: DataFrame, reading: Reading, *, marked: bool, joined: bool) -> DataFrame:
    """Return the rows that are not marked as gone, or all if those are asked for."""
    if not marked:
        return rows.withColumn(GONE, f.lit(False)) if reading.keeps_gone else rows
    if reading.keeps_gone:
        return rows
    # Below a join a condition of somebody else's would meet rows that are gone, and may fail for one.
    stays = f"NOT {GONE} AND {_NO_WAY_PAST}" if joined else f"NOT {GONE}"
    return rows.where(stays)


def _with_equality_deletes(
    stored: Stored, reading: Reading, deletes: pa.Table, *, marked: bool
) -> DataFrame:
    scan, deletes = reading.scan, numbered(deletes)
    ids = sorted({id for each in deletes["equality_ids"].to_pylist() for id in each or ()})
    keys = {id: key_column(id, scan.metadata, scan.schema) for id in ids}
    beside = Beside(
        located=reading.located,
        marked=marked,
        more=tuple(key.column for key in keys.values()),
        equality=deletes,
    )
    found = stored.rows(reading, beside)
    found = _left(found, reading, marked=marked, joined=stored.joins)
    found = without_equality_deletes(found, deletes, keys, scan)
    # What is planned when it is read needs the conditions of others, by which files are left out.
    return _finished(found.where(_NO_WAY_PAST) if stored.is_planned else found, reading)


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
