"""Statistics that Java reads: by the library that Iceberg Java and Spark use for sketches."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icetree
from icetree.codec import puffin


@pytest.mark.parametrize("count", [3, 20_000])
def test_a_sketch_tells_java_what_it_tells_us(
    spark: SparkSession, tmp_path: Path, count: int
) -> None:
    with icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        columns = pa.schema([("id", pa.int32()), ("name", pa.string())])
        table = lake.create_table("db.t", columns)
        ids = range(count)
        table.append(pa.table({"id": ids, "name": [f"n{each}" for each in ids]}, columns))
        done = table.maintenance.compute_table_stats()
    assert done.statistics_file is not None
    content = Path(done.statistics_file).read_bytes()
    footer = puffin.read_footer(
        lambda at, size: content[at : at + size], len(content), file=done.statistics_file
    )
    java = spark.sparkContext._jvm.org.apache.datasketches  # type: ignore[union-attr]
    # What Iceberg Java does with a value: its bytes, little endian, are what is hashed.
    theirs = java.theta.UpdateSketch.builder().build()
    for each in ids[:3_000]:
        theirs.update(bytearray(each.to_bytes(4, "little")))
    for blob, ndv in zip(footer.blobs, done.ndv.values(), strict=True):
        ours = bytearray(content[blob.offset : blob.offset + blob.length])
        found = java.theta.Sketches.wrapSketch(java.memory.Memory.wrap(ours))
        assert int(found.getEstimate()) == ndv == int(blob.properties["ndv"])
        assert found.isCompact()
        assert found.isOrdered()
        if blob.fields == (1,):
            # Their union has no value that one of them lacks.
            both = java.theta.SetOperation.builder().buildUnion()
            both.union(theirs)
            both.union(found)
            assert both.getResult().getEstimate() == pytest.approx(count, rel=0.05)
            if count == 3:
                assert both.getResult().getEstimate() == 3
