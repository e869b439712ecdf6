"""Upserts and deletes of rows in one process, beside PyIceberg, on the same rows in the same run.

Each system has its own table of the same files and does the same statement in a process of its own,
which tells how long it took and how far its memory rose.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks.harness import Report, Timing, main, rss_rise_mb

#: Rows in a file of the table.
FILE_ROWS: Final = 1_000_000
SYSTEMS: Final = ("icetree", "PyIceberg")


def measure(report: Report, quick: bool) -> None:
    """Measure everything."""
    size, changed = (1_000_000, 10_000) if quick else (10_000_000, 100_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case in ("upsert", "delete"):
            told = {}
            for system in SYSTEMS:
                report.tell(f"{case}, {system}: {changed:,} of {size:,} rows")
                told[system] = _apart(folder / f"{case}-{system}", case, system, size, changed)
                report.add(f"{case} of {changed:,} rows", system=system, **_shown(told[system]))
            ours, theirs = (told[system] for system in SYSTEMS)
            assert ours["rows"] == theirs["rows"], (ours, theirs)
            # Of CPU time: what else the machine does adds least to that.
            faster = theirs["cpu_ms"] / ours["cpu_ms"]
            report.at_least(f"{case}: times faster", faster, 10 if case == "upsert" else 5)
            share = ours["rss_mb"] / max(theirs["rss_mb"], 1)
            report.at_most(f"{case}: memory, as a share of PyIceberg's", share, 0.5)


def _shown(told: dict[str, Any]) -> dict[str, Any]:
    timing = Timing(cpu_ms=told["cpu_ms"], wall_ms=told["wall_ms"])
    return {"timing": timing, "rss_mb": told["rss_mb"]}


def _apart(folder: Path, case: str, system: str, size: int, changed: int) -> dict[str, Any]:
    """Do it in a process of its own; return what that tells."""
    folder.mkdir()
    command = [sys.executable, "-m", "benchmarks.rows", "--apart", str(folder)]
    command += [case, system, str(size), str(changed)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


# --- in the process of a system ------------------------------------------------------------------


def some(ids: np.ndarray[Any, np.dtype[np.int64]], mark: str) -> pa.Table:
    """Return rows with these ids: two numbers, a text and a time beside each."""
    return pa.table(
        {
            "id": ids,
            "n": (ids * 7919) % 1_000_003,
            "x": ids / 3,
            "s": pa.array(np.char.add(f"{mark}-", (ids % 1000).astype(str))),
            "at": pa.array(ids * 1_000_000, pa.timestamp("us")),
        }
    )


def _table(folder: Path, system: str, schema: pa.Schema) -> Any:
    (folder / "lake").mkdir()
    if system == "icetree":
        import icetree

        lake = icetree.connect(f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "lake"))
        lake.create_namespace("db")
        return lake.create_table("db.t", schema)
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog(
        "c", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/lake"
    )
    catalog.create_namespace("db")
    return catalog.create_table("db.t", schema)


def _statement(table: Any, case: str, system: str, size: int, changed: int) -> Any:
    if case == "delete":
        every = size // changed
        # A hundredth of all rows, spread over all files.
        least = 1_000_003 - 1_000_003 // every
        return lambda: table.delete(f"n >= {least}")
    # One half of the rows is in the table, spread over it, the other is new.
    old = np.linspace(0, size - 1, changed // 2).astype(np.int64)
    rows = some(np.concatenate([old, size + np.arange(changed - len(old))]), "new")
    if system == "icetree":
        return lambda: table.upsert(rows, on=["id"])
    return lambda: table.upsert(rows, join_cols=["id"])


def _told(folder: Path, case: str, system: str, size: int, changed: int) -> dict[str, Any]:
    made = some(np.arange(min(size, FILE_ROWS)), "old")
    table = _table(folder, system, made.schema)
    for start in range(0, size, FILE_ROWS):
        table.append(some(np.arange(start, min(size, start + FILE_ROWS)), "old"))
    del made
    do = _statement(table, case, system, size, changed)
    spent: dict[str, float] = {}

    def timed() -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        do()
        spent["wall_ms"] = (time.perf_counter() - wall) * 1000
        spent["cpu_ms"] = (time.process_time() - cpu) * 1000

    rise = rss_rise_mb(timed)
    found = table.scan().to_arrow() if size <= FILE_ROWS else None
    left = table.scan().count() if found is None else found.num_rows
    return {**spent, "rss_mb": rise or 0.0, "rows": left}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--apart"]:
        place, what, who, *numbers = sys.argv[2:]
        print(json.dumps(_told(Path(place), what, who, *map(int, numbers))))
    else:
        sys.exit(main("rows", __doc__, measure))
