"""Rows as numbers that are equal where the rows are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from icetree.rows.matching.same import row_codes


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_nan_equals_a_nan_of_other_bits(kind: type) -> None:
    wide = np.array([0xFFF8000000000000, 0x7FF8000000000001], np.uint64).view(np.float64)
    nans = pa.array([*wide.astype(kind), kind(1.5), None, kind("nan")], pa.from_numpy_dtype(kind))
    one, two, number, null, three = row_codes([nans], 5).tolist()
    assert one == two == three
    assert len({one, number, null}) == 3
    inside = pa.StructArray.from_arrays([nans], names=["x"])
    assert row_codes([inside], 5).tolist()[:2] == [row_codes([inside], 5)[4]] * 2
