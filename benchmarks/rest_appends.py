"""Clients that append through the REST server to one table, all at the same time.

What they send is made beforehand, all of it on one snapshot: what is measured is the server.
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

from benchmarks.harness import Report, Timing
from benchmarks.plan_tables import open_lake
from tests.table.changing import ARROW, some
from tests.table.export.stock_client import StockClient
from tests.table.export.test_foreign import new_file

#: Clients that append at the same time.
CLIENTS: Final = (1, 8, 32)


def build(folder: Path, *, each: int) -> dict[int, list[bytes]]:
    """Make a table for each number of clients, and the requests of these clients."""
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
            for number in range(clients * each):
                client = StockClient(table, id=number + 1)
                name = f"data/{number}.parquet"
                table.files.store.write_new(f"{table.location}/{name}", content)
                client.add(replace(entry, location=name))
                bodies.append(_body(client))
            found[clients] = bodies
    return found


def measure(report: Report, uri: str, requests: dict[int, list[bytes]]) -> None:
    """Send requests, and tell how many commits a second there are."""
    per_s = {
        clients: _appends(report, uri, clients, bodies) for clients, bodies in requests.items()
    }
    report.at_least(
        f"appends a second of {CLIENTS[-1]} clients over those of one",
        per_s[CLIENTS[-1]] / per_s[1],
        1.0,
    )


def _appends(report: Report, uri: str, clients: int, bodies: list[bytes]) -> float:
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

    started = time.perf_counter()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lasted = time.perf_counter() - started
    assert len(waits) == len(bodies)
    per_s = len(bodies) / lasted
    wait = Timing(cpu_ms=0.0, wall_ms=sorted(waits)[len(waits) // 2])
    report.add(f"{clients} clients, one append", wait, per_s=round(per_s, 1))
    return per_s


def _body(client: StockClient) -> bytes:
    head = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": client.parent}
    moved = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch"}
    updates = [
        {"action": "add-snapshot", "snapshot": client.snapshot()},
        {**moved, "snapshot-id": client.id},
    ]
    return json.dumps({"requirements": [head], "updates": updates}).encode()
