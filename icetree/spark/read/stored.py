"""The stored rows of data files, with what is known of each file: in one of two ways.

Where Spark's internals are at hand, a relation of ours asks for files when a query runs and has facts
of a file as its partition values. Otherwise files are listed through a folder, and facts are joined.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

import pyarrow as pa
from pyiceberg.types import NestedField
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from icetree.rows.read.partition_values import partition_column
from icetree.spark.frames import arrow_frame
from icetree.spark.names import quoted
from icetree.spark.read.addresses import address
from icetree.spark.read.ask import known_files, planned_files
from icetree.spark.read.checksums import reader_options
from icetree.spark.read.constant import constant_fields
from icetree.spark.read.deletes.applying import APPLYING, texts
from icetree.spark.read.deletes.deleted import KEY_PREFIX, marked_by_data_dvs
from icetree.spark.read.deletes.marks import is_marked
from icetree.spark.read.facts import FACT, FACTS, LAST, MARKS, Facts
from icetree.spark.read.internals import ROW_INDEX, Internals
from icetree.spark.read.listing import (
    GONE,
    ORDINAL,
    ORDINAL_SQL,
    POSITION,
    POSITION_SQL,
    listed,
    read_listed,
)
from icetree.spark.read.reading import Reading
from icetree.spark.session import make_room
from icetree.spark.types import reader_schema, safe_names
from icetree.spec.fields import LAST_UPDATED_SEQUENCE_NUMBER_FIELD, ROW_ID_FIELD
from icetree.spec.locations import absolute_array
from icetree.spec.schema.metadata_columns import FILE_FIELD, PARTITION_FIELD, SPEC_ID_FIELD

STORED_PREFIX: Final = "__icetree_stored_"
PARTITION: Final = "__icetree_partition"
#: The fact that each metadata column takes.
_TOLD_BY: Final = {
    FILE_FIELD: "location",
    SPEC_ID_FIELD: "partition_spec_id",
    ROW_ID_FIELD: "first_row_id",
    LAST_UPDATED_SEQUENCE_NUMBER_FIELD: "sequence_number",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What rows have beside the columns that are asked for."""

    #: `ORDINAL` and `POSITION`.
    located: bool
    #: `GONE`.
    marked: bool
    #: Columns of the table.
    more: tuple[NestedField, ...] = ()
    #: Deletes that `APPLYING` tells of, as `applying.numbered` gives them.
    equality: pa.Table | None = None


