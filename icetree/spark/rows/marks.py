"""Rows that go: their positions, gathered by Spark, and the data DVs that mark them."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow.compute as pc
from pyroaring import BitMap64
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from icetree.rows.write.deletes import write_data_vectors
from icetree.spark.complaints import one_line
from icetree.spark.read.listing import ORDINAL, POSITION
from icetree.spark.write.sink import ACTION, DELETE, sink
from icetree.spec.entry.entry import Entries
from icetree.table.table import Table
from icetree.tree.plan.tasks import Plan

#: Of so many rows the positions fit on the driver even if all of them go.
_FEW_ROWS: Final = 32_000_000


def positions(rows: DataFrame, plan: Plan, table: Table) -> dict[int, BitMap64]:
    """Return where rows stand that are some of the plan's: positions by the file's ordinal.

    Spark hands them over itself. Where there may be too many of them for that, its Python workers
    make them bitmaps first, which takes longer.
    """
    all_rows = pc.sum(plan.tasks["record_count"]).as_py() or 0
    if all_rows > _FEW_ROWS:
        going = rows.select(ORDINAL, POSITION, f.lit(DELETE).alias(ACTION))
        name, store = str(table.name), table.files.store
        return sink(going, table=name, metadata=table.metadata, store=store).gone
    with one_line():
        found = rows.select(ORDINAL, POSITION).toArrow().sort_by(ORDINAL)
    ordinals = found[ORDINAL].to_numpy()
    places = found[POSITION].to_numpy().astype(np.uint64)
    starts = np.flatnonzero(np.diff(ordinals, prepend=-1)).tolist()
    return {
        int(ordinals[start]): BitMap64(array("Q", places[start:end].tobytes()))
        for start, end in pairwise([*starts, len(ordinals)])
    }


def write_marks(gone: Mapping[int, BitMap64], plan: Plan, table: Table) -> Entries:
    """Write the DVs that take rows from files, which are told by their place in the plan."""
    locations = plan.tasks["location"]
    return write_data_vectors(
        {locations[ordinal].as_py(): rows for ordinal, rows in gone.items()},
        tasks=plan.tasks,
        metadata=table.metadata,
        store=table.files.store,
        deletes=plan.deletes,
    )
