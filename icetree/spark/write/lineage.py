"""Lineage of rows that move to new files: as the old file has it, or as follows from the place.

Worked out for the rows that are written, not for all that are read. Until then it goes by names that
no statement knows: what files store of it is null for most rows.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.spark.read.listing import ORDINAL, POSITION
from icetree.spec.schema.metadata_columns import LINEAGE, renamed

#: What rows on their way call it.
ROW_ID, AGE = "__icetree_row_id", "__icetree_age"
#: The columns to read it by.
STORED: Final = tuple(
    renamed(field, name) for field, name in zip(LINEAGE, (ROW_ID, AGE), strict=True)
)

#: What is known of the files that rows come from, by ordinal.
FACTS: Final = ("first_row_id", "sequence_number")


def with_lineage(rows: pa.RecordBatch, files: pa.Table, *, unchanged: pa.Array) -> pa.RecordBatch:
    """Return rows, of whose lineage only what files store is known, with all of it.

    A row without an ordinal is new, and one that is not `unchanged` is of this commit's age.
    """
    first, age = (files[name].combine_chunks().take(rows[ORDINAL]) for name in FACTS)
    row_id = pc.coalesce(rows[ROW_ID], pc.add(first, rows[POSITION]))
    age = pc.if_else(unchanged, pc.coalesce(rows[AGE], age), pa.scalar(None, pa.int64()))
    for name, column in ((ROW_ID, row_id), (AGE, age)):
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows
