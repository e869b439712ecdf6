"""Planning scans of tables on disk: cold, and warm after one commit of somebody else.

Beside icetree, in the same run: PyIceberg's `plan_files` and deltalake's `file_uris`. No data
file is there: planning reads metadata alone. A cold plan opens the catalog, loads the table and
plans; the system's own cache of files is left as it is, for every system.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from statistics import linear_regression, quantiles
from typing import Final

import numpy as np
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType

from benchmarks import plan_tables
from benchmarks.data import SLOT
from benchmarks.harness import Report, Timing, main, rss_rise_mb, time_each
from benchmarks.plan_tables import (
    BUCKETS,
    DAYS,
    FIRST_DAY,
    KEY,
    SPREAD,
    TIME,
    UNSORTED,
    open_lake,
)
from icetree.table.lake import Lake
from icetree.tree.plan.tasks import Plan
from tests.store.slow import SlowStore

#: How many files the filter on the sorted column matches.
MATCHES: Final = 100
#: A filter on a column that no table is partitioned or sorted by.
NEITHER: Final = f"column_{UNSORTED} = {SPREAD // 2}"
#: Where peers are compared.
FAR: Final = 100_000

#: Numbers of files that are added later: no name comes twice.
_NUMBERS: Final = count()


def measure(report: Report, quick: bool) -> None:
    """Measure everything."""
    sizes = (1_000, 10_000, FAR, 200_000 if quick else 1_000_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size in sizes:
            report.tell(f"making a table of {size:,} files")
            plan_tables.build(folder, size)
            _plans(report, folder, size, largest=size == sizes[-1], quick=quick)
        _streamed(report, folder, sizes[-2], sizes[-1])
        _peers(report, folder, (2_000, 10_000) if quick else (10_000, FAR))


def _filters(size: int) -> dict[str, str]:
    """Return a filter for each way of finding files, by what it is on."""
    middle = size // 2
    day = np.datetime64(FIRST_DAY + DAYS // 2, "D")
    bucket = BucketTransform(BUCKETS).transform(LongType())
    key = next(key for key in range(1000) if bucket(key) == 3)
    return {
        "day": f"column_{TIME} >= '{day}' and column_{TIME} < '{day + 1}'",
        "sorted": f"id >= {middle * SLOT} and id < {(middle + MATCHES) * SLOT}",
        "unsorted": NEITHER,
        "bucket": f"column_{KEY} = {key}",
        "bucket and day": f"bucket({BUCKETS}, column_{KEY}) = 3 and day(column_{TIME}) = '{day}'",
    }


# --- one table ------------------------------------------------------------------------------


def _plans(report: Report, folder: Path, size: int, *, largest: bool, quick: bool) -> None:
    filters = _filters(size)
    runs = {name: partial(_cold, folder, size, where) for name, where in filters.items()}
    took = time_each(runs, seconds=1.0 if quick else 5.0, least=5)
    for name, where in filters.items():
        rise = rss_rise_mb(runs[name])
        found, read = _looked_at(folder, size, where)
        report.add(
            f"{size:,} files, {name}, cold",
            took[name],
            bytes=read,
            files=found.tasks.num_rows,
            rss_mb=rise,
            leaves=found.metrics.data_leaves_read,
        )
        if largest:
            report.at_most(f"{size:,} files, {name}, cold, wall ms", took[name].wall_ms, 1000)
            if rise is not None:
                report.at_most(f"{size:,} files, {name}, cold, MB of memory", rise, 400)
        warm, read = _warm(folder, size, where, rounds=8 if quick else 20)
        report.add(f"{size:,} files, {name}, warm", warm, bytes=read)
        if largest and name != "bucket":
            # A bucket is a sixteenth of all files: what it takes is to list them.
            report.at_most(f"{size:,} files, {name}, warm, CPU ms", warm.cpu_ms, 10)


def _cold(folder: Path, size: int, where: str) -> Plan:
    with open_lake(folder) as lake:
        return lake.table(f"db.t{size}").scan(where).plan()


def _looked_at(folder: Path, size: int, where: str) -> tuple[Plan, int]:
    """Return a cold plan and the bytes that it read."""
    with _logged(folder) as lake:
        found = lake.table(f"db.t{size}").scan(where).plan()
        assert isinstance(lake.store, SlowStore)
        return found, _bytes_read(lake.store)


def _logged(folder: Path) -> Lake:
    lake = open_lake(folder)
    store = SlowStore(lake.store, latency_ms=0, bytes_per_s=None)
    return Lake(catalog=lake.catalog, store=store, warehouse=lake.warehouse)


def _bytes_read(store: SlowStore) -> int:
    reads = (each for each in store.answered if each.operation.startswith("read"))
    return sum(each.size_bytes for each in reads)


def _warm(folder: Path, size: int, where: str, *, rounds: int) -> tuple[Timing, int]:
    """Return what it takes to plan again after a commit of another process, and bytes read.

    The table is refreshed for it: the catalog is asked, the new metadata and root are read.
    """
    with open_lake(folder) as other, _logged(folder) as lake:
        writer, table = other.table(f"db.t{size}"), lake.table(f"db.t{size}")
        table.scan(where).plan()
        shape = writer.metadata.shape()
        store = table.files.store
        assert isinstance(store, SlowStore)

        def commit() -> None:
            number = size + next(_NUMBERS)
            writer.append_files(plan_tables.files(np.array([number]), size, shape))
            store.forget()

        again = {"": lambda: table.refresh().scan(where).plan()}
        [timing] = _in_turn(again, rounds=rounds, before=commit).values()
        return timing, _bytes_read(store)


def _in_turn(
    runs: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    turn_s: float = 0.0,
    before: Callable[[], None] = lambda: None,
) -> dict[str, Timing]:
    """Return the lower quartiles of what each takes, one after the other in every round.

    Unlike in `time_each` garbage is collected as it is for users: to make an object of each of
    100,000 entries, as a peer does, costs that too. It is that of the others no more once a turn
    begins. Who is fast runs again, until its turn has lasted `turn_s`.
    """
    cpu: dict[str, list[float]] = {name: [] for name in runs}
    wall: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        before()
        for name, run in runs.items():
            gc.collect()
            turn = time.perf_counter()
            while True:
                started, busy = time.perf_counter(), time.process_time()
                run()
                cpu[name].append((time.process_time() - busy) * 1000)
                wall[name].append((time.perf_counter() - started) * 1000)
                if time.perf_counter() - turn >= turn_s:
                    break
    return {
        name: Timing(
            cpu_ms=quantiles(cpu[name], n=4, method="inclusive")[0],
            wall_ms=quantiles(wall[name], n=4, method="inclusive")[0],
        )
        for name in runs
    }


# --- streams --------------------------------------------------------------------------------


def _streamed(report: Report, folder: Path, small: int, large: int) -> None:
    """Take every file of a table, part by part, and compare the memory that takes."""
    rises = []
    for size in (small, large):
        run = partial(_stream, folder, size)
        [timing] = time_each({"": run}, seconds=0, least=3).values()
        rise = rss_rise_mb(run)
        report.add(f"{size:,} files, all, part by part", timing, files=run(), rss_mb=rise)
        rises.append(rise)
    less, more = rises
    if less is not None and more is not None:
        report.at_most(
            f"MB of memory, {large:,} files part by part, less half as much again as {small:,}",
            more - 1.5 * less,
            50,
        )


def _stream(folder: Path, size: int) -> int:
    with open_lake(folder) as lake:
        parts = lake.table(f"db.t{size}").scan().plan_parts()
        return sum(part.tasks.num_rows for part in parts)


# --- peers ----------------------------------------------------------------------------------


def _peers(report: Report, folder: Path, sizes: tuple[int, ...]) -> None:
    """Plan filters on columns that no table is partitioned by."""
    cost: dict[tuple[str, str], list[float]] = {}
    for size in sizes:
        report.tell(f"making tables of {size:,} files in PyIceberg and deltalake")
        peers = {
            "PyIceberg": plan_tables.pyiceberg_table(folder, size),
            "deltalake": plan_tables.deltalake_table(folder, size),
        }
        for name, where in {
            "sorted": f"column_1 = {size // 2 * SLOT}",
            "unsorted": NEITHER,
        }.items():
            ours = _filters(FAR)[name]
            runs: dict[str, Callable[[], object]] = {"icetree": partial(_cold, folder, FAR, ours)}
            runs |= {system: partial(plan, where) for system, plan in peers.items()}
            for run in runs.values():
                run()
            for system, timing in _in_turn(runs, rounds=3, turn_s=0.5).items():
                cost.setdefault((system, name), []).append(timing.cpu_ms)
                if system in peers:
                    case, files = f"{size:,} files, {name}, cold", peers[system](where)
                    report.add(case, timing, system=system, files=files)
    for (system, name), costs in cost.items():
        if system == "icetree":
            continue
        theirs = costs[-1]
        if sizes[-1] < FAR:
            # They read every entry of a table, so a line through two tables tells of a third.
            slope, start = linear_regression(sizes, costs)
            theirs = start + slope * FAR
        report.at_least(
            f"CPU of {system} over ours, {FAR:,} files, {name}",
            theirs / min(cost["icetree", name]),
            {"PyIceberg": 100.0, "deltalake": 20.0}[system],
        )


if __name__ == "__main__":
    sys.exit(main("plan", __doc__, measure))
