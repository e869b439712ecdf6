"""Single-file appends through a real SQLite catalog with fsync, as history grows.

Beside icetree, in the same run: PyIceberg's fast append of a prebuilt data file, and deltalake's
commit of a prebuilt add action. Each system has a table of its own on the same disk.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import linear_regression, quantiles

import pyarrow as pa

import icetree
from benchmarks.harness import Report, Timing, main
from icetree.catalog.base import Catalog
from icetree.spec.entry import Entry
from icetree.spec.stats import FieldStats
from icetree.store.slow import SlowStore
from icetree.table.connection import Connection
from icetree.table.table import Table

#: Where PyIceberg's figures are taken.
FAR = 1000
#: How many columns have stats by default, here as in Delta tables.
TRACKED = 32
#: As an object store answers: the catalog is as far away.
LATENCY_MS = 25.0


@dataclass(slots=True)
class Series:
    """What each commit of one system cost."""

    cpu_ms: list[float] = field(default_factory=list)
    wall_ms: list[float] = field(default_factory=list)
    size_bytes: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)

    def window(self, first: int, last: int) -> Timing:
        """Return the lower quartile of commits `first` to `last`, counted from 1."""
        at = slice(first - 1, last)
        return Timing(
            cpu_ms=quantiles(self.cpu_ms[at], n=4)[0], wall_ms=quantiles(self.wall_ms[at], n=4)[0]
        )

    def middle(self, numbers: list[int], first: int, last: int) -> int:
        """Return the median of a count over commits `first` to `last`."""
        return sorted(numbers[first - 1 : last])[(last - first) // 2]


def measure(report: Report, quick: bool) -> None:
    """Measure everything."""
    early, middle, late = (20, 150, 400) if quick else (50, 1000, 5000)
    span = 20 if quick else 50
    for columns in (5, 50):
        with tempfile.TemporaryDirectory() as folder:
            ours = _run(late, *_icetree(Path(folder), columns))
            peers = {"deltalake": _run(middle, *_deltalake(Path(folder), columns))}
            if columns == 5:
                peers["PyIceberg"] = _run(middle, *_pyiceberg(Path(folder), columns))
        _tell(report, {"icetree": ours, **peers}, columns, (early, middle, late), span)
        _judge(report, ours, peers, columns, (early, middle, late), span)
    _round_trips(report)


def _tell(
    report: Report,
    systems: dict[str, Series],
    columns: int,
    marks: tuple[int, int, int],
    span: int,
) -> None:
    for mark in marks:
        first = mark - span + 1
        for system, series in systems.items():
            if len(series.cpu_ms) >= mark:
                report.add(
                    f"commits {first} to {mark}, {columns} columns",
                    series.window(first, mark),
                    system=system,
                    bytes=series.middle(series.size_bytes, first, mark),
                    files=series.middle(series.files, first, mark),
                )


def _judge(
    report: Report,
    ours: Series,
    peers: dict[str, Series],
    columns: int,
    marks: tuple[int, int, int],
    span: int,
) -> None:
    early, middle, late = marks
    start, then, end = (ours.window(mark - span + 1, mark).cpu_ms for mark in marks)
    report.at_most(f"CPU at commit {late} over commit {early}, {columns} columns", end / start, 1.3)
    for name, reach in (("PyIceberg", 50.0), ("deltalake", 3.0)):
        if name in peers:
            theirs = peers[name].window(middle - span + 1, middle).cpu_ms
            at = middle
            if name == "PyIceberg" and middle < FAR:
                # Its cost grows by the same amount with every commit, so a line tells the rest.
                theirs, at = _projected(peers[name].cpu_ms), FAR
            report.at_least(
                f"CPU of {name} over ours at commit {at}, {columns} columns", theirs / then, reach
            )
    if "PyIceberg" in peers:
        ours_bytes = ours.middle(ours.size_bytes, late - span + 1, late)
        theirs_bytes = _projected([float(size) for size in peers["PyIceberg"].size_bytes])
        report.at_most(
            f"metadata bytes over PyIceberg's at commit {FAR}", ours_bytes / theirs_bytes, 1 / 8
        )
    manifests = ours.middle(ours.files, middle - span + 1, middle) - 1
    report.at_most(f"new manifests a small commit, {columns} columns", manifests, 1)


def _projected(values: list[float]) -> float:
    """Return what a series that grows on a line comes to at commit `FAR`, by least squares."""
    slope, start = linear_regression(range(1, len(values) + 1), values)
    return start + slope * FAR


Commit = Callable[[int], None]


def _run(count: int, where: Path, commit: Commit) -> Series:
    """Commit again and again, and note what each took and wrote."""
    series = Series()
    known = _sizes(where)
    for number in range(count):
        wall, cpu = time.perf_counter(), time.process_time()
        commit(number)
        series.cpu_ms.append((time.process_time() - cpu) * 1000)
        series.wall_ms.append((time.perf_counter() - wall) * 1000)
        now = _sizes(where)
        new = now.keys() - known.keys()
        series.files.append(len(new))
        series.size_bytes.append(sum(now[name] for name in new))
        known = now
    return series


def _sizes(where: Path) -> dict[str, int]:
    found = {}
    if where.exists():
        with os.scandir(where) as entries:
            for entry in entries:
                found[entry.name] = entry.stat().st_size
    return found


# --- the systems -----------------------------------------------------------------------------


def _schema(columns: int) -> pa.Schema:
    return pa.schema([pa.field(f"c{i}", pa.int64()) for i in range(columns)])


def _icetree(folder: Path, columns: int) -> tuple[Path, Commit]:
    lake = icetree.connect(f"sqlite:///{folder}/ours.db", warehouse=str(folder / "ours"))
    lake.create_namespace("db")
    table = lake.create_table("db.t", _schema(columns))

    def commit(number: int) -> None:
        table.append_files([_our_file(number, columns)])

    return folder / "ours/db/t/metadata", commit


def _our_file(number: int, columns: int) -> Entry:
    bounds = FieldStats(lower=number, upper=number + 9, tight=True, values=10, nulls=0)
    return Entry(
        location=f"data/{number:06d}-{uuid.uuid4()}.parquet",
        record_count=10,
        file_size_in_bytes=1000,
        split_offsets=[4],
        stats=dict.fromkeys(range(1, min(columns, TRACKED) + 1), bounds),
    )


def _pyiceberg(folder: Path, columns: int) -> tuple[Path, Commit]:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.conversions import to_bytes
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record
    from pyiceberg.types import LongType

    catalog = SqlCatalog(
        "peer", uri=f"sqlite:///{folder}/peer.db", warehouse=f"file://{folder}/peer"
    )
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", _schema(columns))
    ids = range(1, columns + 1)

    def commit(number: int) -> None:
        low, high = (to_bytes(LongType(), value) for value in (number, number + 9))
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"file://{folder}/peer/db/t/data/{number:06d}-{uuid.uuid4()}.parquet",
            file_format=FileFormat.PARQUET,
            partition=Record(),
            record_count=10,
            file_size_in_bytes=1000,
            value_counts=dict.fromkeys(ids, 10),
            null_value_counts=dict.fromkeys(ids, 0),
            lower_bounds=dict.fromkeys(ids, low),
            upper_bounds=dict.fromkeys(ids, high),
            split_offsets=[4],
        )
        file.spec_id = 0
        with table.transaction() as tx, tx.update_snapshot().fast_append() as append:
            append.append_data_file(file)

    return folder / "peer/db/t/metadata", commit


def _deltalake(folder: Path, columns: int) -> tuple[Path, Commit]:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction

    place = folder / f"delta{columns}"
    DeltaTable.create(place.as_uri(), schema=_schema(columns), mode="error")
    table = DeltaTable(place.as_uri())
    names = [f"c{i}" for i in range(min(columns, TRACKED))]

    def commit(number: int) -> None:
        stats = {
            "numRecords": 10,
            "minValues": dict.fromkeys(names, number),
            "maxValues": dict.fromkeys(names, number + 9),
            "nullCount": dict.fromkeys(names, 0),
        }
        action = AddAction(
            path=f"{number:06d}-{uuid.uuid4()}.parquet",
            size=1000,
            partition_values={},
            modification_time=int(time.time() * 1000),
            data_change=True,
            stats=json.dumps(stats),
        )
        table.create_write_transaction([action], "append", _schema(columns))

    return place / "_delta_log", commit


# --- far away --------------------------------------------------------------------------------


class _FarCatalog:
    """A catalog that takes as long as the store to answer, and counts its answers."""

    def __init__(self, inner: Catalog) -> None:
        self._inner = inner
        self.answers = 0

    def __getattr__(self, name: str) -> object:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def far(*args: object, **more: object) -> object:
            time.sleep(LATENCY_MS / 1000)
            self.answers += 1
            return found(*args, **more)

        return far


@contextmanager
def _far_table(folder: Path) -> Iterator[tuple[SlowStore, _FarCatalog, Table]]:
    near = icetree.connect(f"sqlite:///{folder}/far.db", warehouse=str(folder / "far"))
    store = SlowStore(near.store, latency_ms=LATENCY_MS, bytes_per_s=80e6)
    catalog = _FarCatalog(near.catalog)
    lake = Connection(catalog=catalog, store=store, warehouse=str(folder / "far"))  # type: ignore[arg-type]
    lake.create_namespace("db")
    yield store, catalog, lake.create_table("db.t", _schema(5))
    near.close()


def _round_trips(report: Report) -> None:
    """Count what a warm commit waits for, one after the other, when everything is far away."""
    with tempfile.TemporaryDirectory() as name, _far_table(Path(name)) as (store, catalog, table):
        for number in range(5):
            table.append_files([_our_file(number, 5)])
        rounds, cpu, wall = [], [], []
        for number in range(5, 25):
            store.forget()
            catalog.answers = 0
            started, busy = time.perf_counter(), time.process_time()
            table.append_files([_our_file(number, 5)])
            cpu.append((time.process_time() - busy) * 1000)
            wall.append((time.perf_counter() - started) * 1000)
            rounds.append(store.rounds() + catalog.answers)
    report.add(
        f"warm commit, store and catalog {LATENCY_MS:g} ms away",
        Timing(cpu_ms=quantiles(cpu, n=4)[0], wall_ms=quantiles(wall, n=4)[0]),
    )
    report.at_most("round trips in sequence of a warm commit", max(rounds), 2)


if __name__ == "__main__":
    sys.exit(main("commit", __doc__, measure))
