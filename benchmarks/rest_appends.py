"""Clients that append through the REST server to one table, all at the same time.

What they send is made beforehand, all of it on one snapshot, and however many they are they send as
much together, to tables that start alike: what is measured is the server. Its CPU is told by its
process, for the clients take the same cores.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from benchmarks.harness import Report, Timing, cpu_ms
from benchmarks.plan_tables import open_lake
from tests.table.changing import ARROW, some
from tests.table.export.stock_client import StockClient
from tests.table.export.test_foreign import new_file

#: Clients that append at the same time.
CLIENTS: Final = (1, 8, 32)


def build(folder: Path, *, commits: int) -> dict[int, list[bytes]]:
    """Make a table for each number of clients, and the requests of these clients together."""
    found = {}
    with open_lake(folder) as lake:
        for clients in CLIENTS:
            table = lake.create_table(
                f"db.appends{clients}", ARROW, properties={"commit.rebase-appends": "true"}
            )
            table.append(some((0, "a")))
            entry = new_file(table, 1)
            content = table.files.store.read(f"{table.location}/{entry.location}")
            bodies = []
            for number in range(commits):
                client = StockClient(table, id=number + 1)
                name = f"data/{number}.parquet"
                table.files.store.write_new(f"{table.location}/{name}", content)
                client.add(replace(entry, location=name))
                bodies.append(_body(client))
            found[clients] = bodies
    return found


def measure(report: Report, uri: str, pid: int, requests: dict[int, list[bytes]]) -> None:
    """Send requests, and tell how many commits a second there are, and what each costs the server."""
    seen = {
        clients: _appends(report, uri, pid, clients, bodies) for clients, bodies in requests.items()
    }
    one, many = seen[1], seen[CLIENTS[-1]]
    report.at_least(
        f"appends a second of {CLIENTS[-1]} clients over those of one", many[0] / one[0], 2.0
    )
    report.at_most(
        f"the server's CPU for an append of {CLIENTS[-1]} clients over that of one",
        many[1] / one[1],
        0.7,
    )


def _appends(
    report: Report, uri: str, pid: int, clients: int, bodies: list[bytes]
) -> tuple[float, float]:
    """Return how many appends there are in a second, and the milliseconds of CPU for one."""
    waits: list[float] = []

    def work(number: int) -> None:
        place = urlsplit(uri)
        connection = http.client.HTTPConnection(place.hostname or "", place.port)
        for body in bodies[number::clients]:
            started = time.perf_counter()
            path = f"/v1/namespaces/db/tables/appends{clients}"
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            told = answer.read()
            assert answer.status == 200, told[:500]
            waits.append((time.perf_counter() - started) * 1000)
        connection.close()

    started, busy = time.perf_counter(), cpu_ms(pid)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lasted = time.perf_counter() - started
    assert len(waits) == len(bodies)
    per_s, cost = len(bodies) / lasted, (cpu_ms(pid) - busy) / len(bodies)
    wait = Timing(cpu_ms=cost, wall_ms=sorted(waits)[len(waits) // 2])
    report.add(f"{clients} clients, one append", wait, per_s=round(per_s, 1))
    return per_s, cost


def _body(client: StockClient) -> bytes:
    head = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": client.parent}
    moved = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch"}
    updates = [
        {"action": "add-snapshot", "snapshot": client.snapshot()},
        {**moved, "snapshot-id": client.id},
    ]
    return json.dumps({"requirements": [head], "updates": updates}).encode()
