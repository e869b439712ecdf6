"""What stats tell of the partition that a file is in."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def told(
    lower: pa.Array, upper: pa.Array, values: pa.Array, nulls: pa.Array, nans: pa.Array
) -> tuple[pa.BooleanArray, pa.BooleanArray]:
    """Tell which files' stats say one value, null and NaN among them, and which say NaN.

    A file without rows counts as null: it is in every partition and in none.
    """
    unbounded = pc.and_(pc.is_null(lower), pc.is_null(upper))
    is_null = pc.and_(unbounded, _true(pc.equal(nulls, values)))
    is_nan = pc.and_not(pc.and_(unbounded, _true(pc.equal(nans, values))), is_null)
    return pc.or_(pc.or_(_true(pc.equal(lower, upper)), is_null), is_nan), is_nan


def _true(known: pa.BooleanArray) -> pa.BooleanArray:
    return pc.fill_null(known, False)
