"""Rows handed to Python in batches that Spark does not weigh, since each row tells what it takes.

Spark ends a batch at a number of rows or of bytes, and to know these it adds up the buffers of all
columns after every row: half of what Java does for an append. Here rows work out their own size, in
generated code, for next to nothing. One that takes more than its share of a batch goes to Python
without what is large in it, as a sign: then nothing of it counts, and all is done again, weighed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as sql
from pyspark.sql.pandas.types import from_arrow_schema

from icetree.spark.in_python import done_in_python
from icetree.spark.jvm import java_of
from icetree.spark.names import quoted
from icetree.spark.trees import kind, seq

Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

#: Whether a row takes more than its share; among answers, whether a task met such a row.
LARGE: Final = "__icetree_large"

_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
#: Spark's word for a batch that is not weighed.
_UNBOUNDED: Final = 2**31 - 1
#: What a value of a type that is always the same takes at most, its share of what is null included.
_FIXED_BYTES: Final = 17
_FIXED: Final = (
    *(sql.BooleanType, sql.NumericType, sql.DateType, sql.TimeType),
    *(sql.TimestampType, sql.TimestampNTZType, sql.NullType),
    *(sql.DayTimeIntervalType, sql.YearMonthIntervalType),
)
#: Rows that others compute, perhaps in Python themselves, of batches that nobody has weighed then.
_HIDDEN: Final = frozenset({"LogicalRDD", "ExternalRDD"})

#: Tables that were given large rows: the next ones are weighed from the start.
_HAVE_LARGE: Final[set[str]] = set()


def done_unweighed(
    rows: DataFrame,
    work: Work,
    returns: pa.Schema,
    *,
    table: str,
    undo: Callable[[pa.Table], object],
) -> pa.Table:
    """Compute rows of a table and return what a function makes of their batches.

    When a row is too large for that, what came of it so far goes to `undo`, and all of it is done
    again.
    """
    told = None if table in _HAVE_LARGE else with_size(rows)
    if told is not None:
        marked = pa.schema([*returns, (LARGE, pa.bool_())])
        with _not_weighed(rows.sparkSession):
            found = done_in_python(told, _unless_large(work, marked), _ddl(marked))
        if not pc.any(found[LARGE]).as_py():
            return found.drop_columns([LARGE])
        _HAVE_LARGE.add(table)
        undo(found.filter(pc.is_null(found[LARGE])).drop_columns([LARGE]))
    return done_in_python(rows, work, _ddl(returns))


def with_size(rows: DataFrame) -> DataFrame | None:
    """Return rows with `LARGE`, and nulls for what is large of those; None where Spark is to weigh.

    That is so where somebody has said how large batches may be, where a row cannot tell its size for
    next to nothing, and where other batches than these would go to Python unweighed, too.
    """
    share = _share(rows)
    sizes = {field.name: _size(field.dataType, quoted(field.name)) for field in rows.schema}
    if share is None or None in sizes.values() or _is_python_elsewhere(rows):
        return None
    fixed = sum(each for each in sizes.values() if isinstance(each, int))
    varying = {name: each for name, each in sizes.items() if isinstance(each, str)}
    if fixed > share:
        return None
    size = " + ".join([f"{fixed}L", *varying.values()])
    marked = rows.selectExpr("*", f"{size} > {share}L AS {LARGE}")
    without = [
        f"IF({LARGE}, NULL, {quoted(name)}) AS {quoted(name)}" if name in varying else quoted(name)
        for name in rows.columns
    ]
    return marked.selectExpr(*without, LARGE)


def _share(rows: DataFrame) -> int | None:
    """Return how many bytes a row may take so that no batch is too large; None where that is not ours to say."""
    session = rows.sparkSession
    if not hasattr(session, "_jsparkSession"):
        return None
    settings = session._jsparkSession.sessionState().conf()  # noqa: SLF001  # Spark has no other door
    most: int = settings.arrowMaxRecordsPerBatch()
    if most <= 0 or settings.contains(_BYTES) or not _tell_apart(rows.columns):
        return None
    bytes: int = settings.arrowMaxBytesPerBatch()
    return bytes // most


def _tell_apart(names: list[str]) -> bool:
    """Tell whether names differ in more than case, in which SQL may take them for one."""
    return len({name.lower() for name in names}) == len(names)


def _size(type: sql.DataType, value: str) -> str | int | None:
    """Return what values of a type take, or SQL that tells it of one; None where that costs."""
    match type:
        case sql.StringType() | sql.BinaryType():
            return f"COALESCE(CAST(OCTET_LENGTH({value}) AS BIGINT), 0L)"
        case sql.ArrayType() if isinstance(type.elementType, _FIXED):
            return f"COALESCE(CAST(ARRAY_SIZE({value}) AS BIGINT), 0L) * {_FIXED_BYTES}L"
        case sql.StructType():
            sizes = [_size(each.dataType, f"{value}.{quoted(each.name)}") for each in type]
            if None in sizes or not _tell_apart(type.names):
                return None
            if all(isinstance(each, int) for each in sizes):
                return sum(sizes)  # type: ignore[arg-type]
            return " + ".join(f"{each}L" if isinstance(each, int) else str(each) for each in sizes)
    return _FIXED_BYTES if isinstance(type, _FIXED) else None


def _is_python_elsewhere(rows: DataFrame) -> bool:
    """Tell whether more than what is done with the rows is, or may be, done in Python."""
    java = java_of(rows.sparkSession)
    plan = rows._jdf.queryExecution().analyzed()  # noqa: SLF001
    in_python = java.org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF()
    return plan.containsPattern(in_python) or any(
        kind(leaf) in _HIDDEN for leaf in seq(plan.collectLeaves())
    )


@contextmanager
def _not_weighed(spark: SparkSession) -> Iterator[None]:
    """Have batches of this thread's jobs end at their number of rows alone."""
    # A setting would be that of all threads; what a session has not set, a thread's jobs may.
    context = spark.sparkContext
    before = context.getLocalProperty(_BYTES)
    context.setLocalProperty(_BYTES, str(_UNBOUNDED))
    try:
        yield
    finally:
        context.setLocalProperty(_BYTES, before)  # type: ignore[arg-type]


class _LargeRow(Exception):
    """A row is not what it was: its values are elsewhere."""


def _unless_large(work: Work, returns: pa.Schema) -> Work:
    """Return what does the work, or tells that a row was large and that nothing was done."""

    def made(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        given = iter(batches)
        try:
            for each in work(_small(given)):
                yield each.append_column(returns.field(LARGE), pa.nulls(each.num_rows, pa.bool_()))
        except _LargeRow:
            # Spark wants to get rid of all of them.
            for _ in given:
                pass
            yield pa.RecordBatch.from_pylist([{LARGE: True}], schema=returns)

    return made


def _small(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if pc.any(batch[LARGE]).as_py():
            raise _LargeRow
        yield batch.drop_columns([LARGE])


def _ddl(schema: pa.Schema) -> str:
    return ", ".join(
        f"{field.name} {field.dataType.simpleString()}" for field in from_arrow_schema(schema)
    )
