"""Lists without values, as Arrow of other languages hands them over.

An array of no values needs no offsets, says Arrow, and its Java leaves them out. pyarrow reads them all
the same when it is asked how large such an array is, which ends the process.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa


def with_offsets(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose lists have offsets, at every depth; as it is where all have."""
    if not any(map(_lacks_offsets, batch.columns)):
        return batch
    # What is taken is laid out anew.
    return batch.take(pa.array(np.arange(batch.num_rows)))


def _lacks_offsets(array: pa.Array) -> bool:
    if not pa.types.is_nested(array.type):
        return False
    if not len(array) and not pa.types.is_struct(array.type):
        offsets = array.buffers()[1]
        return offsets is None or not offsets.size
    return any(map(_lacks_offsets, _members(array)))


def _members(array: pa.Array) -> Iterator[pa.Array]:
    if pa.types.is_struct(array.type):
        yield from (array.field(at) for at in range(array.type.num_fields))
    elif pa.types.is_map(array.type):
        yield from (array.keys, array.items)
    elif hasattr(array, "values"):
        yield array.values
