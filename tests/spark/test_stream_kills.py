"""A stream that comes to an end at any moment and is started again: every row is there, and once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import icetree
from icetree.table.table import Table
from tests.spark.stream_dying import STEPS, End, stream

_SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "v", StringType(), required=False),
)
_REPOSITORY = Path(__file__).parents[2]
_FILES = 6
#: The table is looked up once before the first batch, and once in each.
_ENDS = dict(zip(STEPS, (3, 1, 1), strict=True))


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    """Return a table beside files that wait to be streamed into it."""
    (tmp_path / "in").mkdir()
    (tmp_path / "lake").mkdir()
    for number in range(_FILES):
        rows = [{"id": number * 10 + id, "v": f"file {number}"} for id in range(3)]
        text = "\n".join(json.dumps(row) for row in rows)
        (tmp_path / "in" / f"{number}.json").write_text(text)
    lake = icetree.connect(
        f"sqlite:///{tmp_path}/lake/catalog.db", warehouse=f"{tmp_path}/lake/warehouse"
    )
    lake.create_namespace("db")
    yield lake.create_table("db.t", _SCHEMA)
    lake.close()


def _finish(spark: SparkSession, folder: Path, table: Table) -> None:
    """Start the stream once more: then each row is there once, each file in a commit of its own."""
    assert 0 < len(list(table.refresh().history())) < _FILES
    stream(spark, folder)
    ids = sorted(table.refresh().scan(columns=["id"]).to_arrow()["id"].to_pylist())
    assert ids == [number * 10 + id for number in range(_FILES) for id in range(3)]
    assert len(list(table.history())) == _FILES
    assert table.verify(deep=True).is_clean


def test_a_stream_cut_off_at_any_moment_ends_with_every_row_once(
    spark: SparkSession, tmp_path: Path, table: Table
) -> None:
    def cut_off() -> None:
        raise RuntimeError("cut off")

    for step, number in _ENDS.items():
        with pytest.raises(StreamingQueryException, match="cut off"):
            stream(spark, tmp_path, End(step=step, number=number, by=cut_off))
    _finish(spark, tmp_path, table)


@pytest.mark.long
def test_a_stream_killed_at_any_moment_ends_with_every_row_once(
    spark: SparkSession, tmp_path: Path, table: Table
) -> None:
    for step, number in _ENDS.items():
        command = [sys.executable, "-m", "tests.spark.stream_dying", tmp_path, step, str(number)]
        with (tmp_path / "errors.txt").open("w+") as errors:
            ended = subprocess.run(
                command,
                cwd=_REPOSITORY,
                stdout=errors,
                stderr=errors,
                start_new_session=True,
                timeout=300,
                check=False,
            )
            errors.seek(0)
            assert ended.returncode == -signal.SIGKILL, errors.read()[-2000:]
    _finish(spark, tmp_path, table)
