"""How often a Parquet file is asked for: each time is a request, where it is on an object store."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icetree.codec.parquet.parquet import open_parquet


class Counted(io.BytesIO):
    """A file that counts how often it is read."""

    reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        return super().read(size)


def file_of(rows: pa.Table) -> Counted:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=max(1, rows.num_rows // 3))
    return Counted(sink.getvalue().to_pybytes())


@pytest.mark.parametrize("pre_buffer", [False, True])
def test_a_small_file_is_read_once(pre_buffer: bool) -> None:
    rows = pa.table({"a": range(30), "b": [f"{at}" for at in range(30)]})
    file = file_of(rows)
    opened = open_parquet(pa.PythonFile(file, mode="r"), file="f", pre_buffer=pre_buffer)
    assert pa.concat_tables(opened.read_groups()) == rows
    assert file.reads == 1


def test_of_a_larger_file_no_more_is_read_than_is_asked_for() -> None:
    rows = pa.table({"a": np.random.default_rng(1).integers(0, 1 << 60, 90_000)})
    file = file_of(rows)
    opened = open_parquet(pa.PythonFile(file, mode="r"), file="f", pre_buffer=True)
    assert file.reads == 1
    assert opened.read(1, [0])["a"].to_pylist() == rows["a"][30_000:60_000].to_pylist()
    assert file.reads == 2
    assert pa.concat_tables(opened.read_groups()) == rows
