"""What a driver needs to scan a hundred files of a table with a million of them.

The table is made up, but for the files that the scan reads. The scan is a filter on a DataFrame, which
Spark pushes down when it runs. It runs in a process of its own, with a small heap for Java: once with
nothing known of the table, then again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from benchmarks import spark_far
from benchmarks.harness import Report, Timing
from benchmarks.plan_tables import open_lake

#: How many files are read.
READ: Final = 100
_TABLE: Final = "memory"
_REPOSITORY: Final = Path(__file__).parents[1]
#: What Java may take of the gigabyte.
_HEAP: Final = "512m"
_REACH_MB: Final = 1024


def measure(report: Report, folder: Path, count: int) -> None:
    """Make the table, scan it in another process, and note the peaks of memory there."""
    report.tell(f"making a table of {count:,} files")
    spark_far.build(folder, _TABLE, count, READ)
    command = [sys.executable, "-m", "benchmarks.spark_memory", str(folder), str(count)]
    done = subprocess.run(command, cwd=_REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the scan failed:\n{done.stderr[-3000:]}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if told["rows"] != READ * spark_far.ROWS:
        raise RuntimeError(f"the scan found {told['rows']} rows of {READ * spark_far.ROWS}")
    case = f"filtered DataFrame, {READ} of {count:,} files"
    timing = Timing(cpu_ms=told["cpu_ms"], wall_ms=told["wall_ms"])
    report.add(f"{case}, cold", timing, files=READ)
    again = Timing(cpu_ms=told["warm_cpu_ms"], wall_ms=told["warm_wall_ms"])
    report.add(f"{case}, warm", again, files=READ)
    for part in ("Python", "Java heap", "Java, resident"):
        report.add(f"{case}, {part}", timing, files=READ, rss_mb=told[part])
    total = told["Python"] + told["Java, resident"]
    report.at_most(f"{case}, MB resident of Python and Java", total, _REACH_MB)


def _scan(folder: str, count: str) -> None:
    """Scan, and print what that took."""
    from benchmarks.spark_worker import busy_ms, session, spent_ms
    from icetree.spark import SparkLake

    spark = session("memory", memory=_HEAP, jars="")
    took: dict[str, float] = {}
    wall, cpu = time.perf_counter(), busy_ms()
    lake = SparkLake(spark, open_lake(Path(folder)))
    for before in ("", "warm_"):
        found = lake.read(f"db.{_TABLE}").where(spark_far.condition(int(count), READ))
        rows = len(found.collect())
        took[f"{before}wall_ms"] = (time.perf_counter() - wall) * 1000
        took[f"{before}cpu_ms"] = spent_ms(cpu)
        wall, cpu = time.perf_counter(), busy_ms()
    java: Any = spark.sparkContext._jvm  # noqa: SLF001
    pools = java.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    heap = sum(pool.getPeakUsage().getUsed() for pool in pools if pool.getType().name() == "HEAP")
    pid = int(java.java.lang.ProcessHandle.current().pid())
    peaks = {
        "Python": _peak_mb("self"),
        "Java heap": round(heap / 2**20, 1),
        "Java, resident": _peak_mb(str(pid)),
    }
    print(json.dumps({"rows": rows, **took, **peaks}))


def _peak_mb(process: str) -> float:
    lines = Path("/proc", process, "status").read_text().splitlines()
    [line] = [line for line in lines if line.startswith("VmHWM:")]
    return round(int(line.split()[1]) / 1024, 1)


if __name__ == "__main__":
    _scan(*sys.argv[1:])
