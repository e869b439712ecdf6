"""Rows that are merged into a table: held in memory, up to a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from icetree.errors import InvalidInput
from icetree.rows.fit import ArrowData, batches_of
from icetree.spec.properties import whole_number

SOURCE_LIMIT: Final = "write.merge.source-limit-bytes"
DEFAULT_SOURCE_LIMIT: Final = 4 * 1024 * 1024 * 1024


def held(data: ArrowData, properties: Mapping[str, str], *, table: str) -> pa.Table:
    """Return rows as one table in memory; InvalidInput where they are more than is allowed."""
    most = whole_number(properties, SOURCE_LIMIT, default=DEFAULT_SOURCE_LIMIT, least=1)
    if isinstance(data, pa.Table):
        _require(data.nbytes, most, table)
        return data
    if not isinstance(data, pa.RecordBatchReader) and hasattr(data, "__arrow_c_stream__"):
        data = pa.RecordBatchReader.from_stream(data)
    schema = data.schema if isinstance(data, pa.RecordBatchReader) else None
    batches, size = [], 0
    for batch in batches_of(data):
        size += batch.nbytes
        _require(size, most, table)
        batches.append(batch)
    if schema is None and not batches:
        raise InvalidInput(f"{table}: no batch came, not even one that tells the columns")
    return pa.Table.from_batches(batches, schema)


def _require(size_bytes: int, most: int, table: str) -> None:
    if size_bytes > most:
        raise InvalidInput(
            f"{table}: the source has more than {most:,} bytes, which are held in memory: merge it "
            f"in parts, set {SOURCE_LIMIT}, or use Spark"
        )
