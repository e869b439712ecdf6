"""Properties of ORC files that Iceberg has and Arrow understands otherwise."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.table.lake import connection


@pytest.mark.parametrize("size", ["100", "65537", "8388608", "268435456"])
def test_blocks_of_hdfs_are_no_concern_of_a_file(size: str) -> None:
    """Arrow's compression blocks of such sizes raise, and end the process from 8 MiB on."""
    rows = pa.table({"n": [1, 2, 3]})
    properties = {"write.format.default": "orc", "write.orc.block-size-bytes": size}
    table = connection().create_table("db.t", rows.schema, properties=properties)
    table.append(rows)
    assert table.scan().to_arrow()["n"].to_pylist() == [1, 2, 3]
