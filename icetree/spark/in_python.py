"""Columns and rows worked out by our own code, on the executors, a batch at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import DataType

#: Names that `mapInArrow` finds columns by; it takes a dot for a way into a struct.
_PLAIN: Final = re.compile(r"\w+")


def in_python(work: Callable[[pa.Array], pa.Array], returns: DataType, column: Column) -> Column:
    """Return what a function of Arrow arrays makes of a column."""
    result: Column = _for_spark(work, returns)(column)
    return result


def function_of(work: Callable[[pa.Array], pa.Array], returns: DataType, *, name: str) -> Any:
    """Return a function of Arrow arrays as Java has it, which makes expressions of expressions."""
    return _for_spark(work, returns, name)._unwrapped._judf  # noqa: SLF001  # Spark has no other door


def _for_spark(
    work: Callable[[pa.Array], pa.Array], returns: DataType, name: str | None = None
) -> Any:
    from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]

    # Spark reads from the annotations what is passed; those of the caller may be texts.
    def made(values: pa.Array) -> pa.Array:
        return work(values)

    made.__annotations__ = {"values": pa.Array, "return": pa.Array}
    made.__name__ = name or made.__name__
    return arrow_udf(made, returns)


def done_in_python(
    rows: DataFrame,
    work: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    returns: str,
) -> pa.Table:
    """Compute rows, whose columns have any names, and return what a function makes of their batches."""
    names = rows.columns
    given = rows
    if not all(map(_PLAIN.fullmatch, names)):
        given = rows.toDF(*(f"column_{at}" for at in range(len(names))))

    def renamed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return work(batch.rename_columns(names) for batch in batches)

    return given.mapInArrow(work if given is rows else renamed, returns).toArrow()
