"""Rows handed to Python in batches that Spark does not weigh, since each row tells what it takes.

Spark ends a batch at a number of rows or of bytes, and to know these it adds up the buffers of all
columns after every row: half of what Java does for an append. Here rows work out their own size, in
generated code, for next to nothing. One that takes more than its share of a batch goes to Python
without what is large in it, as a sign: then nothing of it counts, and all is done again, in batches
of fewer rows or weighed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as sql
from pyspark.sql.pandas.types import from_arrow_schema

from icetree.spark.in_python import done_in_python
from icetree.spark.names import quoted
from icetree.spark.write.internals import BYTES, bounds, is_all_javas, not_weighed
from icetree.spec.metadata.metadata import TableMetadata
from icetree.visible import log_of

log = log_of(__name__)

Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

#: What a row takes that takes more than its share; among answers, the most that a task met of such.
LARGE: Final = "__icetree_large"

#: Rows of a batch where nobody has said how many: Spark's number where files tell that rows are small,
#: else fewer, so that each may take more.
_ROWS: Final = (10_000, 2_000)
#: How much of its share the rows of files may take on average for that: some are far from it.
_SMALL: Final = 1 / 16
#: A row of less than that is not large to anybody: where a batch has so many rows, it is weighed.
_LEAST_SHARE: Final = 4096
#: Up to how many rows and bytes batches are put together again, once they are in Python: what is done
#: with a batch takes as long for a few.
_GATHERED_ROWS: Final = 10_000
_GATHERED_BYTES: Final = 16 * 1024 * 1024
#: How much smaller rows may be in files than in memory.
_PACKED: Final = 4
#: From how many bytes on files tell how large rows are: of small ones, footers are most.
_TELLING_BYTES: Final = 16 * 1024 * 1024
#: What a value of a type that is always the same takes at most, its share of what is null included.
_FIXED_BYTES: Final = 17
#: What is beside a value that varies: where it ends, whether it is null.
_BESIDE_BYTES: Final = 9
_FIXED: Final = (
    *(sql.BooleanType, sql.NumericType, sql.DateType, sql.TimeType),
    *(sql.TimestampType, sql.TimestampNTZType, sql.NullType),
    *(sql.DayTimeIntervalType, sql.YearMonthIntervalType),
)

#: The largest row that this process met in a table that took more than its share, by the table's UUID.
_LARGEST: Final[dict[str, int]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What a batch that is not weighed may hold: so many rows, of which each takes so many bytes."""

    rows: int
    bytes: int


def done_unweighed(
    rows: DataFrame,
    work: Work,
    returns: pa.Schema,
    *,
    table: str,
    metadata: TableMetadata,
    undo: Callable[[pa.Table], object],
) -> pa.Table:
    """Compute rows of a table and return what a function makes of their batches.

    When a row is too large for that, what came of it so far goes to `undo`, and all of it is done
    again. The log calls it `table`.
    """
    for share in shares_of(rows.sparkSession, metadata):
        if share.bytes < _LARGEST.get(_id(metadata), 0):
            continue
        told = with_size(rows, share)
        if told is None:
            break
        marked = pa.schema([*returns, (LARGE, pa.int64())])
        with not_weighed(rows.sparkSession, share.rows):
            found = done_in_python(told, _unless_large(work, marked), _ddl(marked))
        largest = pc.max(found[LARGE]).as_py()
        if largest is None:
            return found.drop_columns([LARGE])
        _LARGEST[_id(metadata)] = largest
        log.warning(
            "table %s: a row takes %d bytes, more than %d, so all are computed and written once more, in "
            "batches of fewer rows or that Spark weighs; further writes of this process begin so. To have "
            "every write of a session begin so, set %s, such as to 64m",
            table, largest, share.bytes, BYTES,
        )  # fmt: skip
        undo(found.filter(pc.is_null(found[LARGE])).drop_columns([LARGE]))
    return done_in_python(rows, work, _ddl(returns))


