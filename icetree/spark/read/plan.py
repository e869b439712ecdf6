"""Planning on the executors: where a filter leaves many leaves, they are read and pruned there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from icetree.spark.leaves import sent, spread, unspread
from icetree.spark.ship import shipped, unshipped
from icetree.table.scan.planning import side_by_side
from icetree.table.scan.scan import Scan
from icetree.tree.plan.plan import LeafCall, LeafRead, read_leaf
from icetree.tree.plan.tasks import Plan
from icetree.tree.reading import Leaf

#: A job takes longer to start than so many leaves take to be read here.
LEAVES: Final = 64


def plan(spark: SparkSession, scan: Scan, *, leaves_here: int = LEAVES) -> Plan:
    """Return the scan's plan; more leaves than `leaves_here` are read on the executors."""
    return scan.planner(run=Executors(spark=spark, scan=scan, leaves_here=leaves_here)).whole()


@dataclass(frozen=True, slots=True, kw_only=True)
class Executors:
    """Reads leaves in a Spark job, and few ones here."""

    spark: SparkSession
    scan: Scan
    leaves_here: int

    def __call__(
        self, call: Callable[[Leaf], LeafRead], leaves: Iterable[Leaf]
    ) -> Iterable[LeafRead]:
        """Do what `map` does."""
        found = list(leaves)
        if len(found) <= self.leaves_here or not isinstance(call, LeafCall):
            return side_by_side(call, found)
        return self._on_executors(call, found)

    def _on_executors(self, call: LeafCall, leaves: list[Leaf]) -> Iterator[LeafRead]:
        table, schema_id = sent(self.scan.files, self.scan.metadata), self.scan.schema.schema_id
        predicate, columns = call.predicate, call.columns

        def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            files, metadata = table.files()
            reader = files.reader(metadata.shape(schema_id))
            for number, (leaf, removed) in unspread(batches):
                found = read_leaf(leaf, reader, predicate, columns=columns, removed=removed)
                yield _row(number, found)

        asked = [(leaf, call.removed.get(leaf.location)) for leaf in leaves]
        answers = spread(self.spark, asked).mapInArrow(read, _OUT)
        # In the order of the leaves, one at a time, so that answers do not pile up here.
        for row in answers.orderBy("number").toLocalIterator():
            yield LeafRead(entries=unshipped(bytes(row.entries)), scanned=row.scanned)


_OUT: Final = "number int, scanned long, entries binary"
_SCHEMA: Final = pa.schema(
    [("number", pa.int32()), ("scanned", pa.int64()), ("entries", pa.binary())]
)


def _row(number: int, found: LeafRead) -> pa.RecordBatch:
    row = {"number": number, "scanned": found.scanned, "entries": shipped(found.entries)}
    return pa.RecordBatch.from_pylist([row], schema=_SCHEMA)
