"""Stock PyIceberg at a server: what its first load of a large table costs, and appends of its own.

Nothing is prepared for the server: each client loads, writes its files and commits as it does anywhere,
and tries again where another was faster. Each is a process of its own, on the cores that the server has.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Final
from urllib.request import urlopen

from benchmarks.harness import Report, Timing, cpu_ms
from benchmarks.plan_tables import open_lake
from tests.table.changing import ARROW, some

#: Clients that append at the same time: more would have no core.
CLIENTS: Final = (1, 4)
#: Who refuses an append on a head that is no more, and who puts it on the next one.
TABLES: Final = {"refused": {}, "rebased": {"commit.rebase-appends": "true"}}
REPOSITORY: Final = Path(__file__).parents[1]


def build(folder: Path) -> None:
    """Make a table for each number of clients and way of meeting."""
    with open_lake(folder) as lake:
        for clients in CLIENTS:
            for how, properties in TABLES.items():
                table = lake.create_table(_name(how, clients), ARROW, properties=properties)
                table.append(some((0, "a")))


def measure_loads(report: Report, uri: str, pid: int, files: int) -> None:
    """Tell what loading a table takes a server that has just started, and one that knows it.

    A client that reads manifests itself has the server export all of them before its first load.
    """
    from pyiceberg.catalog.rest import RestCatalog

    for mode in ("server", "client"):
        who = "plans here" if mode == "client" else "lets the server plan"
        for which in ("first", "second"):
            busy, started = cpu_ms(pid), time.perf_counter()
            catalog = RestCatalog("loads", uri=uri, **{"scan-planning-mode": mode})
            catalog.load_table(f"db.t{files}")
            took = Timing(cpu_ms=cpu_ms(pid) - busy, wall_ms=(time.perf_counter() - started) * 1000)
            report.add(f"{which} load of {files:,} files by who {who}", took, files=files)


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
            again = (_refused(uri) - refused) / landed
            report.add(
                f"{clients} of PyIceberg append, {how} when late, {again:.2f} tries lost each",
                wait,
                per_s=round(landed / lasted, 1),
            )


def _name(how: str, clients: int) -> str:
    return f"db.{how}{clients}"


def _refused(uri: str) -> int:
    """Return how many requests the server has refused as late."""
    with urlopen(f"{uri}/metrics") as answer:
        told: str = answer.read().decode()
    lines = re.findall(
        r"^icetree_requests_total\{[^}]*status=\"409\"[^}]*\} (\d+)", told, re.MULTILINE
    )
    return sum(map(int, lines))


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
