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
from icetree.spec.entry.entry import Entry
from icetree.spec.entry.stats import FieldStats
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.store.slow import SlowStore

#: Where PyIceberg's figures are taken.
FAR = 1000
#: How many columns have stats by default, here as in Delta tables.
TRACKED = 32
#: As an object store answers: the catalog is as far away.
LATENCY_MS = 25.0


Commit = Callable[[int], None]


@dataclass(slots=True)
class Series:
    """A table that one system commits to, and what each commit cost."""

    where: Path
    commit: Commit
    cpu_ms: list[float] = field(default_factory=list)
    wall_ms: list[float] = field(default_factory=list)
    size_bytes: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)

    def step(self) -> None:
        """Commit once, and note what it took and wrote."""
        wall, cpu = time.perf_counter(), time.process_time()
        self.commit(len(self.cpu_ms))
        self.cpu_ms.append((time.process_time() - cpu) * 1000)
        self.wall_ms.append((time.perf_counter() - wall) * 1000)
        now = _sizes(self.where)
        new = now.keys() - self.known.keys()
        self.files.append(len(new))
        self.size_bytes.append(sum(now[name] for name in new))
        self.known = now

    def last(self, count: int) -> Timing:
        """Return the lower quartile of the last `count` commits."""
        return Timing(
            cpu_ms=quantiles(self.cpu_ms[-count:], n=4)[0],
            wall_ms=quantiles(self.wall_ms[-count:], n=4)[0],
        )


def measure(report: Report, quick: bool) -> None:
    """Measure everything."""
    span = 20 if quick else 50
    early, middle, late = (span, 150, 400) if quick else (span, FAR, 5000)
    for columns in (5, 50):
        with tempfile.TemporaryDirectory() as folder:
            tables = {
                ("icetree", mark): Series(*_icetree(Path(folder, str(mark)), columns))
                for mark in (early, middle, late)
            }
            tables["deltalake", middle] = Series(*_deltalake(Path(folder), columns))
            if columns == 5:
                tables["PyIceberg", middle] = Series(*_pyiceberg(Path(folder), columns))
            _run(report, tables, span, columns)
            _tell(report, tables, span, columns)
            _judge(report, tables, (early, middle, late), span, columns)
    _round_trips(report)


#: A table for each system and each count of commits to be measured at.
Tables = dict[tuple[str, int], Series]


def _run(report: Report, tables: Tables, span: int, columns: int) -> None:
    """Commit to each table until it lacks `span` commits, then to all of them in turn.

    A machine is not equally fast all the time: what is compared is measured turn by turn.
    """
    for (system, mark), series in tables.items():
        report.tell(f"  {mark - span:,} commits of {system}, {columns} columns")
        for _ in range(mark - span):
            series.step()
    for _ in range(span):
        for series in tables.values():
            series.step()


def _tell(report: Report, tables: Tables, span: int, columns: int) -> None:
    for (system, mark), series in tables.items():
        report.add(
            f"commits {mark - span + 1} to {mark}, {columns} columns",
            series.last(span),
            system=system,
            bytes=_middle(series.size_bytes[-span:]),
            files=_middle(series.files[-span:]),
        )


def _judge(
    report: Report, tables: Tables, marks: tuple[int, int, int], span: int, columns: int
) -> None:
    early, middle, late = marks
    ours = {mark: tables["icetree", mark] for mark in marks}
    start, then, end = (ours[mark].last(span).cpu_ms for mark in marks)
    report.at_most(f"CPU at commit {late} over commit {early}, {columns} columns", end / start, 1.3)
    deltalake = tables["deltalake", middle].last(span).cpu_ms
    report.at_least(
        f"CPU of deltalake over ours at commit {middle}, {columns} columns", deltalake / then, 3.0
    )
    peer = tables.get(("PyIceberg", middle))
    if peer is not None:
        # Its cost grows by the same amount with every commit, so a line tells the rest.
        far = peer.last(span).cpu_ms if middle == FAR else _projected(peer.cpu_ms)
        report.at_least(
            f"CPU of PyIceberg over ours at commit {FAR}, {columns} columns", far / then, 50.0
        )
        report.at_most(
            f"metadata bytes over PyIceberg's at commit {FAR}",
            _middle(ours[late].size_bytes[-span:])
            / _projected([float(size) for size in peer.size_bytes]),
            1 / 8,
        )
    manifests = _middle(ours[middle].files[-span:]) - 1
    report.at_most(f"new manifests a small commit, {columns} columns", manifests, 1)


def _middle(numbers: list[int]) -> int:
    return sorted(numbers)[len(numbers) // 2]


def _projected(values: list[float]) -> float:
    """Return what a series that grows on a line comes to at commit `FAR`, by least squares."""
    slope, start = linear_regression(range(1, len(values) + 1), values)
    return start + slope * FAR


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
    folder.mkdir()
    lake = icetree.connect(f"sqlite:///{folder}/ours.db", warehouse=str(folder / "ours"))
    lake.create_namespace("db")
    table = lake.create_table("db.t", _schema(columns))

    def commit(number: int) -> None:
        table.append_files([new_file(number, columns)])

    return folder / "ours/db/t/metadata", commit


def new_file(number: int, columns: int) -> Entry:
    """Return the entry of one more file of ten rows."""
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
    lake = Lake(catalog=catalog, store=store, warehouse=str(folder / "far"))  # type: ignore[arg-type]
    lake.create_namespace("db")
    yield store, catalog, lake.create_table("db.t", _schema(5))
    near.close()


def _round_trips(report: Report) -> None:
    """Count what a warm commit waits for, one after the other, when everything is far away."""
    with tempfile.TemporaryDirectory() as name, _far_table(Path(name)) as (store, catalog, table):
        for number in range(5):
            table.append_files([new_file(number, 5)])
        rounds, cpu, wall = [], [], []
        for number in range(5, 25):
            store.forget()
            catalog.answers = 0
            started, busy = time.perf_counter(), time.process_time()
            table.append_files([new_file(number, 5)])
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
