"""Arrow batches between our own reader and writer and Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
from pyiceberg.types import (
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    UUIDType,
)

from icetree.codec import metadata as metadata_codec
from icetree.rows.schema import plain
from icetree.spark.ship import shipped_metadata, unshipped
from icetree.spark.types import arrow_for_spark
from icetree.spec.metadata import TableMetadata
from icetree.store.base import Store

#: Spark holds a batch of Arrow data in memory as a whole.
_ROWS_AT_ONCE: Final = 1 << 16


def for_spark(array: pa.Array | pa.ChunkedArray, type: IcebergType) -> pa.Array:
    """Return values as Spark takes them; UUIDs as text."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    want = arrow_for_spark(type)
    if _has_uuids(type):
        return pa.array([_with_texts(each, type) for each in array.to_pylist()], want)
    stored = plain(array)
    return stored if stored.type.equals(want) else stored.cast(want)


def _has_uuids(type: IcebergType) -> bool:
    match type:
        case StructType():
            return any(_has_uuids(field.field_type) for field in type.fields)
        case ListType():
            return _has_uuids(type.element_type)
        case MapType():
            return _has_uuids(type.key_type) or _has_uuids(type.value_type)
    return isinstance(type, UUIDType)


def _with_texts(value: Any, type: IcebergType) -> Any:
    """Return a value with each UUID in it as text."""
    if value is None:
        return None
    match type:
        case UUIDType():
            return str(value if isinstance(value, UUID) else UUID(bytes=value))
        case StructType():
            fields = type.fields
            return {each.name: _with_texts(value[each.name], each.field_type) for each in fields}
        case ListType():
            return [_with_texts(each, type.element_type) for each in value]
        case MapType():
            return [
                (_with_texts(key, type.key_type), _with_texts(item, type.value_type))
                for key, item in value
            ]
    return value


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
        from icetree.rows.read import read_tasks
        from icetree.tree.tasks import Metrics, Plan

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