def shares_of(spark: SparkSession, metadata: TableMetadata) -> list[Share]:
    """Return what batches of a table's rows may hold so that none is too large, the most rows first.

    None are returned where Spark is to weigh: where somebody has said how large batches may be, or
    that they have very many rows, and where files tell of large rows.
    """
    found = bounds(spark)
    if found is None or found.rows <= 0 or found.bytes_set:
        return []
    counts = [found.rows] if found.rows_set else sorted({min(found.rows, n) for n in _ROWS})
    fewest = counts[0]
    usual = _usual_bytes(metadata)
    shares = [Share(rows=n, bytes=found.bytes // n) for n in reversed(counts)]
    return [each for each in shares if _is_enough(each, usual, ordinary=each.rows == fewest)]


def _is_enough(share: Share, usual: float | None, *, ordinary: bool) -> bool:
    """Tell whether rows that take so much on average, if that is known, may go without being weighed."""
    if share.bytes < _LEAST_SHARE:
        return False
    if usual is None:
        return ordinary
    return usual <= share.bytes * (1 if ordinary else _SMALL)


def with_size(rows: DataFrame, share: Share) -> DataFrame | None:
    """Return rows with `LARGE`, and nulls for what is large of those; None where Spark is to weigh.

    That is so where a row cannot tell its size for next to nothing, and where other batches than
    these would go to Python unweighed, too.
    """
    sizes = {field.name: _size(field.dataType, quoted(field.name)) for field in rows.schema}
    names = [*rows.columns, LARGE]
    if None in sizes.values() or not _tell_apart(names) or not is_all_javas(rows):
        return None
    varying = {name: each for name, each in sizes.items() if isinstance(each, str)}
    fixed = sum(each for each in sizes.values() if isinstance(each, int))
    if fixed > share.bytes:
        return None
    size = " + ".join([f"{fixed}L", *varying.values()])
    marked = rows.selectExpr("*", f"{size} AS {LARGE}")
    is_large = f"{LARGE} > {share.bytes}L"
    without = [
        f"IF({is_large}, NULL, {quoted(name)}) AS {quoted(name)}"
        if name in varying
        else quoted(name)
        for name in rows.columns
    ]
    return marked.selectExpr(*without, f"IF({is_large}, {LARGE}, NULL) AS {LARGE}")


def _usual_bytes(metadata: TableMetadata) -> float | None:
    """Return what a row of a table's files takes in memory, about; None where they do not tell."""
    snapshot = metadata.current_snapshot()
    totals = (snapshot.summary if snapshot is not None else None) or {}
    try:
        bytes, rows = (int(totals[name]) for name in ("total-files-size", "total-records"))
    except (KeyError, ValueError):
        return None
    return bytes * _PACKED / rows if bytes >= _TELLING_BYTES and rows > 0 else None


def _id(metadata: TableMetadata) -> str:
    return metadata.table_uuid or metadata.location


def _tell_apart(names: list[str]) -> bool:
    """Tell whether names differ in more than case, in which SQL may take them for one."""
    return len({name.lower() for name in names}) == len(names)


def _size(type: sql.DataType, value: str) -> str | int | None:
    """Return what values of a type take, or SQL that tells it of one; None where that costs."""
    match type:
        case sql.StringType() | sql.BinaryType():
            return f"COALESCE(CAST(OCTET_LENGTH({value}) AS BIGINT), 0L) + {_BESIDE_BYTES}L"
        case sql.ArrayType() if isinstance(type.elementType, _FIXED):
            return f"COALESCE(CAST(ARRAY_SIZE({value}) AS BIGINT), 0L) * {_FIXED_BYTES}L + {_BESIDE_BYTES}L"
        case sql.StructType():
            sizes = [_size(each.dataType, f"{value}.{quoted(each.name)}") for each in type]
            if None in sizes or not _tell_apart(type.names):
                return None
            if all(isinstance(each, int) for each in sizes):
                return sum(sizes) + 1  # type: ignore[arg-type]
            return " + ".join(
                ["1L", *(f"{each}L" if isinstance(each, int) else str(each) for each in sizes)]
            )
    return _FIXED_BYTES if isinstance(type, _FIXED) else None


class _LargeRow(Exception):
    """A row is not what it was: its values are elsewhere."""

    def __init__(self, bytes: int) -> None:
        super().__init__(bytes)
        self.bytes = bytes


def _unless_large(work: Work, returns: pa.Schema) -> Work:
    """Return what does the work, or tells that a row was large and that nothing was done."""

    def made(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        given = iter(batches)
        try:
            for each in work(_small(given)):
                yield each.append_column(returns.field(LARGE), pa.nulls(each.num_rows, pa.int64()))
        except _LargeRow as met:
            # Spark wants to get rid of all of them.
            rest = [_largest(each) for each in given]
            most = max([met.bytes, *filter(None, rest)])
            yield pa.RecordBatch.from_pylist([{LARGE: most}], schema=returns)

    return made


def _small(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what is in batches, as fewer of them; a large row raises."""
    held: list[pa.RecordBatch] = []
    rows = bytes = 0
    for batch in batches:
        if (large := _largest(batch)) is not None:
            raise _LargeRow(large)
        held.append(batch.drop_columns([LARGE]))
        rows, bytes = rows + batch.num_rows, bytes + batch.nbytes
        if rows >= _GATHERED_ROWS or bytes >= _GATHERED_BYTES:
            yield _one(held)
            held, rows, bytes = [], 0, 0
    if held:
        yield _one(held)


def _largest(batch: pa.RecordBatch) -> int | None:
    found: int | None = pc.max(batch[LARGE]).as_py()
    return found


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    # One that is alone would be copied.
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _ddl(schema: pa.Schema) -> str:
    return ", ".join(
        f"{field.name} {field.dataType.simpleString()}" for field in from_arrow_schema(schema)
    )
