"""What is known of a data file as a whole, told to Spark as its partition values.

They travel with the task that reads the file, and nowhere else.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import NestedField
from pyspark.sql import types as sql

from icetree.errors import CorruptTable
from icetree.rows.read.deletes import Deletes
from icetree.rows.read.partition_values import partition_column
from icetree.spark.read.addresses import addresses
from icetree.spark.read.arrow import for_spark
from icetree.spark.read.constant import constant_values
from icetree.spark.read.deletes.applying import APPLYING, texts
from icetree.spark.read.deletes.marks import MOST_ROWS, marks_of
from icetree.spark.read.listing import ORDINAL
from icetree.spark.types import spark_type
from icetree.spec.location import absolute
from icetree.spec.locations import absolute_array
from icetree.spec.schema.metadata_columns import partition_type
from icetree.table.scan.scan import Scan
from icetree.tree.plan.deletes import DATA_DV

#: The names of facts among a row's columns.
FACT: Final = "__icetree_fact_{}"
PARTITION: Final = "__icetree_partition_{}"
MARKS: Final = "__icetree_marks"
LAST: Final = "__icetree_last"

_TYPES: Final = {
    "location": sql.StringType(),
    "partition_spec_id": sql.IntegerType(),
    "first_row_id": sql.LongType(),
    "sequence_number": sql.LongType(),
}
#: Facts that metadata columns are made of.
FACTS: Final = tuple(_TYPES)
_AT_ONCE: Final = 8
#: Bytes of marks that are kept.
_KEEP_BYTES: Final = 128 * 1024 * 1024
#: What tells which rows of a file are gone.
_MARKING: Final = (
    "location",
    "record_count",
    *DATA_DV.names,
    "position_deletes",
)


def marked(tasks: pa.Table) -> pa.ChunkedArray:
    """Tell which files have a data DV, or position delete files that apply to them."""
    named = pc.fill_null(pc.list_value_length(tasks["position_deletes"]), 0)
    return pc.or_(pc.is_valid(tasks["dv_location"]), pc.greater(named, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Which facts rows are to have beside their own columns."""

    scan: Scan
    #: The file's number in its plan.
    ordinals: bool = False
    #: Those of `FACTS`.
    plain: tuple[str, ...] = ()
    #: The values of partition fields.
    partition: bool = False
    #: Columns of the table with one value in each file, and what each is called among the facts.
    constant: tuple[tuple[str, NestedField], ...] = ()
    #: Equality deletes, as `applying.numbered` gives them: which of them apply to it.
    equality: pa.Table | None = None
    #: Which of its rows are gone, by its data DV or by position delete files.
    marks: bool = False

    def __repr__(self) -> str:
        """Tell all that an answer depends on, beside snapshot and filter."""
        constant = tuple(name for name, _ in self.constant)
        # Which number a delete has follows from the filter that it was looked for with.
        numbers = None if self.equality is None else (self.equality.num_rows, self.scan.where)
        told = (self.ordinals, self.plain, self.partition, constant, numbers, self.marks)
        return f"Facts{told}"

    def schema(self) -> sql.StructType:
        """Return the facts as columns."""
        found = sql.StructType()
        if self.ordinals:
            found = found.add(ORDINAL, sql.IntegerType(), False)
        for name in self.plain:
            found = found.add(FACT.format(name), _TYPES[name])
        if self.partition:
            for number, field in enumerate(self._partition_fields()):
                found = found.add(PARTITION.format(number), spark_type(field.field_type))
        for name, field in self.constant:
            found = found.add(name, spark_type(field.field_type))
        if self.equality is not None:
            found = found.add(APPLYING, sql.StringType(), False)
        if self.marks:
            # Where they could be null, Spark would ask files about that.
            found = found.add(LAST, sql.LongType(), False).add(MARKS, sql.BinaryType(), False)
        return found

    def partition_sql(self) -> str:
        """Return `_partition` as SQL."""
        members = [
            f"'{_escaped(field.name)}', {PARTITION.format(number)}"
            for number, field in enumerate(self._partition_fields())
        ]
        return f"named_struct({', '.join(members)})"

    def answer(self, tasks: pa.Table, deletes: pa.Table) -> pa.Buffer:
        """Return files as an Arrow stream: their addresses and sizes, then their facts.

        Tasks and deletes are as a plan has them.
        """
        scan = self.scan
        scan.files.require_open(tasks["location"])
        full = absolute_array(tasks["location"], scan.metadata.location)
        columns = [addresses(full), tasks["file_size_in_bytes"].cast(pa.int64())]
        if self.ordinals:
            columns.append(tasks[ORDINAL].cast(pa.int32()))
        columns += [full if name == "location" else tasks[name] for name in self.plain]
        if self.partition:
            columns += self._partition(tasks)
        shape = scan.metadata.shape(scan.schema.schema_id)
        for _, field in self.constant:
            columns.append(for_spark(constant_values(tasks, field, shape), field.field_type))
        if self.equality is not None:
            columns.append(texts(tasks, deletes, self.equality))
        if self.marks:
            columns += self._marks(tasks, deletes)
        made = pa.table(columns, names=[str(number) for number in range(len(columns))])
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, made.schema) as stream:
            stream.write_table(made)
        return out.getvalue()

    def _partition_fields(self) -> tuple[Any, ...]:
        return partition_type(self.scan.metadata.shape(self.scan.schema.schema_id)).fields

    def _partition(self, tasks: pa.Table) -> list[pa.Array]:
        shape = self.scan.metadata.shape(self.scan.schema.schema_id)
        values = partition_column(tasks, shape)
        return [
            for_spark(values.field(number), field.field_type)
            for number, field in enumerate(self._partition_fields())
        ]

    def _marks(self, tasks: pa.Table, deletes: pa.Table) -> list[pa.Array]:
        """Return `LAST` and `MARKS` of each file."""
        scan, none = self.scan, marks_of(pa.array([], pa.int64()).to_numpy())
        reading = Deletes(
            files=deletes.to_pylist(),
            store=scan.files.store,
            metadata=scan.metadata,
            schema=scan.schema,
            mapping=None,
        )
        has = marked(tasks)
        facts = tasks.filter(has).select(_MARKING).to_pylist()

        def marks(fact: dict[str, Any]) -> tuple[int, bytes]:
            location = absolute(fact["location"], scan.metadata.location)
            if fact["record_count"] > MOST_ROWS:
                said = f"it is said to have {fact['record_count']} rows, more than a file can"
                raise CorruptTable(location, said)

            def made() -> tuple[int, bytes]:
                return marks_of(reading.removed_rows(fact, location))

            if fact["position_deletes"]:
                return made()
            # A vector never changes: other questions, and snapshots that still have it, need not read it again.
            key = (
                "spark marks",
                location,
                fact["record_count"],
                *(fact[name] for name in DATA_DV.names),
            )
            return scan.files.cache.derive(
                key, made, most=_KEEP_BYTES, weigh=lambda found: len(found[1])
            )

        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="icetree-dvs") as pool:
            found = iter(list(pool.map(marks, facts)))
        both = [next(found) if each else none for each in has.to_pylist()]
        return [
            pa.array([last for last, _ in both], pa.int64()),
            pa.array([bits for _, bits in both], pa.binary()),
        ]


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "\\'")
