"""The rows that new data DVs took from files, as positions to join the files with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from icetree.errors import CorruptTable
from icetree.rows.read.deletes import VECTOR_COLUMNS, Rows, read_vector
from icetree.spark.changes.pairs import TASK_NUMBER
from icetree.spark.read.listing import ORDINAL, POSITION
from icetree.spark.ship import shipped, unshipped
from icetree.store.base import Store

_NEEDED: Final = (
    "location",
    "record_count",
    *VECTOR_COLUMNS,
    *(f"within_{name}" for name in VECTOR_COLUMNS),
)
_OUT: Final = pa.schema([(ORDINAL, pa.int32()), (POSITION, pa.int64()), (TASK_NUMBER, pa.int32())])
#: Up to so many positions are gathered here: that is quicker than to start Python on executors.
_MOST_HERE: Final = 1_000_000
#: Up to so many go to every executor, which saves a shuffle of the files' rows.
_MOST_BROADCAST: Final = 5_000_000
_AT_ONCE: Final = 8


def marks(spark: SparkSession, tasks: pa.Table, *, store: Store, location: str) -> DataFrame:
    """Return the rows that DVs took, as (`ORDINAL`, `POSITION`, `TASK_NUMBER`), to be joined with.

    Tasks have the first and the last as columns.
    """
    told = tasks.select([*_NEEDED, ORDINAL, TASK_NUMBER])
    count = pc.sum(tasks["within_dv_cardinality"]).as_py() or 0
    expand = partial(_expanded, store=store, location=location)
    if count <= _MOST_HERE:
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="icetree-dvs") as pool:
            found = list(pool.map(expand, told.to_pylist()))
        return f.broadcast(spark.createDataFrame(pa.Table.from_batches(found, _OUT)))

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for sent in (value for batch in batches for value in batch.column(0)):
            yield from map(expand, unshipped(sent.as_py()).to_pylist())

    made = spread(spark, told).mapInArrow(
        read, f"{ORDINAL} int, {POSITION} long, {TASK_NUMBER} int"
    )
    return f.broadcast(made) if count <= _MOST_BROADCAST else made


def spread(spark: SparkSession, tasks: pa.Table) -> DataFrame:
    """Return tasks as rows of bytes, spread over the executors."""
    sent = [(shipped(tasks.slice(number, 1)),) for number in range(tasks.num_rows)]
    most = max(1, min(len(sent), spark.sparkContext.defaultParallelism * 4))
    return spark.createDataFrame(sent, "task binary").repartition(most)


def _expanded(task: dict[str, Any], *, store: Store, location: str) -> pa.RecordBatch:
    rows = _newly_marked(task, store, location)
    ordinal, number = (
        pa.repeat(pa.scalar(task[name], pa.int32()), len(rows)) for name in (ORDINAL, TASK_NUMBER)
    )
    return pa.RecordBatch.from_arrays([ordinal, pa.array(rows, pa.int64()), number], schema=_OUT)


def _newly_marked(task: dict[str, Any], store: Store, location: str) -> Rows:
    """Return the positions in the DV to be within that the file's own DV does not have."""
    own = {name: task[f"within_{name}"] for name in VECTOR_COLUMNS}
    marked = read_vector(store, task | own, location)
    if task["dv_location"] is None:
        return marked
    before = read_vector(store, task, location)
    # A smaller one is no mistake: then rows came back, and another task tells which.
    if len(before) <= len(marked) and not np.isin(before, marked).all():
        raise CorruptTable(
            task["within_dv_location"],
            f"the DV of {task['location']} gives rows back that the one before it removed",
        )
    return np.setdiff1d(marked, before, assume_unique=True)
