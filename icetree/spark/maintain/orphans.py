"""Orphan files at scale: the folder is listed by a task and leaves are read by many; Spark joins both.

What the driver holds is what roots name, each file once, and the orphans.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from icetree.spark.complaints import one_line
from icetree.spark.frames import arrow_frame
from icetree.spark.leaves import files_in, min_files, sent, spread, unspread
from icetree.spark.progress import telling
from icetree.table.maintain.orphans.names import Place, listed, spelled
from icetree.table.maintain.orphans.orphans import Listed, Lister, list_here
from icetree.table.maintain.reach import Reach, named, needed_below
from icetree.table.progress import Progress
from icetree.tree.reading import leaves_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icetree.table.table import Table

_LISTED: Final = "location string"
_LISTED_SCHEMA: Final = pa.schema([("location", pa.string())])
#: Names of needed files; `outside` says of a file outside the table how the caller spells it.
_NEEDED: Final = "location string, outside boolean"
_NEEDED_SCHEMA: Final = pa.schema([("location", pa.string()), ("outside", pa.bool_())])


def lister(spark: SparkSession) -> Lister:
    """Return what lists the folder of a table: on executors where the table has many files."""
    least = min_files(spark)

    def list_folder(table: Table, place: Place, tell: Progress) -> AbstractContextManager[Listed]:
        root = table.files.root(table.current_snapshot, table.metadata.shape())
        if files_in(leaves_in(root)) < least:
            return list_here(table, place, tell)
        return _list_there(spark, table, place)

    return list_folder


@contextmanager
def _list_there(spark: SparkSession, table: Table, place: Place) -> Iterator[Listed]:
    """List a folder in a task, and keep on disks what was found: all before the next head is read.

    A part that is lost is listed anew. What it may have then that was committed since is known
    before anything is deleted, and the age that is asked for stays the same.
    """
    store = table.files.store

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in (row for batch in batches for row in batch.to_pylist()):
            for names in listed(store, place, lambda *_: None):
                yield pa.RecordBatch.from_arrays([names], schema=_LISTED_SCHEMA)

    one = spark.range(0, 1, 1, 1).mapInArrow(work, _LISTED)
    found = one.repartition(spark.sparkContext.defaultParallelism)
    found = found.persist(StorageLevel.DISK_ONLY)
    try:
        with one_line(), telling(spark, f"files in the folder of {table.name}"):
            found.count()
        yield _There(spark=spark, found=found, place=place)
    finally:
        found.unpersist()


@dataclass(frozen=True, slots=True, kw_only=True)
class _There:
    """A listing on the executors."""

    spark: SparkSession
    found: DataFrame
    place: Place

    def less(
        self, needed: pa.Table, reach: Reach, table: Table, *, but: Collection[str]
    ) -> tuple[pa.Table, pa.Array]:
        """Join what was listed with what is needed."""
        of_roots = pa.concat_tables([needed, reach.settle()])
        rows = arrow_frame(self.spark, pa.Table.from_batches([_rows(of_roots, self.place)]))
        every = rows.unionByName(self._below(reach, table, but))
        every = every.persist(StorageLevel.DISK_ONLY)
        try:
            with one_line(), telling(self.spark, f"orphan files of {table.name}"):
                left = self.found.join(every, "location", "left_anti").toArrow()
                outside = self._outside(left, every)
        finally:
            every.unpersist()
        names = left.sort_by("location")["location"].combine_chunks()
        return named(names), outside

    def _below(self, reach: Reach, table: Table, but: Collection[str]) -> DataFrame:
        leaves = [reach.of_leaf(each) for each in reach.leaves if each not in but]
        there, place = sent(table.files, table.metadata), self.place

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            files, metadata = there.files()
            reader = files.reader(metadata.shape())
            for _, part in unspread(batches):
                for some in needed_below(part, reader):
                    yield _rows(some, place)

        return spread(self.spark, leaves).mapInArrow(work, _NEEDED)

    def _outside(self, left: pa.Table, every: DataFrame) -> pa.Array:
        """Return needed files outside the table whose names end as one does that is left."""
        if not left.num_rows:
            return pa.array([], pa.string())
        ends = arrow_frame(self.spark, left).select(_end())
        far = every.where("outside").withColumn("end", _end())
        found = far.join(ends.distinct(), "end", "left_semi").select("location").distinct()
        return found.toArrow()["location"].combine_chunks()


def _end() -> Column:
    return f.substring_index("location", "/", -1).alias("end")


def _rows(needed: pa.Table, place: Place) -> pa.RecordBatch:
    names, outside = spelled(needed, place)
    flags = [pa.repeat(False, len(names)), pa.repeat(True, len(outside))]
    columns = [pa.concat_arrays([names, outside]), pa.concat_arrays(flags)]
    return pa.RecordBatch.from_arrays(columns, schema=_NEEDED_SCHEMA)
