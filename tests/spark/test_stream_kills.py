"""A stream that is killed and started again: every row is there, and once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

import icetree
from tests.spark.stream_dying import STEPS

_SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "v", StringType(), required=False),
)
_REPOSITORY = Path(__file__).parents[2]


def _stream(folder: Path, step: str = "never", number: int = 0) -> int:
    """Run the stream in a process of its own; return how that ended."""
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
    return ended.returncode


def test_a_stream_killed_at_any_moment_ends_with_every_row_once(tmp_path: Path) -> None:
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
    # The table is looked up once before the first batch, and once in each.
    for step, number in zip(STEPS, (3, 1, 1), strict=True):
        assert _stream(tmp_path, step, number) == -signal.SIGKILL, errors.read_text()[-2000:]
    killed = len(list(table.refresh().history()))
    assert 0 < killed < 6
    assert _stream(tmp_path) == 0, errors.read_text()[-2000:]
    ids = sorted(table.refresh().scan(columns=["id"]).to_arrow()["id"].to_pylist())
    assert ids == [number * 10 + id for number in range(6) for id in range(3)]
    assert len(list(table.history())) == 6
    assert table.verify(deep=True).is_clean
    lake.close()
