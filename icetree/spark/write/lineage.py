"""Lineage of rows that move to new files: as the old file has it, or as follows from the place.

Worked out for the rows that are written, not for all that are read.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.spark.read.listing import ORDINAL, POSITION

ROW_ID: Final = "_row_id"
#: The sequence number of the commit that last changed a row; null for the one that is being made.
AGE: Final = "_last_updated_sequence_number"
LINEAGE: Final = (ROW_ID, AGE)

#: What is known of the files that rows come from, by ordinal.
FACTS: Final = ("first_row_id", "sequence_number")


def with_lineage(rows: pa.RecordBatch, files: pa.Table, *, unchanged: pa.Array) -> pa.RecordBatch:
    """Return rows, of whose lineage only what files store is known, with all of it.

    A row without an ordinal is new, and one that is not `unchanged` is of this commit's age.
    """
    first, age = (files[name].combine_chunks().take(rows[ORDINAL]) for name in FACTS)
    made = {
        ROW_ID: pc.coalesce(rows[ROW_ID], pc.add(first, rows[POSITION])),
        AGE: pc.if_else(unchanged, pc.coalesce(rows[AGE], age), pa.scalar(None, pa.int64())),
    }
    for name, column in made.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows
