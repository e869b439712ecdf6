"""A program: one system on a Spark session of its own, told line by line what to do.

A session gets its jars when it starts, so every system has a process. Arguments: the system, its
folder, its jars with commas between. A line on the input is a JSON list, a verb and its
arguments; the answer is a line too, with what it took.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.spark_data import WIDE
from benchmarks.spark_far import PART_NAME
from benchmarks.spark_systems import SYSTEMS, Icetree, SameFiles, System, Tables, Trees
from icetree.spark.session import local_session

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_LINUX: Final = sys.platform == "linux"


def session(name: str, *, memory: str, jars: str, **more: str) -> SparkSession:
    """Return a session with what every system has: two cores, so much memory."""
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": memory,
        "spark.sql.session.timeZone": "UTC",
        **({"spark.jars": jars} if jars else {}),
        **more,
    }
    return local_session(name, extra_conf=settings)


def main(name: str, folder: str, jars: str) -> None:
    """Answer until the input ends."""
    # Java and its loggers write where they like: answers have a channel to themselves.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    kind, place = SYSTEMS[name], Path(folder)
    own = {key: value.format(folder=folder) for key, value in kind.settings.items()}
    spark = session(name, memory="3g", jars=jars, **own)
    verbs = _verbs(kind(spark, place))
    for line in sys.stdin:
        verb, *arguments = json.loads(line)
        wall, cpu = time.perf_counter(), busy_ms()
        found = verbs[verb](*arguments)
        took = {"wall_ms": (time.perf_counter() - wall) * 1000, "cpu_ms": spent_ms(cpu)}
        answers.write(json.dumps({**took, "found": found}) + "\n")


def _verbs(system: System) -> dict[str, Callable[..., Any]]:
    verbs: dict[str, Callable[..., Any]] = {
        "create": lambda name, by_day: system.create(name, by_day=by_day),
        "create_wide": lambda name: system.create(name, columns=WIDE),
        "scan": lambda name: _scan(system, name),
        "scan_wide": lambda name: _scan_wide(system, name),
        "aggregate": lambda name: _aggregate(system, name),
        "first": lambda name: len(system.table(name).head(1)),
        "append": system.append,
        "add_files": system.add_files,
    }
    if isinstance(system, Tables):
        verbs |= {
            "delete": system.delete,
            "merge": system.merge,
            "keep": system.keep,
            "reset": system.reset,
        }
    if isinstance(system, Trees):
        verbs |= {
            "delete_keys": system.delete_keys,
            "far_cold": lambda far, where: ids_of(system.open_far(far).where(where)),
            "far_warm": lambda where: ids_of(system.far().where(where)),
            "far_join": lambda parts, name: ids_of(
                rows_of_part(system.far(), system.source(parts), name)
            ),
        }
    if isinstance(system, Icetree):
        same = SameFiles(system.spark, system.folder)
        verbs["scan_same"] = lambda name: _scan(same, name)
        verbs["aggregate_same"] = lambda name: _aggregate(same, name)
    return verbs


#: A number of each column, cheap to work out, that no statistics tell.
_DIGESTS: Final = (
    "id",
    "unix_micros(at) & 1023",
    "customer",
    "octet_length(country)",
    "CAST(amount * 100 AS BIGINT)",
    "quantity",
    "octet_length(note)",
    "unix_date(day)",
)


def _scan(system: System, name: str) -> list[int]:
    """Read every column of every row; return figures that are the same where the rows are."""
    sums = system.table(name).agg(*(f.expr(f"sum({each})") for each in _DIGESTS))
    return list(sums.collect()[0])


def _scan_wide(system: System, name: str) -> list[int]:
    """Read every column of a wide table; return a figure that is the same where the rows are."""
    rows = system.table(name)
    total = f.expr(" + ".join(rows.columns))
    return list(rows.agg(f.sum(total)).collect()[0])


def _aggregate(system: System, name: str) -> list[int]:
    """Read two columns; return figures that are the same where the rows are."""
    sums = system.table(name).groupBy("country").agg(f.sum("quantity").alias("sum"), f.count("*"))
    rows = sums.collect()
    return [sum(row[1] for row in rows), sum(row[2] for row in rows)]


def ids_of(rows: DataFrame) -> list[int]:
    """Return the ids of rows, in order."""
    return sorted(row[0] for row in rows.select("id").collect())


def rows_of_part(rows: DataFrame, parts: DataFrame, name: str) -> DataFrame:
    """Return the rows of a part that is known by its name: a star join."""
    chosen = parts.where(f.col("name") == name)
    return rows.join(chosen, rows[PART_NAME] == chosen["part"])


def busy_ms() -> dict[int, float]:
    """Return the CPU time so far of this process and of all below it; none where nobody tells."""
    times: dict[int, float] = {}
    parents: dict[int, int] = {}
    running = [each.name for each in Path("/proc").iterdir()] if _LINUX else []
    for pid in map(int, filter(str.isdecimal, running)):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        parents[pid] = int(fields[1])
        times[pid] = sum(map(int, fields[11:15])) * 1000 / _TICKS
    root = os.getpid()
    return {pid: time for pid, time in times.items() if _descends(pid, root, parents)}


def spent_ms(since: dict[int, float]) -> float:
    """Return the CPU time since then.

    Spark lets its idle Python workers end without a trace: what is gone must not count as less.
    """
    return sum(time - since.get(pid, 0.0) for pid, time in busy_ms().items())


def _descends(pid: int, root: int, parents: dict[int, int]) -> bool:
    while pid not in (0, root):
        pid = parents.get(pid, 0)
    return pid == root


if __name__ == "__main__":
    main(*sys.argv[1:])
