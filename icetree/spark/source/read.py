"""The reading face of the Python data source: a plan on the driver, its parts on executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import And, BooleanExpression
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType
from typing_extensions import override

from icetree.filters.filter import parse_filter
from icetree.spark.read.arrow import ReadingPart
from icetree.spark.ship import shipped
from icetree.spark.source.filters import filter_from
from icetree.spark.source.options import Options
from icetree.spark.types import spark_schema
from icetree.table.scan.scan import Scan
from icetree.table.table import Table
from icetree.tree.plan.tasks import Plan
from icetree.tree.splits import sizes_of


@dataclass
class Part(InputPartition):
    """Tasks of a plan that one executor reads, and the deletes of the plan.

    Spark sends a reader to the executors as it was before it planned anything, so all that planning
    finds out is here.
    """

    reading: ReadingPart
    tasks: bytes
    deletes: bytes

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as Spark takes them."""
        return self.reading.batches(self.tasks, self.deletes)


class TableReader(DataSourceReader):
    """Reads one snapshot of a table."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._columns = schema.names
        table = options.load()
        self._table: Table | None = table
        self._schema = scan_of(options, table).schema
        self._pushed: list[BooleanExpression] = []

    def __getstate__(self) -> dict[str, Any]:
        """Return what executors need: a connection is of no use to them."""
        return {**self.__dict__, "_table": None}

    @override
    def partitions(self) -> Sequence[InputPartition]:
        """Plan the scan, and share it out."""
        assert self._table is not None  # this runs where the reader was made
        own = self._options.values.get("where")
        filters = [*self._pushed, *([] if own is None else [parse_filter(own)])]
        where = reduce(And, filters) if filters else None
        scan = self._table.scan(where, columns=self._columns, at=self._options.values.get("at"))
        plan = scan.plan()
        reading = ReadingPart(
            store=scan.files.store,
            metadata=scan.metadata,
            schema_id=scan.schema.schema_id,
            columns=scan.columns,
            residuals=plan.residuals,
        )
        return parts_of(plan, reading, scan.metadata.properties)

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of a part, on an executor."""
        assert isinstance(partition, Part)
        yield from partition.batches()


class PushingReader(TableReader):
    """Reads only rows that pass the filters of the query.

    Spark 4.1 keeps a filter for later queries on the same DataFrame, which then lack rows, so this
    is only for who asks for it.
    """

    @override
    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters that mean the same to us; Spark does the others."""
        for given in filters:
            taken = filter_from(given, self._schema)
            if taken is None:
                yield given
            else:
                self._pushed.append(taken)


def scan_of(options: Options, table: Table) -> Scan:
    """Return the scan that the options ask for."""
    return table.scan(columns=options.names("columns"), at=options.values.get("at"))


def read_schema(options: Options) -> StructType:
    """Return the columns that a scan gives."""
    return _plain(spark_schema(scan_of(options, options.load()).columns.fields))


def _plain(schema: StructType) -> StructType:
    for field in schema:
        field.nullable, field.metadata = True, {}
    return schema


def parts_of(plan: Plan, reading: ReadingPart, properties: Mapping[str, str]) -> list[Part]:
    """Return the tasks as shares of about one size; a file is never cut."""
    sizes = sizes_of(properties)
    split = plan.splits(
        target_bytes=sizes.target_bytes,
        open_cost_bytes=sizes.open_cost_bytes,
        lookback=sizes.lookback,
    )
    # Where the first byte of a file goes, all of it goes.
    firsts = split.filter(pc.equal(split["start"], 0))
    deletes = shipped(plan.deletes)
    parts = []
    for number in pc.unique(firsts["split"]).to_pylist():
        chosen = firsts.filter(pc.equal(firsts["split"], number))["task"]
        tasks = shipped(plan.tasks.take(chosen))
        parts.append(Part(reading=reading, tasks=tasks, deletes=deletes))
    return parts
