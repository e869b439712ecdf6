"""A column worked out by our own code, on the executors, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.types import DataType


def in_python(work: Callable[[pa.Array], pa.Array], returns: DataType, column: Column) -> Column:
    """Return what a function of Arrow arrays makes of a column."""
    from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]

    # Spark reads from the annotations what is passed; those of the caller may be texts.
    def made(values: pa.Array) -> pa.Array:
        return work(values)

    made.__annotations__ = {"values": pa.Array, "return": pa.Array}
    result: Column = arrow_udf(made, returns)(column)
    return result
