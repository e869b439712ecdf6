"""A bit that flipped in a page of a data file is no value that a query returns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.spark.reading import reading
from tests.spark.sql_lake import SqlLake

VALUES = np.random.default_rng(1).random(1000)


@pytest.fixture
def flipped(spark: SparkSession, tmp_path: Path) -> SqlLake:
    """A table `t` whose only data file is not compressed, with one bit of a value flipped."""
    made = SqlLake(spark, tmp_path)
    plain = {"write.parquet.compression-codec": "uncompressed"}
    made.lake.create_table("db.t", pa.schema([("x", pa.float64())]), properties=plain)
    made.lake.append("db.t", pa.table({"x": VALUES}))
    [file] = made.lake.table("db.t").inspect.files()["file_path"].to_pylist()
    path = Path(file.removeprefix("file://"))
    content = bytearray(path.read_bytes())
    content[content.index(VALUES[500].tobytes()) + 6] ^= 1
    path.write_bytes(content)
    return made


def total(made: SqlLake) -> float:
    [row] = made.lake.read("db.t").selectExpr("sum(x)").collect()
    return float(row[0])


@pytest.mark.parametrize("lazily", [True, False])
def test_spark_holds_pages_against_their_checksums_unless_the_table_says_otherwise(
    flipped: SqlLake, lazily: bool
) -> None:
    with reading(flipped.lake.spark, lazily=lazily):
        with pytest.raises(Exception, match=r"FAILED_READ_FILE"):
            total(flipped)
        flipped.lake.table("db.t").set_properties({"read.parquet.checksums": "false"})
        assert total(flipped) != pytest.approx(VALUES.sum(), abs=1e-9)
