"""Small questions about Arrow arrays that the library has no one word for."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

#: To hand so few rows to threads costs more than to group them.
_FEW: Final = 10_000


def one_chunk(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the values as one array, without a copy where they are one already."""
    if isinstance(values, pa.Array):
        return values
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def every(values: pa.Array | pa.ChunkedArray) -> bool:
    """Tell whether all values are true, which those of nothing are: Arrow says null of these."""
    return bool(pc.all(values, min_count=0).as_py())


def no_rows(schema: pa.Schema) -> pa.Table:
    """Return a table without a row; `empty_table` knows no extension types within others."""
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def is_blob(type: pa.DataType) -> bool:
    """Tell whether values of a type are bytes of any length, however they are laid out."""
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    return any(kind(type) for kind in kinds)


def with_values(array: pa.Array, type: pa.DataType, values: pa.Array) -> pa.Array:
    """Return lists, or maps, with other values under the same offsets."""
    return pa.Array.from_buffers(
        type, len(array), array.buffers()[:2], array.null_count, array.offset, children=[values]
    )


def is_among(
    values: pa.Array | pa.ChunkedArray, others: pa.Array | pa.ChunkedArray
) -> pa.BooleanArray | pa.ChunkedArray:
    """Tell which values are among the others."""
    return pc.is_in(values, value_set=one_chunk(others))


def without(values: pa.Array, others: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the values that are not among the others, in order."""
    if len(values) == 0 or len(others) == 0:
        return values
    return values.filter(pc.invert(is_among(values, others)))


def grouped(rows: pa.Table, by: str | list[str]) -> pa.TableGroupBy:
    """Return rows by what they have in common, to aggregate; few are not worth the threads."""
    return rows.group_by(by, use_threads=rows.num_rows > _FEW)


def first_repeated(names: pa.Array | pa.ChunkedArray) -> str | None:
    """Return a name that stands more than once, None where each stands once; nulls are no names."""
    if pc.count_distinct(names).as_py() + names.null_count == len(names):
        return None
    counts = pc.value_counts(names.drop_null())
    repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    return str(repeated[0].as_py())
