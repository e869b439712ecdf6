"""Rows that are merged into a table: held in memory, up to a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from icetree.errors import InvalidInput
from icetree.rows.write.fit import ArrowData, batches_of
from icetree.spec.properties import whole_number

SOURCE_LIMIT: Final = "write.merge.source-limit-bytes"
DEFAULT_SOURCE_LIMIT: Final = 4 * 1024 * 1024 * 1024


def held(data: ArrowData, properties: Mapping[str, str], *, table: str) -> pa.Table:
    """Return rows as one table in memory; InvalidInput where they are more than is allowed."""
    most = whole_number(properties, SOURCE_LIMIT, default=DEFAULT_SOURCE_LIMIT, least=1)
    if not isinstance(data, pa.RecordBatchReader) and hasattr(data, "__arrow_c_stream__"):
        data = pa.RecordBatchReader.from_stream(data)
    schema = data.schema if isinstance(data, pa.Table | pa.RecordBatchReader) else None
    batches, size = [], 0
    for batch in batches_of(data):
        size += batch.nbytes
        _require(size, most, table)
        batches.append(batch)
    if schema is None and not batches:
        raise InvalidInput(f"table {table}: no batch came, not even one that tells the columns")
    return _laid_out(pa.Table.from_batches(batches, schema))


def _laid_out(rows: pa.Table) -> pa.Table:
    """Return rows without views of texts and bytes, of which few kernels can take some."""
    schema = pa.schema([field.with_type(_without_views(field.type)) for field in rows.schema])
    return rows if schema.equals(rows.schema) else rows.cast(schema)


def _without_views(type: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(type):
        return pa.large_string()
    if pa.types.is_binary_view(type):
        return pa.large_binary()
    if pa.types.is_struct(type):
        return pa.struct([field.with_type(_without_views(field.type)) for field in type])
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        made = pa.list_ if pa.types.is_list(type) else pa.large_list
        return made(type.value_field.with_type(_without_views(type.value_type)))
    return type


def _require(size_bytes: int, most: int, table: str) -> None:
    if size_bytes > most:
        raise InvalidInput(
            f"table {table}: the source has more than {most:,} bytes, which are held in memory: merge it "
            f"in parts, set {SOURCE_LIMIT}, or use Spark"
        )
