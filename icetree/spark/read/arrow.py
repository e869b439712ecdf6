"""Arrow batches between our own reader and writer and Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import (
    IcebergType,
    NestedField,
    TimestampNanoType,
    TimestamptzNanoType,
    UUIDType,
)

from icetree.codec import metadata as metadata_codec
from icetree.rows.schema import plain
from icetree.spark.nested import rebuilt
from icetree.spark.ship import shipped_metadata, unshipped
from icetree.spark.types import arrow_for_spark
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.schema.types import VariantType
from icetree.store.base import Store

#: Spark holds a batch of Arrow data in memory as a whole.
_ROWS_AT_ONCE: Final = 1 << 16


def for_spark(array: pa.Array | pa.ChunkedArray, type: IcebergType) -> pa.Array:
    """Return values as Spark takes them: UUIDs as text, nanoseconds as numbers."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    want = arrow_for_spark(type)
    found = rebuilt(plain(array), type, _leaf)
    return found if found.type.equals(want) else found.cast(want)


def _leaf(array: pa.Array, type: IcebergType) -> pa.Array:
    values = plain(array)
    match type:
        case UUIDType():
            texts = [None if each is None else str(UUID(bytes=each)) for each in values.to_pylist()]
            return pa.array(texts, pa.string())
        case TimestampNanoType() | TimestamptzNanoType():
            return values.cast(pa.int64())
        case VariantType():
            want = arrow_for_spark(type)
            parts = [pc.fill_null(pc.struct_field(values, each.name), b"") for each in want]
            return pa.StructArray.from_arrays(parts, fields=list(want), mask=values.is_null())
    return values


def batch_for_spark(
    batch: pa.RecordBatch, fields: Iterable[NestedField], *, also: Iterable[str] = ()
) -> pa.RecordBatch:
    """Return the table's columns of a batch as Spark takes them, then others as they are."""
    arrays, names = [], []
    for field in fields:
        arrays.append(for_spark(batch[field.name], field.field_type))
        names.append(field.name)
    for name in also:
        arrays.append(batch[name])
        names.append(name)
    return pa.RecordBatch.from_arrays(arrays, names=names)


class ReadingPart:
    """What reads tasks of a plan in another process, small enough to be sent there."""

    def __init__(
        self,
        *,
        store: Store,
        metadata: TableMetadata,
        schema_id: int,
        columns: Any,
        residuals: list[Any],
    ) -> None:
        self._store = store
        self._metadata = shipped_metadata(metadata)
        self._schema_id = schema_id
        self._columns = columns
        self._residuals = residuals

    def batches(self, tasks: bytes, deletes: bytes) -> Iterator[pa.RecordBatch]:
        """Yield the rows of tasks as Spark takes them."""
        from icetree.rows.read.read import read_tasks
        from icetree.tree.plan.tasks import Metrics, Plan

        table = metadata_codec.decode(self._metadata, file="table metadata")
        plan = Plan(
            tasks=unshipped(tasks),
            deletes=unshipped(deletes),
            residuals=self._residuals,
            metrics=Metrics(),
        )
        for batch in read_tasks(
            plan,
            store=self._store,
            metadata=table,
            columns=self._columns,
            schema=table.schema(self._schema_id),
            threads=2,
        ):
            for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
                yield batch_for_spark(batch.slice(start, _ROWS_AT_ONCE), self._columns.fields)
