"""Stock PyIceberg at a server: what its first load of a large table costs, and appends of its own.

Nothing is prepared for the server: each client loads, writes its files and commits as it does anywhere,
and tries again where another was faster. Each is a process of its own, on the cores that the server has.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final
from urllib.request import urlopen

from benchmarks.harness import Report, Timing, cpu_ms
from benchmarks.plan_tables import open_lake
from icetree.spec.location import absolute
from icetree.table.export.places import EXPORTS
from tests.table.changing import ARROW, some

#: Clients that append at the same time. Each is a process that takes a core when it has one.
CLIENTS: Final = (1, 4, 8)
#: Who refuses an append on a head that is no more, and who puts it on the next one.
TABLES: Final = {"refused": {}, "rebased": {"commit.rebase-appends": "true"}}
#: What a table that is known may take to be loaded, of what it took at first.
AGAIN: Final = 0.1
REPOSITORY: Final = Path(__file__).parents[1]

#: Serves the lake of a folder; gives where, and by which process.
Serve = Callable[[Path], AbstractContextManager[tuple[str, int]]]


def build(folder: Path) -> None:
    """Make a table for each number of clients and way of meeting."""
    with open_lake(folder) as lake:
        for clients in CLIENTS:
            for how, properties in TABLES.items():
                table = lake.create_table(_name(how, clients), ARROW, properties=properties)
                table.append(some((0, "a")))


def measure_loads(report: Report, folder: Path, serve: Serve, files: int) -> None:
    """Tell what loading a table takes a server that has just started, and one that has shown it.

    A load exports what clients read that plan by themselves, whoever asks: at first nothing is exported, then
    all is, and in the end a new server finds it so.
    """
    for mode, who in {"server": "lets the server plan", "client": "plans here"}.items():
        with open_lake(folder) as lake:
            exports = absolute(EXPORTS, lake.table(_many(files)).location)
        shutil.rmtree(exports.removeprefix("file://"), ignore_errors=True)
        with serve(folder) as (uri, pid):
            first, again = (_loaded(uri, pid, mode, files) for _ in range(2))
        with serve(folder) as (uri, pid):
            anew = _loaded(uri, pid, mode, files)
        told = {
            "first load, nothing exported": first,
            "second load": again,
            "first load of a new server, all exported": anew,
        }
        for case, took in told.items():
            report.add(f"{case}, of {files:,} files by who {who}", took, files=files)
        report.at_most(
            f"wait for the second load over that for the first, by who {who}",
            again.wall_ms / first.wall_ms,
            AGAIN,
        )


def _loaded(uri: str, pid: int, mode: str, files: int) -> Timing:
    """Load a table as somebody who has just come; the CPU is the server's."""
    from pyiceberg.catalog.rest import RestCatalog

    busy, started = cpu_ms(pid), time.perf_counter()
    RestCatalog("loads", uri=uri, **{"scan-planning-mode": mode}).load_table(_many(files))
    return Timing(cpu_ms=cpu_ms(pid) - busy, wall_ms=(time.perf_counter() - started) * 1000)


def measure_appends(report: Report, uri: str, pid: int, *, seconds: float) -> None:
    """Let clients append one row at a time, and tell how many land in a second."""
    for how in TABLES:
        for clients in CLIENTS:
            refused = _refused(uri)
            command = [sys.executable, "-m", __name__, uri, _name(how, clients), str(seconds)]
            busy = cpu_ms(pid)
            running = [
                subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
                for _ in range(clients)
            ]
            told = [json.loads(each.communicate()[0].splitlines()[-1]) for each in running]
            landed = sum(each["appends"] for each in told)
            lasted = max(each["until"] for each in told) - min(each["since"] for each in told)
            wait = Timing(
                cpu_ms=(cpu_ms(pid) - busy) / landed,
                wall_ms=sorted(wait for each in told for wait in each["waits_ms"])[landed // 2],
            )
            lost = (_refused(uri) - refused) / landed
            case = f"{clients} of PyIceberg append, {how} when late"
            report.add(f"{case}, {lost:.2f} tries lost each", wait, per_s=round(landed / lasted, 1))
            if TABLES[how]:
                report.at_most(f"{case}: tries lost for each append", lost, 0)


def _many(files: int) -> str:
    return f"db.t{files}"


def _name(how: str, clients: int) -> str:
    return f"db.{how}{clients}"


def _refused(uri: str) -> int:
    """Return how many requests the server has refused as late."""
    with urlopen(f"{uri}/metrics") as answer:
        return refused_in(answer.read().decode())


def refused_in(metrics: str) -> int:
    """Return how many requests were late, as a server's metrics tell; routes have braces in their names."""
    late = r"^icetree_requests_total\{.*status=\"409\"\} (\d+)$"
    return sum(map(int, re.findall(late, metrics, re.MULTILINE)))


def _append(uri: str, name: str, seconds: float) -> None:
    """Append one row after the other, and print how that went."""
    from pyiceberg.catalog.rest import RestCatalog
    from pyiceberg.exceptions import CommitFailedException

    table = RestCatalog("appends", uri=uri).load_table(name)
    rows = some((1, "b"))
    waits: list[float] = []
    since = time.time()
    while time.time() < since + seconds:
        started = time.perf_counter()
        while True:
            try:
                table.append(rows)
                break
            except CommitFailedException:
                table.refresh()
        waits.append((time.perf_counter() - started) * 1000)
    told = {"appends": len(waits), "waits_ms": waits, "since": since, "until": time.time()}
    print(json.dumps(told))


if __name__ == "__main__":
    _append(sys.argv[1], sys.argv[2], float(sys.argv[3]))
