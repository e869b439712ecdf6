"""A scan as a DataFrame: Spark's own reader on the planned files, minus what is deleted in them.

Files without deletes are one scan and files with deletes others, so that the first pay nothing.
What Spark's reader does not know (files without field ids, defaults below the top, UUIDs, Avro,
ORC, position deletes of v2) goes through our own reader, on the executors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.types import NestedField
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from icetree.rows.deletes import key_column
from icetree.rows.equality_files import require_fields_of
from icetree.rows.files import NAME_MAPPING
from icetree.rows.filter import row_filter
from icetree.rows.partition_values import partition_column
from icetree.spark.frames import arrow_frame
from icetree.spark.names import quoted
from icetree.spark.read.deleted import (
    GONE,
    KEY_PREFIX,
    marked_by_data_dvs,
    without_data_dvs,
    without_equality_deletes,
)
from icetree.spark.read.filters import row_condition
from icetree.spark.read.listing import (
    ORDINAL,
    ORDINAL_SQL,
    POSITION,
    POSITION_SQL,
    listed,
    read_listed,
)
from icetree.spark.read.plan import plan as plan_scan
from icetree.spark.read.python import read_in_python
from icetree.spark.types import is_native, reader_schema, safe_names, spark_schema
from icetree.spec.fields import ROW_ID_FIELD
from icetree.spec.locations import absolute_array
from icetree.spec.metadata_columns import (
    DELETED_FIELD,
    FILE_FIELD,
    IDS,
    LINEAGE,
    LINEAGE_IDS,
    PARTITION_FIELD,
    POS_FIELD,
    SPEC_ID_FIELD,
)
from icetree.table.scan.scan import Scan
from icetree.tree.tasks import Plan

#: Facts of its file that a row's metadata columns come from, as the columns of a small table.
_FACTS: Final = ("location", "partition_spec_id", "first_row_id", "sequence_number")
_PARTITION: Final = "__icetree_partition"
_FACT_PREFIX: Final = "__icetree_fact_"
_STORED_PREFIX: Final = "__icetree_stored_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A scan, planned, on a Spark session."""

    spark: SparkSession
    scan: Scan
    plan: Plan
    #: Whether rows also tell where they stand, as `ORDINAL` (a row of the plan) and `POSITION`.
    located: bool
    #: Whether lineage is as files store it: null where it follows from where a row stands.
    as_stored: bool = False

    @property
    def asked(self) -> tuple[NestedField, ...]:
        """The columns that come out, metadata columns among them."""
        return tuple(self.scan.columns.fields)

    @property
    def keeps_gone(self) -> bool:
        """Whether rows that are deleted come out, too, told by `_deleted`."""
        return any(field.field_id == DELETED_FIELD for field in self.asked)

    @property
    def needed(self) -> tuple[NestedField, ...]:
        """The columns of the table that are read: those asked for and those of the filter."""
        schema = self.scan.schema
        wanted = {field.field_id for field in self.asked}
        for left in self.plan.residuals:
            if not isinstance(left, AlwaysTrue):
                case = self.scan.case_sensitive
                for id in row_filter(left, schema, case_sensitive=case).field_ids:
                    path = schema.find_column_name(id) or ""
                    wanted |= {
                        field.field_id
                        for field in schema.fields
                        if path == field.name or path.startswith(field.name + ".")
                    }
        return tuple(field for field in schema.fields if field.field_id in wanted)


def dataframe(
    spark: SparkSession,
    scan: Scan,
    *,
    plan: Plan | None = None,
    located: bool = False,
    lineage_as_stored: bool = False,
) -> DataFrame:
    """Return the rows of a scan, unread.

    With `located` they also tell where they stand: `ORDINAL`, a row of the plan unless its tasks
    have a column of that name, and `POSITION`. With `lineage_as_stored`, lineage that follows
    from there may be null: to work it out costs every row a lookup.
    """
    plan = plan_scan(spark, scan) if plan is None else plan
    found = _rows(
        Reading(spark=spark, scan=scan, plan=plan, located=located, as_stored=lineage_as_stored)
    )
    return found if scan.limit is None else found.limit(scan.limit)


