"""What a table costs after ten thousand small commits, for one choice of defaults or another.

A commit appends one file. Told are the bytes and the CPU of a commit at the end, what the bytes are
spent on, the leaves that there are, and what a plan takes: these are what thresholds trade.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import mean, median, quantiles

import pyarrow as pa

import icetree
from benchmarks.commit import new_file
from benchmarks.harness import Report, Timing, main, time_each
from icetree.table.table import Table
from icetree.tree.reading import leaves_in

ROOT = "write.root.max-data-entries"
INLINE = "write.metadata.inline-snapshots"
LOG = "write.metadata.previous-versions-max"

#: Choices beside the defaults, by what is told of them.
CHOICES: Mapping[str, Mapping[str, str]] = {
    **{f"root of {most}": {ROOT: str(most)} for most in (50, 100, 200, 500, 1000, 2000)},
    **{f"{count} snapshots inline": {INLINE: str(count)} for count in (50, 100)},
    **{f"log of {count}": {LOG: str(count)} for count in (10, 100)},
}
DEFAULTS = "defaults"
#: The bytes of a commit at the end, by the number of columns.
MOST_BYTES = {5: 20_000, 50: 50_000}
#: Commits at the end that are looked at: many enough that each kind of tidying up is among them.
_LAST = 2_000


@dataclass(slots=True)
class Aged:
    """A table of one choice, and what its commits cost."""

    table: Table
    where: Path
    columns: int
    cpu_ms: list[float] = field(default_factory=list)
    size_bytes: list[int] = field(default_factory=list)

    def append(self, count: int) -> None:
        """Make so many commits."""
        for _ in range(count):
            file = new_file(len(self.cpu_ms), self.columns)
            started = time.process_time()
            done = self.table.append_files([file])
            self.cpu_ms.append((time.process_time() - started) * 1000)
            self.size_bytes.append(done.report.size_bytes)

    def leaves(self) -> int:
        """Return how many leaves the tree has."""
        return len(
            leaves_in(self.table.files.root(self.table.snapshot(), self.table.metadata.shape()))
        )


def measure(report: Report, quick: bool) -> None:
    """Measure everything."""
    commits = 600 if quick else 10_000
    for columns in (5, 50):
        for choice, properties in {DEFAULTS: {}, **({} if quick else CHOICES)}.items():
            with tempfile.TemporaryDirectory() as folder:
                aged = _table(Path(folder), columns, properties)
                aged.append(commits)
                _tell(report, aged, choice, quick)
                if choice == DEFAULTS:
                    _judge(report, aged)
            gc.collect()


def _tell(report: Report, aged: Aged, choice: str, quick: bool) -> None:
    last = _last(aged)
    case = f"{choice}, {aged.columns} columns"
    at = f"commit {len(aged.cpu_ms):,}"
    cpu = Timing(cpu_ms=mean(aged.cpu_ms[-last:]), wall_ms=mean(aged.cpu_ms[-last:]))
    sizes = aged.size_bytes[-last:]
    report.add(f"{case}: {at}", cpu, bytes=int(mean(sizes)), leaves=aged.leaves())
    report.tell(
        f"    bytes: mean {mean(sizes):,.0f}, median {median(sizes):,.0f}, 99 of 100 within "
        f"{quantiles(sizes, n=100)[-1]:,.0f}, most {max(sizes):,}; "
        f"{', '.join(f'{kind} {size:,}' for kind, size in _newest(aged).items())}"
    )
    count = len(aged.cpu_ms)
    plans = {
        "plan of all files": None,
        "plan of ten files": f"c0 >= {count // 2} and c0 < {count // 2 + 10}",
    }
    took = time_each(
        {name: partial(_plan, aged, where) for name, where in plans.items()},
        seconds=0.5 if quick else 3.0,
    )
    for name, timing in took.items():
        report.add(f"{case}: {name}", timing, leaves=aged.leaves())


def _judge(report: Report, aged: Aged) -> None:
    last = aged.size_bytes[-_last(aged) :]
    report.at_most(
        f"bytes of a commit, {aged.columns} columns", mean(last), MOST_BYTES[aged.columns]
    )


def _last(aged: Aged) -> int:
    """Return how many commits at the end are looked at: not those to a table that is still young."""
    return min(_LAST, len(aged.cpu_ms) // 2)


def _plan(aged: Aged, where: str | None) -> object:
    return _cold(aged).scan(where=where).plan()


def _cold(aged: Aged) -> Table:
    """Return the table as who just opened it has it."""
    lake = icetree.connect(f"sqlite:///{aged.where}/t.db", warehouse=str(aged.where / "t"))
    return lake.table("db.t")


def _newest(aged: Aged) -> dict[str, int]:
    """Return the size of the newest root and of the newest metadata.json."""
    snapshot = aged.table.snapshot()
    assert snapshot is not None
    root = aged.table.files.root_size_bytes(snapshot)
    metadata = Path(aged.table.state.metadata_location.removeprefix("file://")).stat().st_size
    pages = Counter({"pages named": len(aged.table.metadata.snapshot_pages)})
    return {"root": root, "metadata.json": metadata, **pages}


def _table(folder: Path, columns: int, properties: Mapping[str, str]) -> Aged:
    lake = icetree.connect(f"sqlite:///{folder}/t.db", warehouse=str(folder / "t"))
    lake.create_namespace("db")
    schema = pa.schema([pa.field(f"c{i}", pa.int64()) for i in range(columns)])
    return Aged(lake.create_table("db.t", schema, properties=dict(properties)), folder, columns)


if __name__ == "__main__":
    sys.exit(main("defaults", __doc__, measure))
