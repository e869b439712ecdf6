"""Maintenance beside Iceberg Java's procedures on Spark, and PyIceberg's, in one run on the same work.

Expiring snapshots, the search for orphans, rewriting manifests, bin-packing and z-order of small files.
Ours works in one process; Java has a Spark session that has done some work before, so that its
start does not count. What both find is compared. PyIceberg forgets snapshots, and deletes no file. Then a table of ours lives through thousands of small
commits, is tidied up, and is compared with one loaded at once. A figure is one run: what is done is done.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.harness import Report, Timing, main
from benchmarks.life import measure_life
from benchmarks.maintenance_worker import IN_PART, SIDES, write_small_files
from benchmarks.spark import Worker

OURS, JAVA = SIDES
#: What expiring takes at most, whatever the history.
_MEMORY_MB: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much of everything."""

    snapshots: int
    #: Of a table that only we expire.
    long_history: int
    #: Of a table whose snapshots, as many as above, name so many files each.
    wide_files: int
    lost_files: int
    manifests: int
    files_each: int
    small_files: int
    rows_each: int
    #: Of a table that lived, before it is tidied up.
    commits: int
    deletes: int


FULL: Final = Sizes(
    snapshots=1_000,
    long_history=10_000,
    wide_files=1_000_000,
    lost_files=100_000,
    manifests=200,
    files_each=50,
    small_files=1_000,
    rows_each=2_000,
    commits=5_000,
    deletes=500,
)
QUICK: Final = Sizes(
    snapshots=100,
    long_history=300,
    wide_files=20_000,
    lost_files=5_000,
    manifests=30,
    files_each=20,
    small_files=100,
    rows_each=500,
    commits=300,
    deletes=30,
)


class _Both:
    """The two sides, taking turns."""

    def __init__(self, report: Report, sides: dict[str, Worker]) -> None:
        self.report = report
        self.sides = sides

    def prepare(self, *words: Any) -> None:
        """Have both prepare the same."""
        found = {name: side.ask(*words)["found"] for name, side in self.sides.items()}
        _require_same(words[0], found)

    def race(self, case: str, *words: Any, reach: float, compare: bool = True) -> None:
        """Measure the same on both, and how many times longer Java takes."""
        told = {name: side.ask(*words) for name, side in self.sides.items()}
        for name, each in told.items():
            timing = Timing(cpu_ms=each["cpu_ms"], wall_ms=each["wall_ms"])
            self.report.add(case, timing, system=name, rss_mb=each["peak_mb"])
        if compare:
            _require_same(words[0], {name: each["found"] for name, each in told.items()})
        ratio = told[JAVA]["wall_ms"] / told[OURS]["wall_ms"]
        self.report.at_least(f"{case}: time of Iceberg Java over ours", ratio, reach)


def _require_same(what: str, found: dict[str, Any]) -> None:
    if found[OURS] != found[JAVA]:
        raise RuntimeError(f"{what}: {found}")


def measure(report: Report, quick: bool) -> None:
    """Measure everything."""
    jar = os.environ.get("ICEBERG_JAR")
    if not jar:
        raise SystemExit("ICEBERG_JAR is not set: `make bench-maintenance` sets it")
    sizes = QUICK if quick else FULL
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="icetree-bench-")))
        source = folder / "small"
        write_small_files(source, sizes.small_files, sizes.rows_each)
        sides = {}
        for name in SIDES:
            log = stack.enter_context((folder / f"{name}.log").open("w"))
            sides[name] = Worker(
                name, folder / name.replace(" ", ""), log, program="maintenance_worker", jars=jar
            )
            stack.callback(sides[name].close)
        both = _Both(report, sides)
        _warm_up(both, source)
        _expiry(both, sizes)
        _expiry_in_part(report, folder, sizes)
        _wide_expiry(report, folder, sizes)
        _others(both, sizes, source)
        life = folder / "lived"
        life.mkdir()
        measure_life(report, life, commits=sizes.commits, deletes=sizes.deletes)