def _rows(reading: Reading) -> DataFrame:
    tasks = reading.plan.tasks
    if ORDINAL not in tasks.column_names:
        tasks = tasks.append_column(ORDINAL, pa.array(range(tasks.num_rows), pa.int32()))
    native = _is_native(reading)
    has_dv = pc.is_valid(tasks["dv_location"])
    has_keys = pc.greater(pc.fill_null(pc.list_value_length(tasks["equality_deletes"]), 0), 0)
    clean = pc.invert(pc.or_(has_dv, has_keys))
    parts = []
    for chosen, read in (
        (pc.and_(native, clean), _plain),
        (pc.and_(native, pc.and_not(has_dv, has_keys)), _with_data_dvs),
        (pc.and_(native, has_keys), _with_equality_deletes),
        (pc.invert(native), _through_python),
    ):
        files = tasks.filter(chosen)
        if files.num_rows:
            parts.append(read(files, reading))
    return reduce(DataFrame.unionAll, parts) if parts else _nothing(reading)


def _is_native(reading: Reading) -> pa.ChunkedArray:
    """Tell which files Spark's own reader reads as the format says."""
    tasks, metadata = reading.plan.tasks, reading.scan.metadata
    able = is_native(reading.needed) and NAME_MAPPING not in metadata.properties
    # Files may have two columns of one name then, which ids alone tell apart.
    able = able and not _names_in(metadata.schemas) & {field.name for field in LINEAGE}
    parquet = pc.equal(tasks["file_format"], "parquet")
    no_positions = pc.equal(pc.fill_null(pc.list_value_length(tasks["position_deletes"]), 0), 0)
    native = pc.and_(pc.and_(parquet, no_positions), pa.scalar(able))
    if reading.keeps_gone:
        # Only our own reader tells of each row whether a key of it is deleted.
        no_keys = pc.equal(pc.fill_null(pc.list_value_length(tasks["equality_deletes"]), 0), 0)
        native = pc.and_(native, no_keys)
    return native


def _names_in(schemas: Iterable[Mapping[str, Any]]) -> set[str]:
    return {column["name"].lower() for schema in schemas for column in schema["fields"]}


def _plain(tasks: pa.Table, reading: Reading) -> DataFrame:
    return _finished(_scanned(tasks, reading), tasks, reading)


def _with_data_dvs(tasks: pa.Table, reading: Reading) -> DataFrame:
    take = marked_by_data_dvs if reading.keeps_gone else without_data_dvs
    found = take(_scanned(tasks, reading, located=True), tasks, reading.scan)
    return _finished(found, tasks, reading)


def _with_equality_deletes(tasks: pa.Table, reading: Reading) -> DataFrame:
    scan = reading.scan
    # Spark reads a column that a file lacks as null, and would take rows with nulls away.
    require_fields_of(reading.plan.deletes, scan.files, scan.metadata)
    ids = sorted(
        {id for each in reading.plan.deletes["equality_ids"].to_pylist() for id in each or ()}
    )
    keys = {id: key_column(id, scan.metadata, scan.schema) for id in ids}
    found = _scanned(tasks, reading, located=True, more=[key.column for key in keys.values()])
    if tasks["dv_location"].null_count < tasks.num_rows:
        found = without_data_dvs(found, tasks, scan)
    found = without_equality_deletes(found, tasks, reading.plan.deletes, keys, scan)
    return _finished(found, tasks, reading)


