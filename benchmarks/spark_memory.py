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

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks import data
from benchmarks.data import SLOT
from benchmarks.harness import Report, Timing
from benchmarks.plan_tables import open_lake
from icetree.rows.schema import arrow_schema
from icetree.spec.entry import Entries

#: How many files are read, and how many rows each has.
READ: Final = 100
_ROWS: Final = 10
_REPOSITORY: Final = Path(__file__).parents[1]
#: What Java may take of the gigabyte.
_HEAP: Final = "512m"
_REACH_MB: Final = 1024


def measure(report: Report, folder: Path, count: int) -> None:
    """Make the table, scan it in another process, and note the peaks of memory there."""
    report.tell(f"making a table of {count:,} files")
    build(folder, count)
    command = [sys.executable, "-m", "benchmarks.spark_memory", str(folder), str(count)]
    done = subprocess.run(command, cwd=_REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the scan failed:\n{done.stderr[-3000:]}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if told["rows"] != READ * _ROWS:
        raise RuntimeError(f"the scan found {told['rows']} rows of {READ * _ROWS}")
    case = f"filtered DataFrame, {READ} of {count:,} files"
    timing = Timing(cpu_ms=told["cpu_ms"], wall_ms=told["wall_ms"])
    report.add(f"{case}, cold", timing, files=READ)
    again = Timing(cpu_ms=told["warm_cpu_ms"], wall_ms=told["warm_wall_ms"])
    report.add(f"{case}, warm", again, files=READ)
    for part in ("Python", "Java heap", "Java, resident"):
        report.add(f"{case}, {part}", timing, files=READ, rss_mb=told[part])
    total = told["Python"] + told["Java, resident"]
    report.at_most(f"{case}, MB resident of Python and Java", total, _REACH_MB)


def build(folder: Path, count: int) -> None:
    """Make `db.t<count>` with all files but those that are read made up."""
    with open_lake(folder) as lake:
        lake.create_namespace("db")
        table = lake.create_table(f"db.t{count}", data.shape_of(20).schema)
        shape = table.metadata.shape()
        read = _chosen(count)
        for first in range(0, count, 100_000):
            numbers = np.arange(first, min(first + 100_000, count))
            files = data.new_files(numbers, shape, seed=first)
            table.append_files(_real(files, numbers, read, table.location, table.schema))


def _chosen(count: int) -> range:
    return range(count // 2, count // 2 + READ)


def condition(count: int) -> str:
    """Return the filter of the scan."""
    chosen = _chosen(count)
    return f"id >= {chosen.start * SLOT} AND id < {chosen.stop * SLOT}"


def _real(files: Entries, numbers: Any, read: range, location: str, schema: Any) -> Entries:
    """Write the files that are read, and say of each what is in it."""
    chosen = np.isin(numbers, np.array(read))
    if not chosen.any():
        return files
    folder = Path(location.removeprefix("file://"))
    (folder / "data").mkdir(parents=True, exist_ok=True)
    sizes = files["file_size_in_bytes"].to_numpy().copy()
    for at in np.flatnonzero(chosen).tolist():
        target = folder / files["location"][at].as_py()
        pq.write_table(_rows(int(numbers[at]), schema), target)
        sizes[at] = target.stat().st_size
    # Nothing but the id is set.
    facts = {"record_count": _ROWS, "1:nulls": 0}
    facts |= {f"{field.field_id}:values": _ROWS for field in schema.fields}
    facts |= {f"{field.field_id}:nulls": _ROWS for field in schema.fields[1:]}
    for name, value in facts.items():
        known = files[name]
        files = _with(
            files, name, pc.if_else(pa.array(chosen), pa.scalar(value, known.type), known)
        )
    splits = pa.array([[4]] * files.num_rows, files["split_offsets"].type)
    return _with(_with(files, "file_size_in_bytes", pa.array(sizes)), "split_offsets", splits)


def _with(files: Entries, name: str, values: Any) -> Entries:
    return files.set_column(files.schema.get_field_index(name), name, values)


def _rows(number: int, schema: Any) -> pa.Table:
    target = arrow_schema(schema)
    ids = pa.array(np.arange(number * SLOT, number * SLOT + _ROWS))
    columns = [ids, *(pa.nulls(_ROWS, field.type) for field in list(target)[1:])]
    return pa.Table.from_arrays(columns, schema=target)


def _scan(folder: str, count: str) -> None:
    """Scan, and print what that took."""
    from benchmarks.spark_worker import busy_ms, session, spent_ms
    from icetree.spark import SparkLake

    spark = session("memory", memory=_HEAP, jars="")
    took: dict[str, float] = {}
    wall, cpu = time.perf_counter(), busy_ms()
    lake = SparkLake(spark, open_lake(Path(folder)))
    for before in ("", "warm_"):
        rows = len(lake.read(f"db.t{count}").where(condition(int(count))).collect())
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
