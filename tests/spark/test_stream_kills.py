"""A stream that is killed and started again: every row is there, and once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from pyspark.sql import SparkSession

import icetree
from tests.spark.stream_dying import STEPS, stream

_SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "v", StringType(), required=False),
)
_REPOSITORY = Path(__file__).parents[2]


def _killed(folder: Path, step: str, number: int) -> bool:
    """Run the stream in a process of its own; return whether that was killed."""
    command = [sys.executable, "-m", "tests.spark.stream_dying", str(folder), step, str(number)]
    with (folder / "errors.txt").open("a") as errors:
        ended = subprocess.run(
            command,
            cwd=_REPOSITORY,
            stdout=errors,
            stderr=errors,
            start_new_session=True,
            timeout=300,
            check=False,
        )
    return ended.returncode == -signal.SIGKILL


#: The table is looked up once before the first batch, and once in each.
_WHOLE = dict(zip(STEPS, (3, 1, 1), strict=True))


@pytest.mark.parametrize(
    "kills",
    [{"before swap": 2}, pytest.param(_WHOLE, marks=pytest.mark.long)],
    ids=["once", "often"],
)
def test_a_stream_killed_at_any_moment_ends_with_every_row_once(
    spark: SparkSession, tmp_path: Path, kills: dict[str, int]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "lake").mkdir()
    for number in range(6):
        rows = [{"id": number * 10 + id, "v": f"file {number}"} for id in range(3)]
        text = "\n".join(json.dumps(row) for row in rows)
        (tmp_path / "in" / f"{number}.json").write_text(text)
    lake = icetree.connect(
        f"sqlite:///{tmp_path}/lake/catalog.db", warehouse=f"{tmp_path}/lake/warehouse"
    )
    lake.create_namespace("db")
    table = lake.create_table("db.t", _SCHEMA)
    errors = tmp_path / "errors.txt"
    for step, number in kills.items():
        assert _killed(tmp_path, step, number), errors.read_text()[-2000:]
    killed = len(list(table.refresh().history()))
    assert 0 < killed < 6
    stream(spark, tmp_path)
    ids = sorted(table.refresh().scan(columns=["id"]).to_arrow()["id"].to_pylist())
    assert ids == [number * 10 + id for number in range(6) for id in range(3)]
    assert len(list(table.history())) == 6
    assert table.verify(deep=True).is_clean
    lake.close()
