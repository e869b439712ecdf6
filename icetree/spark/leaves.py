"""Work on many leaves, on the executors: what goes there, and from how many files on it is worth a job."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from icetree.codec import metadata as metadata_codec
from icetree.errors import InvalidInput
from icetree.files.cache import Cache
from icetree.files.table_files import TableFiles
from icetree.keys.ring import Ring
from icetree.spark.ship import shipped_metadata
from icetree.spec.metadata.metadata import TableMetadata
from icetree.store.base import Store
from icetree.tree.reading import Leaf

#: From so many files in leaves on, maintenance reads and makes leaves on executors.
SETTING: Final = "spark.icetree.maintenance.min-files"
#: One process takes a minute or two for so many; decision 31 has what was measured.
FILES: Final = 5_000_000


def min_files(spark: SparkSession) -> int:
    """Return from how many files on work goes to the executors."""
    given = spark.conf.get(SETTING, str(FILES))
    if given is None or not given.isdecimal():
        raise InvalidInput(
            f"{SETTING}={given!r}: give how many files are worth a job, such as {FILES}"
        )
    return int(given)


def files_in(leaves: Iterable[Leaf]) -> int:
    """Return how many files leaves tell of."""
    return sum(each.record_count for each in leaves)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What an executor needs to read and write metadata files of a table."""

    store: Store
    location: str
    #: Opens nothing by itself: leaves have their keys along.
    ring: Ring
    metadata: bytes

    def files(self) -> tuple[TableFiles, TableMetadata]:
        """Return the table's files and its metadata, less its history."""
        metadata = metadata_codec.decode(self.metadata, file="table metadata")
        files = TableFiles(store=self.store, location=self.location, cache=Cache(), ring=self.ring)
        return files, metadata


def sent(files: TableFiles, metadata: TableMetadata) -> Sent:
    """Return what executors need of a table."""
    return Sent(
        store=files.store,
        location=files.location,
        ring=files.ring.only(()),
        metadata=shipped_metadata(metadata),
    )


def spread(spark: SparkSession, items: Sequence[Any], *, tasks: int | None = None) -> DataFrame:
    """Return items as rows (`number`, `item`), in so many tasks, or a few for each core."""
    most = 4 * spark.sparkContext.defaultParallelism if tasks is None else tasks
    rows = [(number, pickle.dumps(item)) for number, item in enumerate(items)]
    frame = spark.createDataFrame(rows, "number int, item binary")
    return frame.repartition(max(1, min(len(rows), most)))


def unspread(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Any]]:
    """Yield the items that came to a task, with their numbers."""
    for batch in batches:
        for row in batch.to_pylist():
            # Of our own objects, from our own driver.
            yield row["number"], pickle.loads(row["item"])