class Stored(Protocol):
    """Gives the stored rows of files; columns have the table's names, those of `more`, and lineage,
    have a prefix and their id."""

    #: Whether `GONE` comes by a join, below which Spark moves conditions of others.
    joins: ClassVar[bool]

    @property
    def is_planned(self) -> bool:
        """Whether files are known before a query runs."""

    def rows(self, reading: Reading, beside: Beside) -> DataFrame:
        """Return the rows that pass the filter.

        Where columns are to be made up, they have the facts that it takes.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Files handed over as a list, with facts and marks joined to their rows."""

    joins: ClassVar[bool] = True
    is_planned: ClassVar[bool] = True

    tasks: pa.Table
    #: Those that tasks name.
    deletes: pa.Table

    def rows(self, reading: Reading, beside: Beside) -> DataFrame:
        """See `Stored`."""
        columns = Columns(reading, beside.more)
        scan, tasks = reading.scan, self.tasks
        scan.files.require_open(tasks["location"])
        full = absolute_array(tasks["location"], scan.metadata.location)
        files = listed(full, tasks["file_size_in_bytes"], tasks[ORDINAL])
        options = reader_options(scan.metadata.properties)
        stored = read_listed(reading.spark, files, columns.schema, options)
        place = [f"{ORDINAL_SQL} AS {ORDINAL}", f"{POSITION_SQL} AS {POSITION}"]
        made_up = bool(reading.made_up) or beside.equality is not None
        found = stored.selectExpr(
            *columns.sql, *(place if beside.located or beside.marked or made_up else ())
        )
        found = _tested(found, reading)
        if beside.marked:
            found = marked_by_data_dvs(found, tasks, scan)
        facts = f.broadcast(self._facts(reading, beside.equality)) if made_up else None
        return found if facts is None else found.join(facts, on=ORDINAL)

    def _facts(self, reading: Reading, equality: pa.Table | None) -> DataFrame:
        tasks, scan = self.tasks, reading.scan
        facts = tasks.select([ORDINAL, *FACTS])
        full = absolute_array(facts["location"], scan.metadata.location)
        facts = facts.set_column(1, "location", full)
        facts = facts.rename_columns([ORDINAL, *map(FACT.format, FACTS)])
        if any(field.field_id == PARTITION_FIELD for field in reading.asked):
            shape = scan.metadata.shape(scan.schema.schema_id)
            facts = facts.append_column(PARTITION, partition_column(tasks, shape))
        if equality is not None:
            facts = facts.append_column(APPLYING, texts(tasks, self.deletes, equality))
        return arrow_frame(reading.spark, facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """Files that a relation asks for when a query runs, with facts as partition values."""

    joins: ClassVar[bool] = False

    java: Internals
    #: Those that are planned already; None to plan when asked.
    tasks: pa.Table | None = None
    deletes: pa.Table | None = None

    @property
    def is_planned(self) -> bool:
        """See `Stored`."""
        return self.tasks is not None

    def rows(self, reading: Reading, beside: Beside) -> DataFrame:
        """See `Stored`."""
        scan, lazy = reading.scan, not self.is_planned
        columns = Columns(reading, beside.more, constant=lazy)
        asked = {field.field_id for field in reading.made_up}
        partition = PARTITION_FIELD in asked
        facts = Facts(
            scan=scan,
            ordinals=beside.located,
            plain=tuple(name for id, name in _TOLD_BY.items() if id in asked),
            partition=partition,
            constant=tuple(columns.constant.items()),
            equality=beside.equality,
            marks=beside.marked,
        )
        files = (
            planned_files(reading.spark, scan, facts, columns.own)
            if self.tasks is None or self.deletes is None
            else known_files(self.tasks, self.deletes, facts)
        )
        found = self.java.relation(
            files,
            place=address(scan.metadata.location),
            facts=facts.schema(),
            schema=columns.schema,
            options=reader_options(scan.metadata.properties),
        )
        made = [
            *columns.sql,
            *map(FACT.format, facts.plain),
            *([ORDINAL] if beside.located else ()),
        ]
        if partition:
            made.append(f"{facts.partition_sql()} AS {PARTITION}")
        if beside.equality is not None:
            made.append(APPLYING)
        if beside.located or asked:
            made.append(f"{ROW_INDEX} AS {POSITION}")
        if beside.marked:
            make_room(reading.spark, reading.fields)
            found = found.withColumn(GONE, is_marked(self.java, MARKS, LAST, ROW_INDEX))
            made.append(GONE)
        return _tested(found.selectExpr(*made), reading)


class Columns:
    """The columns that are read from files, and what they are called."""

    def __init__(
        self, reading: Reading, more: Iterable[NestedField], *, constant: bool = False
    ) -> None:
        hidden = [
            *((STORED_PREFIX, each) for each in reading.lineage),
            *((KEY_PREFIX, each) for each in more),
        ]
        fields = {each.field_id: each for each in (*reading.needed, *(x for _, x in hidden))}
        names = safe_names(fields.values(), reading.scan.metadata)
        metadata = reading.scan.metadata
        shape = metadata.shape(reading.scan.schema.schema_id)
        live = reading.scan.spec_ids
        told = constant_fields(reading.needed, shape, live) if constant else []
        #: Columns that need not be read, for each file has one value of them.
        self.constant = {names[each.field_id]: each for each in told}
        stored = [each for each in fields.values() if each not in told]
        self.schema = reader_schema(stored, names)
        #: The table's own names, by those that columns are read under.
        self.own = {names[field.field_id]: field.name for field in reading.needed}
        # As SQL, since every call of Spark's functions is a message to Java, and a column takes several.
        self.sql = [
            f"{quoted(names[field.field_id])} AS {quoted(field.name)}" for field in reading.needed
        ]
        self.sql += [
            f"{quoted(names[field.field_id])} AS {prefix}{field.field_id}"
            for prefix, field in hidden
        ]


def _tested(rows: DataFrame, reading: Reading) -> DataFrame:
    condition = reading.condition
    return rows if condition is None else rows.where(condition)