def _scanned(
    tasks: pa.Table,
    reading: Reading,
    *,
    located: bool = False,
    more: Iterable[NestedField] = (),
) -> DataFrame:
    """Return the stored rows of the files that the filter lets through.

    Columns have the table's names; those of `more`, and lineage, have a prefix and their id.
    """
    spark, scan = reading.spark, reading.scan
    lineage = [field for field in reading.asked if field.field_id in LINEAGE_IDS]
    hidden = [*((_STORED_PREFIX, each) for each in lineage), *((KEY_PREFIX, each) for each in more)]
    fields = {field.field_id: field for field in (*reading.needed, *(x for _, x in hidden))}
    names = safe_names(fields.values(), scan.metadata)
    scan.files.require_open(tasks["location"])
    files = _listed(tasks, scan.metadata.location)
    stored = read_listed(spark, files, reader_schema(fields.values(), names))

    def column(field: NestedField, name: str) -> str:
        return f"{quoted(names[field.field_id])} AS {quoted(name)}"

    # As SQL, since every call of Spark's functions is a message to Java, and a column takes several.
    columns = [column(field, field.name) for field in reading.needed]
    columns += [column(field, f"{prefix}{field.field_id}") for prefix, field in hidden]
    if located or reading.located or _made_up(reading):
        columns += [f"{ORDINAL_SQL} AS {ORDINAL}", f"{POSITION_SQL} AS {POSITION}"]
    found = stored.selectExpr(*columns)
    codes = pc.unique(tasks["residual"]).to_pylist()
    if all(isinstance(reading.plan.residuals[code], AlwaysTrue) for code in codes):
        return found
    condition = row_condition(scan.where, scan.schema, case_sensitive=scan.case_sensitive)
    return found if condition is None else found.where(condition)


def _listed(tasks: pa.Table, table_location: str) -> pa.Table:
    locations = absolute_array(tasks["location"], table_location)
    return listed(locations, tasks["file_size_in_bytes"], tasks[ORDINAL])


def _made_up(reading: Reading) -> list[NestedField]:
    """Return the columns asked for that no file has in full."""
    stored = LINEAGE_IDS if reading.as_stored else frozenset()
    return [field for field in reading.asked if field.field_id in IDS - stored]


def _finished(found: DataFrame, tasks: pa.Table, reading: Reading) -> DataFrame:
    """Return the columns that come out, metadata columns worked out."""
    made_up = _made_up(reading)
    if made_up:
        found = found.join(f.broadcast(_facts(tasks, reading)), on=ORDINAL)
    if reading.keeps_gone and GONE not in found.columns:
        found = found.withColumn(GONE, f.lit(False))
    columns = [
        f"{_made(field) if field in made_up else _stored(field)} AS {quoted(field.name)}"
        for field in reading.asked
    ]
    if reading.located:
        columns += [ORDINAL, POSITION]
    return found.selectExpr(*columns)


def _facts(tasks: pa.Table, reading: Reading) -> DataFrame:
    facts = tasks.select([ORDINAL, *_FACTS])
    location = reading.scan.metadata.location
    full = absolute_array(facts["location"], location)
    facts = facts.set_column(1, "location", full)
    facts = facts.rename_columns([ORDINAL, *(_FACT_PREFIX + name for name in _FACTS)])
    for field in reading.asked:
        if field.field_id == PARTITION_FIELD:
            shape = reading.scan.metadata.shape(reading.scan.schema.schema_id)
            facts = facts.append_column(_PARTITION, partition_column(tasks, shape))
    return arrow_frame(reading.spark, facts)


def _stored(field: NestedField) -> str:
    hidden = field.field_id in LINEAGE_IDS
    return f"{_STORED_PREFIX}{field.field_id}" if hidden else quoted(field.name)


def _made(field: NestedField) -> str:
    fact = {name: _FACT_PREFIX + name for name in _FACTS}
    plain = {
        FILE_FIELD: fact["location"],
        POS_FIELD: POSITION,
        DELETED_FIELD: GONE,
        SPEC_ID_FIELD: fact["partition_spec_id"],
        PARTITION_FIELD: _PARTITION,
    }
    if field.field_id in plain:
        return plain[field.field_id]
    stored = _stored(field)
    if field.field_id == ROW_ID_FIELD:
        return f"coalesce({stored}, {fact['first_row_id']} + {POSITION})"
    return f"coalesce({stored}, {fact['sequence_number']})"


def _through_python(tasks: pa.Table, reading: Reading) -> DataFrame:
    return read_in_python(reading.spark, reading.scan, reading.plan, tasks, located=reading.located)


def _nothing(reading: Reading) -> DataFrame:
    schema = spark_schema(reading.asked)
    for field in schema:
        field.nullable = True
    if reading.located:
        schema = schema.add(ORDINAL, "integer").add(POSITION, "long")
    return reading.spark.createDataFrame([], schema)
