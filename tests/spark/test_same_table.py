"""What Spark reads from and writes to stays the table that it started with."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

import icetree
from icetree.errors import NotFound
from icetree.spark.source.options import Options
from icetree.spark.source.stream import SnapshotReader
from icetree.spark.source.write import TableStreamWriter, TableWriter
from icetree.table.lake import Lake

ROWS = pa.table({"n": [1, 2]})


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    opened = icetree.connect(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "lake"))
    opened.create_namespace("db")
    opened.create_table("db.t", ROWS.schema)
    return opened


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(
        values={
            "catalog": f"sqlite:///{tmp_path}/catalog.db",
            "warehouse": str(tmp_path / "lake"),
            "path": "db.t",
            "query-id": "q",
        }
    )


def make_again(lake: Lake) -> None:
    lake.drop_table("db.t")
    lake.create_table("db.t", ROWS.schema)


def test_a_write_does_not_land_in_another_table(lake: Lake, options: Options) -> None:
    batch, stream = (
        TableWriter(options, overwrite=False),
        TableStreamWriter(options, overwrite=False),
    )
    replacing = TableWriter(options, overwrite=True)
    done = [each.write(iter(ROWS.to_batches())) for each in (batch, stream, replacing)]
    make_again(lake)
    with pytest.raises(NotFound, match=r"db\.t is another table now"):
        batch.commit([done[0]])
    with pytest.raises(NotFound, match=r"db\.t is another table now"):
        stream.commit([done[1]], 1)
    with pytest.raises(NotFound, match=r"db\.t is another table now"):
        replacing.commit([done[2]])
    table = lake.table("db.t")
    assert table.snapshot() is None
    assert list(Path(table.location).rglob("*.parquet")) == []


def test_a_stream_does_not_go_on_with_another_table(lake: Lake, options: Options) -> None:
    reader = SnapshotReader(options, StructType().add("n", "long"))
    make_again(lake)
    with pytest.raises(NotFound, match=r"db\.t is another table now"):
        reader.latestOffset()
    reader.stop()