def _warm_up(both: _Both, source: Path) -> None:
    """Have each do everything once, so that Java's start and compiler do not count."""
    both.report.tell("warming up")
    both.prepare("history", "warm_history", 20)
    both.prepare("expire", "warm_history")
    both.prepare("crowd", "warm_crowd", 100)
    both.prepare("orphans", "warm_crowd")
    both.prepare("many_manifests", "warm_manifests", 5, 5)
    for side in both.sides.values():
        side.ask("rewrite_manifests", "warm_manifests")
    both.prepare("small_files", "warm_small", str(source))
    for side in both.sides.values():
        side.ask("binpack", "warm_small")
        side.ask("zorder", "warm_small")


def _expiry(both: _Both, sizes: Sizes) -> None:
    count, many = sizes.snapshots, sizes.long_history
    both.report.tell(f"making tables of {count:,} snapshots")
    both.prepare("history", "old", count)
    both.race(f"expire {count:,} snapshots", "expire", "old", reach=5.0)
    both.report.tell(f"making a table of {many:,} snapshots")
    ours = both.sides[OURS]
    ours.ask("history", "older", many)
    _note(both.report, f"expire {many:,} snapshots", ours.ask("expire", "older"))


def _expiry_in_part(report: Report, folder: Path, sizes: Sizes) -> None:
    """Have PyIceberg forget as many snapshots."""
    [name] = IN_PART
    with _alone(name, folder / "part") as side:
        side.ask("history", "old", sizes.snapshots)
        took = side.ask("expire", "old")
    if took["found"] != 1:
        raise RuntimeError(f"{name} left {took['found']} snapshots")
    _note(report, f"expire {sizes.snapshots:,} snapshots", took, system=name)


def _wide_expiry(report: Report, folder: Path, sizes: Sizes) -> None:
    """Expire snapshots that name many files each, in a process that has done nothing else."""
    count, files, place = sizes.long_history, sizes.wide_files, folder / "wide"
    report.tell(f"making a table of {count:,} snapshots over {files:,} files")
    with _alone(OURS, place) as side:
        side.ask("wide_history", "wide", count, files)
    with _alone(OURS, place) as side:
        took = side.ask("expire_wide", "wide")
    case = f"expire {count:,} snapshots over {files:,} files"
    _note(report, case, took, files=files)
    report.at_most(f"{case}: MB of memory", took["peak_mb"], _MEMORY_MB)


@contextmanager
def _alone(name: str, folder: Path) -> Iterator[Worker]:
    with folder.with_suffix(".log").open("a") as log:
        side = Worker(name, folder, log, program="maintenance_worker")
        try:
            yield side
        finally:
            side.close()


def _note(report: Report, case: str, took: dict[str, Any], **more: Any) -> None:
    timing = Timing(cpu_ms=took["cpu_ms"], wall_ms=took["wall_ms"])
    report.add(case, timing, rss_mb=took["peak_mb"], **more)


def _others(both: _Both, sizes: Sizes, source: Path) -> None:
    lost, count = sizes.lost_files, sizes.small_files
    both.prepare("crowd", "crowded", lost)
    both.race(f"orphans among {lost:,} files", "orphans", "crowded", reach=1.0)
    both.report.tell("making tables of many manifests")
    both.prepare("many_manifests", "mixed", sizes.manifests, sizes.files_each)
    case = f"rewrite {sizes.manifests:,} manifests"
    both.race(case, "rewrite_manifests", "mixed", reach=1.0, compare=False)
    for verb in ("binpack", "zorder"):
        both.prepare("small_files", verb, str(source))
        both.race(f"{verb} of {count:,} small files", verb, verb, reach=1.0)
        both.prepare("rows", verb)


if __name__ == "__main__":
    sys.exit(main("maintenance", __doc__, measure))
