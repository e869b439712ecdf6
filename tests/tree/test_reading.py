"""Which row groups and entries of a leaf are read for some of its positions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from icetree.spec.entry.entry import POSITION
from icetree.tree.reading import at_positions


@given(st.lists(st.integers(0, 4), max_size=6), st.sets(st.integers(0, 24)))
def test_a_row_group_is_read_if_it_has_a_position_that_is_wanted(
    sizes: list[int], wanted: set[int]
) -> None:
    keep = at_positions(BitMap(wanted))
    ends = np.cumsum(sizes, dtype=np.int64).tolist()
    groups = [range(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    told = keep(pa.table({"record_count": pa.array(sizes, pa.int64())}))
    assert told.to_pylist() == [bool(wanted & {*each}) for each in groups]
    entries = pa.table({POSITION: pa.array([at for each in groups for at in each], pa.int64())})
    assert keep(entries).to_pylist() == [at in wanted for at in entries[POSITION].to_pylist()]
