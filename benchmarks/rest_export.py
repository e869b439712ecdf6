"""Exports of a table of many files as v3: all of it at first, then what one small commit changed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.data import SLOT
from benchmarks.harness import Report, Timing
from benchmarks.plan_tables import files, open_lake
from icetree.table.export.export import Exported
from icetree.table.table import Table

#: What one small commit may cost, as it was asked for.
REACH_MS: Final = 300


def measure(report: Report, folder: Path, count: int, *, rounds: int) -> None:
    """Export `db.t<count>`, then after each of some appends, and of deletes from its largest leaf."""
    with open_lake(folder) as lake:
        table = lake.table(f"db.t{count}")
        took, told = _timed(table.export)
        report.add(f"first export of {count:,} files", took, bytes=_bytes(table, told), files=count)
        for word, change in (("append", _append), ("delete", _delete)):
            spent = []
            for number in range(rounds):
                change(table, count, number)
                took, told = _timed(table.export)
                spent.append(took)
            took = Timing(
                cpu_ms=_quartile([each.cpu_ms for each in spent]),
                wall_ms=_quartile([each.wall_ms for each in spent]),
            )
            case = f"export after one small {word}, {count:,} files"
            report.add(case, took, bytes=_bytes(table, told), files=count)
            report.at_most(f"{case}, ms", took.wall_ms, REACH_MS)


def _append(table: Table, count: int, number: int) -> None:
    """Add a file that no other is like."""
    table.append_files(files(np.array([count + number]), count, table.metadata.shape()))


def _delete(table: Table, count: int, number: int) -> None:
    """Remove a file from the midst of the table, each from another part of the same leaves."""
    first = (count // 2 + 97 * number) % count * SLOT
    plan = table.scan(where=f"id >= {first} and id < {first + SLOT}").plan()
    table.delete_files(plan.tasks["location"].to_pylist())


def _timed(run: Callable[[], Exported]) -> tuple[Timing, Exported]:
    wall, cpu = time.perf_counter(), time.process_time()
    told = run()
    return Timing(
        cpu_ms=(time.process_time() - cpu) * 1000, wall_ms=(time.perf_counter() - wall) * 1000
    ), told


def _bytes(table: Table, told: Exported) -> int:
    return sum(map(table.files.store.size, told.written))


def _quartile(values: list[float]) -> float:
    return statistics.quantiles(values, n=4)[0]
