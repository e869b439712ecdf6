"""Rows that are merged into a table: held in memory, up to a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from icetree.errors import InvalidInput
from icetree.rows.write.fit import ArrowData, batches_of
from icetree.spec.properties.values import whole_number

SOURCE_LIMIT: Final = "write.merge.source-limit-bytes"
DEFAULT_SOURCE_LIMIT: Final = 4 * 1024 * 1024 * 1024
#: So many bytes of texts are surely addressed by offsets of 32 bits.
_ROOM: Final = 2**31 - 1

_is = pa.types


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
    try:
        rows = pa.Table.from_batches(batches, schema)
    except pa.ArrowException as error:
        told = " ".join(str(error).split())
        raise InvalidInput(
            f"table {table}: batches of the source have other columns than the first ({told})"
        ) from None
    try:
        return _laid_out(rows).combine_chunks()
    except pa.ArrowException as error:
        told = str(error).partition("\n")[0]
        raise InvalidInput(
            f"table {table}: the source cannot be held as one ({told}): merge it in parts, or use Spark"
        ) from None


def _laid_out(rows: pa.Table) -> pa.Table:
    """Return rows as kernels can take some: without views, and with room for long columns."""
    schema = pa.schema(
        [
            field.with_type(_without_views(field.type, roomy=rows[number].nbytes > _ROOM))
            for number, field in enumerate(rows.schema)
        ]
    )
    return rows if schema.equals(rows.schema) else rows.cast(schema)


def _without_views(type: pa.DataType, *, roomy: bool) -> pa.DataType:
    if _is.is_string_view(type) or (roomy and _is.is_string(type)):
        return pa.large_string()
    if _is.is_binary_view(type) or (roomy and _is.is_binary(type)):
        return pa.large_binary()
    if _is.is_struct(type):
        return pa.struct([_inner(field, roomy) for field in type])
    if _is.is_list(type) or _is.is_large_list(type):
        made = pa.list_ if _is.is_list(type) and not roomy else pa.large_list
        return made(_inner(type.value_field, roomy))
    if _is.is_map(type):
        ends = (_inner(each, roomy) for each in (type.key_field, type.item_field))
        return pa.map_(*ends, keys_sorted=type.keys_sorted)
    return type


def _inner(field: pa.Field, roomy: bool) -> pa.Field:
    return field.with_type(_without_views(field.type, roomy=roomy))


def _require(size_bytes: int, most: int, table: str) -> None:
    if size_bytes > most:
        raise InvalidInput(
            f"table {table}: the source has more than {most:,} bytes, which are held in memory: merge it "
            f"in parts, set {SOURCE_LIMIT}, or use Spark"
        )
