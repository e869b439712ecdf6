"""Maintenance beside writers in processes of their own: no row is lost, and the table stays sound."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pyarrow as pa

import icetree
from icetree.surroundings import Machine, within
from tests.effort import EFFORT

COMMITS = 5 * EFFORT
#: A commit under way is younger than this; what is planted is older.
GUARD_S = 600
DAYS_MS = 3 * 86_400_000


class Ahead(Machine):
    """Surroundings in which the guard of three days is one of minutes, by the clock alone."""

    def now_ms(self) -> int:
        return super().now_ms() + DAYS_MS - GUARD_S * 1_000


def plant(table_folder: Path, number: int) -> Path:
    """Put a file below the table that nothing names, and that is older than the guard."""
    found = table_folder / "data" / f"stray-{number}.parquet"
    found.parent.mkdir(exist_ok=True)
    found.write_bytes(b"nobody's")
    then = time.time() - 2 * GUARD_S
    os.utime(found, (then, then))
    return found


def test_orphans_and_old_snapshots_go_beside_two_writers_and_no_row_does(tmp_path: Path) -> None:
    with icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        small = {"write.root.max-data-entries": "3", "write.metadata.inline-snapshots": "3"}
        table = lake.create_table("db.t", pa.schema([("id", pa.int64())]), properties=small)
        place = Path(table.location)
        writers = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.table.maintain.appending",
                    str(tmp_path),
                    first,
                    str(COMMITS),
                ],
                cwd=Path(__file__).parents[3],
                stdout=subprocess.PIPE,
                text=True,
            )
            for first in ("0", "1000000")
        ]
        removed: set[str] = set()
        planted: set[str] = set()
        for number in count():
            planted.add(str(plant(place, number)))
            with within(Ahead()):
                removed |= {*table.maintenance.remove_orphan_files().orphan_file_location}
            if number % 3 == 2:
                table.maintenance.expire_snapshots(older_than="2100-01-01", retain_last=4)
            if all(each.poll() is not None for each in writers):
                break
        left = [json.loads(each.communicate()[0]) for each in writers]
        assert [each.returncode for each in writers] == [0, 0]
        assert removed == planted
        found = table.refresh().scan().to_arrow()["id"].to_pylist()
        assert sorted(found) == sorted(id for ids in left for id in ids)
        assert len(found) == 2 * COMMITS
        assert table.verify(deep=True).findings == ()
