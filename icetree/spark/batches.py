"""How many rows Spark hands to Python at a time.

Spark bounds a batch by its bytes, which it works out anew after every row: half of what it takes to hand
rows over. Where no value is expected to be large, a bound on their number does as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import types as sql

BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
#: What Spark takes for no bound, and then it does not look.
_ANY_BYTES: Final = 2**31 - 1
#: As many as Spark takes by itself. A column of a batch holds 2 GiB at most: with so many rows, texts may
#: be 200 KB on average.
MOST_ROWS: Final = 10_000
#: Rows of very many columns come in smaller batches.
_MOST_VALUES: Final = 1_000_000
#: Types of which a value may be anything, a picture or a book.
_LARGE: Final = (
    sql.BinaryType,
    sql.ArrayType,
    sql.MapType,
    sql.VariantType,
    sql.SpatialType,
    sql.UserDefinedType,
)


@contextmanager
def unweighed(rows: DataFrame) -> Iterator[None]:
    """Have rows that are computed here go to Python in batches that Spark does not weigh.

    Bounds that somebody set stay, and so do Spark's own where values may be large.
    """
    conf = rows.sparkSession.conf
    types = list(_leaves(rows.schema))
    chosen = any(conf.get(each, None) is not None for each in (BYTES, ROWS))
    if chosen or any(isinstance(each, _LARGE) for each in types):
        yield
        return
    conf.set(ROWS, str(max(1, min(MOST_ROWS, _MOST_VALUES // max(1, len(types))))))
    conf.set(BYTES, str(_ANY_BYTES))
    try:
        yield
    finally:
        # Whoever else set them did so here, and unsets them too: nobody depends on the order.
        conf.unset(ROWS)
        conf.unset(BYTES)


def _leaves(type: sql.DataType) -> Iterator[sql.DataType]:
    if isinstance(type, sql.StructType):
        for field in type:
            yield from _leaves(field.dataType)
    else:
        yield type
