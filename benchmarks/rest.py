"""The REST server: plans of stock PyIceberg through it, and how many plans it makes in a second.

Beside it, in the same run: the same client that reads manifests by itself, of a table of as many
files. No data file is there: planning reads metadata alone. The server is a process of its own.
"""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from statistics import linear_regression
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks import plan_tables, rest_appends, rest_export, rest_stock
from benchmarks.data import SLOT
from benchmarks.harness import Report, Timing, main, time_each
from benchmarks.plan_tables import open_lake
from benchmarks.upgrade_table import build_v2, upgrade
from icetree.serve.plan.asked import PlanBody, asked_of
from icetree.serve.plan.planned import make_plan
from icetree.serve.showing.stock import Stock
from icetree.spec.texts import json_bytes

#: How many files the filter matches, of how many.
MATCHES: Final = 100
FAR: Final = 100_000
#: Clients that ask at the same time.
CLIENTS: Final = (1, 8, 32)

#: Filters are told apart by where they start: no plan is asked for twice.
_STARTS: Final = count()


def measure(report: Report, quick: bool) -> None:
    """Measure everything."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        report.tell(f"making a table of {FAR:,} files")
        plan_tables.build(folder, FAR)
        _told(report, folder, quick=quick)
        appends = rest_appends.build(folder, commits=96 if quick else 320)
        rest_stock.build(folder)
        rest_stock.measure_loads(report, folder, _running, FAR)
        with _running(folder) as (uri, pid):
            _clients(report, folder, uri, (2_000, 10_000) if quick else (10_000, FAR))
            for clients in CLIENTS:
                _many(report, uri, clients, seconds=2.0 if quick else 10.0)
            rest_appends.measure(report, uri, pid, appends)
            rest_stock.measure_appends(report, uri, pid, seconds=3.0 if quick else 15.0)
        # The server is gone: what is exported changes the table.
        rest_export.measure(report, folder, FAR, rounds=8 if quick else 20)
        _upgrade(report, folder / "old", FAR // 10 if quick else FAR)


@contextmanager
def _running(folder: Path) -> Iterator[tuple[str, int]]:
    """Serve the lake of a folder; return where, and by which process."""
    command = [
        sys.executable, "-m", "icetree",
        "--catalog", f"sqlite:///{folder}/lake.db", "--warehouse", str(folder / "lake"),
        "serve", "--port", "0",
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://[\w.:]+", line):
                yield found[0], process.pid
                break
    finally:
        process.terminate()
        process.communicate(timeout=30)


# --- telling plans --------------------------------------------------------------------------


def _told(report: Report, folder: Path, *, quick: bool) -> None:
    """Tell every file of the table, in this process and without a socket."""
    with open_lake(folder) as lake:
        table = lake.table(f"db.t{FAR}")
        asked = asked_of(table, PlanBody())
        planned = make_plan(table, asked)

        def tell(files: int) -> int:
            return len(json_bytes(planned.part(range(files), Stock(), table)))

        sizes = (MATCHES, 10_000, FAR)
        runs: dict[str, Callable[[], object]] = {str(each): partial(tell, each) for each in sizes}
        took = time_each(runs, seconds=1.0 if quick else 5.0, least=3)
        for size in sizes:
            report.add(f"{size:,} files as JSON", took[str(size)], bytes=tell(size), files=size)
        report.at_most(f"{FAR:,} files as JSON, CPU ms", took[str(FAR)].cpu_ms, 1000)


# --- moving in ---------------------------------------------------------------------------------


def _upgrade(report: Report, folder: Path, files: int) -> None:
    """Upgrade a v2 table of a hundred files to a manifest, as who has just connected."""
    folder.mkdir()
    report.tell(f"making a v2 table of {files:,} files")
    build_v2(folder, files=files, manifests=files // 100)
    busy, started = time.process_time(), time.perf_counter()
    told = upgrade(folder)
    took = Timing(
        cpu_ms=(time.process_time() - busy) * 1000,
        wall_ms=(time.perf_counter() - started) * 1000,
    )
    report.add(f"upgrade of {files:,} files", took, files=told.data_files, leaves=told.leaves)
    report.at_most(f"upgrade of {files:,} files, ms", took.wall_ms, 2_000)


# --- stock clients --------------------------------------------------------------------------


def _clients(report: Report, folder: Path, uri: str, sizes: tuple[int, ...]) -> None:
    """Plan the same share of files by PyIceberg, through the server and from manifests."""
    ours = _timed({"": partial(_planned_by_server, uri)})
    files = _planned_by_server(uri)
    report.add(f"{FAR:,} files, PyIceberg through the server", ours, files=files)
    costs = []
    for size in sizes:
        report.tell(f"making a table of {size:,} files in PyIceberg")
        plan = plan_tables.pyiceberg_table(folder, size)
        first = size // 2 * SLOT
        where = f"column_1 >= {first} and column_1 < {first + MATCHES * SLOT}"
        took = _timed({"": partial(plan, where)})
        costs.append(took.wall_ms)
        case = f"{size:,} files, PyIceberg from manifests"
        report.add(case, took, system="PyIceberg", files=plan(where))
    theirs = costs[-1]
    if sizes[-1] < FAR:
        # It reads every entry of a table, so a line through two tables tells of a third.
        slope, start = linear_regression(sizes, costs)
        theirs = start + slope * FAR
    report.at_least(
        f"time from manifests over time through the server, {MATCHES} of {FAR:,} files",
        theirs / ours.wall_ms,
        20.0,
    )


def _timed(runs: dict[str, Callable[[], object]]) -> Timing:
    for run in runs.values():
        run()
    [timing] = time_each(runs, seconds=1.0, least=3).values()
    return timing


def _planned_by_server(uri: str) -> int:
    """Open the catalog, load the table and plan a filter that nobody has planned before."""
    from pyiceberg.catalog.rest import RestCatalog

    first = FAR // 2 * SLOT + next(_STARTS)
    where = f"id >= {first} and id < {first + MATCHES * SLOT}"
    scan = RestCatalog("served", uri=uri).load_table(f"db.t{FAR}").scan(row_filter=where)
    return len(list(scan.plan_files()))


# --- many clients ---------------------------------------------------------------------------


def _many(report: Report, uri: str, clients: int, *, seconds: float) -> None:
    """Have clients plan one after the other, all of them at once, and count plans."""
    until = time.perf_counter() + seconds
    done = [0] * clients
    waits: list[list[float]] = [[] for _ in range(clients)]

    def work(number: int) -> None:
        place = urlsplit(uri)
        connection = http.client.HTTPConnection(place.hostname or "", place.port)
        while time.perf_counter() < until:
            started = time.perf_counter()
            files = _plan(connection)
            assert files > MATCHES - 2, files
            waits[number].append((time.perf_counter() - started) * 1000)
            done[number] += 1
        connection.close()

    started, busy = time.perf_counter(), time.process_time()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lasted = time.perf_counter() - started
    plans = sum(done)
    every = sorted(wait for each in waits for wait in each)
    wait = Timing(
        cpu_ms=(time.process_time() - busy) * 1000 / plans, wall_ms=every[len(every) // 2]
    )
    report.add(f"{clients} clients, one plan", wait, per_s=round(plans / lasted, 1))


def _plan(connection: http.client.HTTPConnection) -> int:
    first = (7_919 * next(_STARTS)) % (FAR - MATCHES) * SLOT
    sides: list[dict[str, Any]] = [
        {"type": "gt-eq", "term": "id", "value": first},
        {"type": "lt", "term": "id", "value": first + MATCHES * SLOT},
    ]
    body = {"filter": {"type": "and", "left": sides[0], "right": sides[1]}}
    path = f"/v1/namespaces/db/tables/t{FAR}/plan"
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse().read()
    return answer.count(b'"data-file"')


if __name__ == "__main__":
    sys.exit(main("rest", __doc__, measure))
