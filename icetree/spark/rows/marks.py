"""Rows that go: their positions, gathered by Spark, and the data DVs that mark them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from icetree.spark.read.listing import ORDINAL, POSITION
from icetree.spec.entry import Entries
from icetree.table.delete_files import write_data_vectors
from icetree.table.table import Table
from icetree.tree.tasks import Plan

#: Of so many rows the positions fit on the driver even if all of them go.
_FEW_ROWS: Final = 32_000_000
_WORD: Final = "__icetree_word"
_BITS: Final = "__icetree_bits"
#: Words unpacked at once: each becomes up to 64 positions.
_AT_ONCE: Final = 1 << 18


def positions(rows: DataFrame, plan: Plan) -> dict[int, BitMap64]:
    """Return where rows stand that are some of the plan's: positions by the file's ordinal.

    No row passes through Python. Where there may be too many for the driver they come as words
    of 64 rows, each a bit; to gather these takes Spark a second stage.
    """
    all_rows = pc.sum(plan.tasks["record_count"]).as_py() or 0
    if all_rows <= _FEW_ROWS:
        return _by_file(rows.select(ORDINAL, POSITION).toArrow(), _bitmap)
    one = f.lit(1).cast("long")
    bit = f.call_function("shiftleft", one, f.col(POSITION).bitwiseAND(63).cast("int"))
    word = f.shiftright(POSITION, 6).alias(_WORD)
    words = rows.groupBy(ORDINAL, word).agg(f.bit_or(bit).alias(_BITS))
    return _by_file(words.toArrow(), _bitmap_of_words)


def _by_file(found: pa.Table, bitmap: Callable[[pa.Table], BitMap64]) -> dict[int, BitMap64]:
    found = found.sort_by(ORDINAL)
    ordinals = found[ORDINAL].to_numpy()
    starts = np.flatnonzero(np.diff(ordinals, prepend=-1)).tolist()
    return {
        int(ordinals[start]): bitmap(found.slice(start, end - start))
        for start, end in pairwise([*starts, len(ordinals)])
    }


def _bitmap(rows: pa.Table) -> BitMap64:
    return BitMap64(array("Q", rows[POSITION].to_numpy().astype(np.uint64).tobytes()))


def _bitmap_of_words(words: pa.Table) -> BitMap64:
    found = BitMap64()
    for start in range(0, words.num_rows, _AT_ONCE):
        part = words.slice(start, _AT_ONCE)
        # Bits in order whatever the machine's byte order.
        packed = part[_BITS].to_numpy().astype("<i8").view(np.uint8).reshape(-1, 8)
        row, bit = np.nonzero(np.unpackbits(packed, axis=1, bitorder="little"))
        places = part[_WORD].to_numpy()[row] * 64 + bit
        found |= BitMap64(array("Q", places.astype(np.uint64).tobytes()))
    return found


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
