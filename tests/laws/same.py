"""Whether two tables of entries are the same, to the last bit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.entry.entry import Entries


def require_same(found: Entries, stored: Entries) -> None:
    """Require equal columns, to the sign of a zero; a column of nulls may be missing."""
    for name in dict.fromkeys((*stored.column_names, *found.column_names)):
        mine, theirs = (_bits(t[name]) if name in t.column_names else None for t in (found, stored))
        if mine is None or theirs is None:
            present = theirs if mine is None else mine
            assert present is not None
            assert present.null_count == len(present), f"{name} is on one side only"
        else:
            assert mine.equals(theirs), name


def _bits(column: pa.ChunkedArray) -> pa.Array:
    one = column.combine_chunks()
    one = pa.concat_arrays(one.chunks) if isinstance(one, pa.ChunkedArray) else one
    if pa.types.is_floating(one.type):
        width = {32: pa.int32(), 64: pa.int64()}[one.type.bit_width]
        return pa.array(
            one.to_numpy(zero_copy_only=False).view(width.to_pandas_dtype()), mask=_nulls(one)
        )
    return one


def _nulls(column: pa.Array) -> Any:
    return pc.is_null(column).to_numpy(zero_copy_only=False)
