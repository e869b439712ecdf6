"""Measuring and reporting: CPU and wall time, a table for people, JSON lines for machines."""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

_PEAK = Path("/proc/self/status")
_RESET_PEAK = Path("/proc/self/clear_refs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What a run takes when little disturbs it: a quarter of the runs were faster."""

    cpu_ms: float
    wall_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What one case cost one system. What means nothing for the case is None."""

    bench: str
    case: str
    system: str
    cpu_ms: float
    wall_ms: float
    #: Bytes that the case wrote or had before it.
    bytes: int | None = None
    #: Data files in the table, or files read.
    files: int | None = None
    #: How far the peak of resident memory rose.
    rss_mb: float | None = None
    #: Leaves that were read.
    leaves: int | None = None
    #: How many were done in a second, by all who did it at once.
    per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A figure to reach; the check's name says whether it is a ceiling or a floor."""

    bench: str
    check: str
    value: float
    reach: float
    holds: bool


@dataclass(slots=True)
class Report:
    """Collects the lines of one benchmark, telling each as it comes."""

    bench: str
    tell: Callable[[str], None] = print
    measurements: list[Measurement] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    def add(self, case: str, timing: Timing, *, system: str = "icetree", **more: Any) -> None:
        """Note a measurement."""
        one = Measurement(
            bench=self.bench,
            case=case,
            system=system,
            cpu_ms=round(timing.cpu_ms, 3),
            wall_ms=round(timing.wall_ms, 3),
            **more,
        )
        self.measurements.append(one)
        self.tell(f"  {case}, {system}: {one.cpu_ms:.2f} ms CPU")

    def at_most(self, check: str, value: float, reach: float) -> None:
        """Note a figure that should not exceed `reach`."""
        self._judge(f"{check}, at most", value, reach, holds=value <= reach)

    def at_least(self, check: str, value: float, reach: float) -> None:
        """Note a figure that should not fall below `reach`."""
        self._judge(f"{check}, at least", value, reach, holds=value >= reach)

    def _judge(self, check: str, value: float, reach: float, *, holds: bool) -> None:
        made = Check(bench=self.bench, check=check, value=round(value, 3), reach=reach, holds=holds)
        self.checks.append(made)

    @property
    def holds(self) -> bool:
        """Whether every figure was reached."""
        return all(check.holds for check in self.checks)

    def lines(self) -> list[str]:
        """Return the report as JSON lines."""
        rows = [*map(asdict, self.measurements), *map(asdict, self.checks)]
        return [
            json.dumps({name: value for name, value in row.items() if value is not None})
            for row in rows
        ]

    def text(self) -> str:
        """Return the report as tables for people."""
        measured = table(
            ("case", "system", "CPU ms", "wall ms", "KB", "files", "RSS MB", "leaves", "per s"),
            [
                (
                    one.case,
                    one.system,
                    f"{one.cpu_ms:.2f}",
                    f"{one.wall_ms:.2f}",
                    "" if one.bytes is None else f"{one.bytes / 1000:.1f}",
                    "" if one.files is None else f"{one.files:,}",
                    "" if one.rss_mb is None else f"{one.rss_mb:.0f}",
                    "" if one.leaves is None else f"{one.leaves:,}",
                    "" if one.per_s is None else f"{one.per_s:,.1f}",
                )
                for one in self.measurements
            ],
        )
        judged = table(
            ("figure", "value", "reach", ""),
            [
                (each.check, f"{each.value:.2f}", f"{each.reach:g}", _VERDICT[each.holds])
                for each in self.checks
            ],
        )
        return f"{measured}\n\n{judged}"


_VERDICT = {True: "holds", False: "DOES NOT HOLD"}


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return aligned text: the first two columns to the left, figures to the right."""
    cells = [header, *rows]
    widths = [max(len(row[at]) for row in cells) for at in range(len(header))]
    lines = [
        "  ".join(
            cell.ljust(width) if at == 0 or not _is_figure(header[at]) else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def _is_figure(name: str) -> bool:
    return name not in ("", "case", "system", "figure")


def cpu_ms(pid: int) -> float:
    """Return the CPU time that a process has had (Linux)."""
    told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(told[11]) + int(told[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def time_each(
    runs: Mapping[str, Callable[[], object]], *, seconds: float = 1.0, least: int = 7
) -> dict[str, Timing]:
    """Run each in turn, round after round, and return the lower quartiles.

    Other work on the machine only ever adds to a run, to its CPU time too, so that the faster
    runs tell more of the code than the median does. Figures that are to be compared are measured in the same rounds, so that a busy machine
    slows all of them. Rounds go on for `seconds`, and there are at least `least` of them after
    one that does not count.
    """
    cpu: dict[str, list[float]] = {name: [] for name in runs}
    wall: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    gc.collect()
    gc.disable()
    try:
        started = time.perf_counter()
        rounds = 0
        while rounds < least or time.perf_counter() - started < seconds:
            rounds += 1
            for name, run in runs.items():
                wall_before, cpu_before = time.perf_counter(), time.process_time()
                run()
                cpu[name].append(time.process_time() - cpu_before)
                wall[name].append(time.perf_counter() - wall_before)
    finally:
        gc.enable()
    return {
        name: Timing(cpu_ms=_quartile(cpu[name]) * 1000, wall_ms=_quartile(wall[name]) * 1000)
        for name in runs
    }


def _quartile(values: list[float]) -> float:
    return statistics.quantiles(values, n=4)[0]


def rss_rise_mb(run: Callable[[], object]) -> float | None:
    """Return how far one run raises the peak of resident memory; None where nobody tells."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    try:
        # 5 sets the peak back to what is resident now (Linux).
        _RESET_PEAK.write_text("5")
        before = _peak_mb()
        run()
        return round(_peak_mb() - before, 1)
    except OSError:
        return None


def _peak_mb() -> float:
    [line] = [line for line in _PEAK.read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def main(
    bench: str,
    about: str | None,
    measure: Callable[[Report, bool], None],
    arguments: Sequence[str] | None = None,
) -> int:
    """Run a benchmark as a command; 0 where every figure was reached, 1 where one was not."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{bench}", description=about)
    parser.add_argument("--quick", action="store_true", help="less data, every check, one minute")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write JSON lines")
    given = parser.parse_args(arguments)
    report = Report(bench)
    measure(report, given.quick)
    print(f"\n{report.text()}")
    if given.json is not None:
        given.json.write_text("".join(f"{line}\n" for line in report.lines()))
    return 0 if report.holds else 1
