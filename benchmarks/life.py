"""A table that lived: thousands of small commits and hundreds of deletes, and what tidying up makes of it.

It is measured beside a table that was loaded at once with the rows that are left.
"""

from __future__ import annotations

import random
import time
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa

import icetree
from benchmarks.harness import Report, Timing, time_each
from icetree.table.lake import Lake
from icetree.table.table import Table
from icetree.tree.reading import leaves_in

ROWS_EACH: Final = 50
#: More leaves than this for so many files, or part of them, are too many.
_LEAVES: Final = 3
_FILES: Final = 100_000


def measure_life(report: Report, folder: Path, *, commits: int, deletes: int) -> None:
    """Let a table live, tidy it up, and measure what is left."""
    lake = _lake(folder)
    lived = _lived(report, lake, commits, deletes)
    rows = lived.scan().to_arrow()
    _tidied(report, lived)
    if lived.scan().to_arrow().num_rows != rows.num_rows:
        raise RuntimeError("tidying up changed the rows")
    loaded = lake.create_table("db.loaded", rows.schema)
    loaded.append(rows)
    took = time_each(
        {name: partial(_plan, folder, name) for name in ("db.lived", "db.loaded")}, seconds=3.0
    )
    for name, timing in took.items():
        files = lake.table(name).scan().plan().tasks.num_rows
        report.add(f"plan of {name.removeprefix('db.')}", timing, files=files)
    report.at_most(
        "plan after a life over one of a bulk load",
        took["db.lived"].cpu_ms / took["db.loaded"].cpu_ms,
        1.2,
    )
    leaves, files = _leaves(lived), lived.scan().plan().tasks.num_rows
    report.at_most("leaves after a life", leaves, _LEAVES * max(1, -(-files // _FILES)))
    report.at_most("bytes on disk over those needed", _stored_over_needed(lived), 1.05)


def _lake(folder: Path) -> Lake:
    return icetree.connect(f"sqlite:///{folder}/life.db", warehouse=str(folder / "life"))


def _lived(report: Report, lake: Lake, commits: int, deletes: int) -> Table:
    lake.create_namespace("db")
    schema = pa.schema([("id", pa.int64()), ("v", pa.float64()), ("name", pa.string())])
    tidy = {"write.metadata.delete-after-commit.enabled": "true"}
    table = lake.create_table("db.lived", schema, properties=tidy)
    choose = random.Random(7)
    report.tell(f"a life of {commits:,} commits and {deletes:,} deletes")
    started, cpu = time.perf_counter(), time.process_time()
    for number in range(commits):
        first = number * ROWS_EACH
        ids = range(first, first + ROWS_EACH)
        names = [f"name {choose.randrange(1000)}" for _ in ids]
        table.append(pa.table({"id": ids, "v": [choose.random() for _ in ids], "name": names}))
        if number % (commits // deletes) == 0:
            gone = choose.randrange(first + ROWS_EACH)
            table.delete(f"id >= {gone} and id < {gone + 20}")
    report.add("life", _timing(started, cpu), files=table.scan().plan().tasks.num_rows)
    return table


def _tidied(report: Report, table: Table) -> None:
    started, cpu = time.perf_counter(), time.process_time()
    table.maintenance.optimize()
    table.maintenance.expire_snapshots(older_than=datetime.now(timezone.utc), retain_last=1)
    report.add("optimize and expire", _timing(started, cpu))


def _timing(started: float, cpu: float) -> Timing:
    return Timing(
        cpu_ms=(time.process_time() - cpu) * 1000, wall_ms=(time.perf_counter() - started) * 1000
    )


def _plan(folder: Path, name: str) -> object:
    return _lake(folder).table(name).scan().plan()


def _leaves(table: Table) -> int:
    return len(leaves_in(table.files.root(table.snapshot(), table.metadata.shape())))


def _stored_over_needed(table: Table) -> float:
    """Return the bytes in the table's folder over those of files that some snapshot needs."""
    soon = datetime.now(timezone.utc) + timedelta(seconds=1)
    time.sleep(1.5)
    search = table.maintenance.remove_orphan_files
    lost = search(older_than=soon, force=True, dry_run=True).orphan_file_location
    sizes = {
        str(each): each.stat().st_size
        for each in Path(table.location.removeprefix("file://")).rglob("*")
        if each.is_file()
    }
    stored, unneeded = (
        sum(sizes.values()),
        sum(sizes.get(name.removeprefix("file://"), 0) for name in lost),
    )
    return stored / (stored - unneeded)
