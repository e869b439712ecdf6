"""One writer's life: it picks up where its journal ends, and commits until told to stop."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import random
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from campaigns.soak.changes import Change, carry_out, choose_change
from campaigns.soak.faulty import FaultyCatalog, FaultyStore
from campaigns.soak.journal import Journal, replay
from campaigns.soak.place import TABLE, Place
from icetree.errors import CommitConflict, CommitUnknown, Unavailable
from icetree.files.cache import Cache
from icetree.table.lake import Lake
from icetree.table.table import Table

THREADS: Final = 2
#: Small, so that it is full long before the end and what else grows shows.
_CACHE_BYTES: Final = 8 * 1024 * 1024


class Writer:
    """One thread of a process of writers."""

    def __init__(self, place: Place, name: str) -> None:
        self._place = place
        self._name = name
        self._path = place.folder / f"{name}.journal"
        self._choose = random.Random(f"{name}-{time.time_ns()}")

    def run(self, stop: threading.Event, until: int, count: Any) -> None:
        past = replay(self._path)
        mine, number = past.mine, past.number
        with self._path.open("a") as file, _patiently(self._place.open) as lake:
            journal = Journal(file)
            table = _patiently(lambda: self._table(lake))
            if past.begun is not None:
                mine = self._finish(table, past.begun, mine, journal, count)
            while not stop.is_set() and count.value < until:
                number += 1
                change = choose_change(self._choose, f"{self._name}-{number}", mine)
                journal.start(change)
                mine = self._finish(table, change, mine, journal, count)

    def _table(self, lake: Lake) -> Table:
        table, share = lake.table(TABLE), self._place.share
        store = FaultyStore(lake.store, self._choose, share) if share else lake.store
        catalog: Any = FaultyCatalog(lake.catalog, self._choose, share) if share else lake.catalog
        files = replace(table.files, store=store, cache=Cache(_CACHE_BYTES))
        return Table(catalog=catalog, files=files, state=table.state)

    def _finish(
        self, table: Table, change: Change, mine: list[str], journal: Journal, count: Any
    ) -> list[str]:
        """Try until the change has landed; its key keeps it from being done twice."""
        conflicts = 0
        while (error := _tried(table, change)) is not None:
            journal.met(error)
            # The files are this thread's own: only its own commit, of which it has not heard, can
            # have taken them away, and then the key is known by the next try.
            conflicts += isinstance(error, CommitConflict)
            if conflicts > 3:
                raise AssertionError(f"{change} conflicts with nobody: {error}")
            _patiently(table.refresh)
        journal.done(change)
        with count.get_lock():
            count.value += 1
        return change.after(mine)


def _tried(table: Table, change: Change) -> Exception | None:
    try:
        carry_out(table, change)
    except (Unavailable, CommitUnknown, CommitConflict) as error:
        return error
    return None


def _patiently(call: Any, give_up_s: float = 300.0) -> Any:
    """Ask until there is an answer: servers come back."""
    until = time.monotonic() + give_up_s
    while time.monotonic() < until:
        with suppress(Unavailable):
            return call()
        time.sleep(0.1)
    return call()


def write(place: Place, process: int, until: int, count: Any, rss: Any) -> None:
    """Be one process of writers; tells its memory in KiB through `rss`."""
    faulthandler.enable()
    stop = threading.Event()
    failures: list[BaseException] = []

    def life(thread: int) -> None:
        try:
            Writer(place, f"w{process}-{thread}").run(stop, until, count)
        except BaseException as error:
            failures.append(error)
            stop.set()

    threads = [threading.Thread(target=life, args=(thread,)) for thread in range(THREADS)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        # What the allocator keeps of what was freed is not held by the program.
        with suppress(OSError, AttributeError):
            ctypes.CDLL("libc.so.6").malloc_trim(0)
        rss.value = resident_kib(os.getpid())
        time.sleep(1)
    if failures:
        raise failures[0]


def resident_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0
