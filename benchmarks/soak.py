"""A long life of one table: thousands of commits by several writers, with faults at random.

Real files, real fsync, a real SQLite catalog. Writers are processes of a few threads each; every
thread appends, deletes, adds DVs and rewrites, on files of its own, through a store and a catalog
that fail now and then. Writers are ended by SIGKILL at random and start again. At the end the
table must hold what the writers' journals say, every snapshot must be found, the trees of many
must be sound, and memory must not have grown.

    python -m benchmarks.soak --commits 10000
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

import icetree
from icetree.catalog.base import Outcome, TableName, Unknown
from icetree.errors import CommitConflict, CommitUnknown, Unavailable
from icetree.spec.entry import Content, Entry, is_data_dv
from icetree.store.wrapped import Request, WrappedStore
from icetree.table.cache import Cache
from icetree.table.connection import Connection
from icetree.table.table import Table
from icetree.tree.check import check
from icetree.tree.live import live_files

SCHEMA = pa.schema([pa.field("n", pa.int64()), pa.field("s", pa.string())])
PROPERTIES = {
    "write.root.max-data-entries": "40",
    "write.root.max-delete-entries": "20",
    "write.leaf.max-entries": "200",
    "write.metadata.inline-snapshots": "20",
    "write.manifest-dv.inline-max-bytes": "64",
    "write.metadata.previous-versions-max": "20",
    "commit.retry.max-wait-ms": "200",
}
#: How many live files a thread keeps; beyond that it deletes or rewrites.
MOST_FILES = 60
PROCESSES, THREADS = 2, 2
CACHE_BYTES = 8 * 1024 * 1024


class FaultyStore(WrappedStore):
    """Loses a request or its answer, at random."""

    def __init__(self, store: Any, choose: random.Random, share: float) -> None:
        super().__init__(store)
        self._choose, self._share = choose, share

    def _pass(self, request: Request, effect: Any) -> Any:
        if self._choose.random() >= self._share:
            return effect()
        if self._choose.random() < 0.5:
            effect()
        raise Unavailable(f"{request.operation} {request.location}: a fault of the test")


class FaultyCatalog:
    """Refuses a swap, or loses its request or answer, at random; all else passes."""

    def __init__(self, catalog: Any, choose: random.Random, share: float) -> None:
        self._inner, self._choose, self._share = catalog, choose, share

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def swap(self, table: TableName, *, expected: str, to: str) -> Outcome:
        if self._choose.random() >= self._share:
            outcome: Outcome = self._inner.swap(table, expected=expected, to=to)
            return outcome
        fault = self._choose.choice(["refused", "request lost", "answer lost"])
        if fault == "refused":
            raise Unavailable("a fault of the test")
        if fault == "answer lost":
            self._inner.swap(table, expected=expected, to=to)
        return Unknown(reason=fault)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one commit means to do; its key is in the journal before it starts."""

    key: str
    kind: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def _data(name: str) -> Entry:
    return Entry(location=f"data/{name}.parquet", record_count=10, file_size_in_bytes=1_000)


def _vector(name: str, of: str) -> Entry:
    return Entry(
        content_type=Content.POSITION_DELETES,
        location=f"data/{name}.puffin",
        file_format="puffin",
        file_size_in_bytes=100,
        dv_offset=4,
        dv_size_in_bytes=40,
        record_count=1,
        referenced_file=f"data/{of}.parquet",
    )


def choose_change(choose: random.Random, key: str, mine: list[str]) -> Change:
    """Decide what to do next with the files a thread has."""
    kinds = ["append", "append", "row delta", "delete", "rewrite"]
    kind = choose.choice(kinds if len(mine) < MOST_FILES else ["delete", "rewrite"])
    if kind == "append" or len(mine) < 4:
        count = 50 if choose.random() < 0.02 else choose.randint(1, 3)
        return Change(key=key, kind="append", added=tuple(f"{key}-{i}" for i in range(count)))
    if kind == "row delta":
        return Change(key=key, kind=kind, added=(key,), removed=(choose.choice(mine),))
    gone = tuple(choose.sample(mine, min(len(mine), 12 if len(mine) > MOST_FILES else 2)))
    return Change(key=key, kind=kind, added=(key,) if kind == "rewrite" else (), removed=gone)


def carry_out(table: Table, change: Change) -> None:
    """Commit a change; under its key it can be tried any number of times."""
    added = [_data(name) for name in change.added]
    removed = [f"data/{name}.parquet" for name in change.removed]
    how: dict[str, Any] = {"key": change.key, "isolation": "snapshot"}
    match change.kind:
        case "append":
            table.append_files(added, **how)
        case "row delta":
            table.row_delta([*added, _vector(f"{change.key}-dv", change.removed[0])], **how)
        case "delete":
            table.delete_files(removed, **how)
        case "rewrite":
            table.rewrite(removed, added, **how)


def after(change: Change, mine: list[str]) -> list[str]:
    """Return a thread's files once the change is done."""
    gone = set() if change.kind in {"append", "row delta"} else set(change.removed)
    return [each for each in mine if each not in gone] + list(change.added)


class Writer:
    """One thread's life: it picks up where its journal ends, and commits until told to stop."""

    def __init__(self, folder: Path, name: str, share: float) -> None:
        self._folder, self._name = folder, name
        self._journal = folder / f"{name}.journal"
        self._choose = random.Random(f"{name}-{time.time_ns()}")
        self._share = share
        self._conflicted = False

    def run(self, stop: threading.Event, until: int, count: Any) -> None:
        lake = open_lake(self._folder)
        table = lake.table("db.t")
        table = Table(
            catalog=FaultyCatalog(lake.catalog, self._choose, self._share),  # type: ignore[arg-type]
            files=replace(
                table.files,
                store=FaultyStore(lake.store, self._choose, self._share),
                # Small, so that it is full long before the end and what else grows shows.
                cache=Cache(CACHE_BYTES),
            ),
            state=table.state,
        )
        mine, number, started = replay(self._journal)
        with self._journal.open("a") as journal:
            if started is not None:
                mine = self._finish(table, started, mine, journal, count)
            while not stop.is_set() and count.value < until:
                number += 1
                change = choose_change(self._choose, f"{self._name}-{number}", mine)
                _note(journal, {"start": _as_json(change)})
                mine = self._finish(table, change, mine, journal, count)
        lake.close()

    def _finish(
        self, table: Table, change: Change, mine: list[str], journal: Any, count: Any
    ) -> list[str]:
        conflicts = 0
        while not self._landed(table, change):
            # The files are this thread's own: only its own commit, of which it has not heard, can
            # have taken them away, and then the key is known by the next try.
            conflicts += self._conflicted
            if conflicts > 3:
                raise AssertionError(f"{change} conflicts with nobody")
            self._refresh(table)
        _note(journal, {"done": change.key})
        with count.get_lock():
            count.value += 1
        return after(change, mine)

    def _landed(self, table: Table, change: Change) -> bool:
        """Try a change; the key keeps it from being done twice, however often it is tried."""
        self._conflicted = False
        try:
            carry_out(table, change)
        except (Unavailable, CommitUnknown):
            return False
        except CommitConflict:
            self._conflicted = True
            return False
        return True

    def _refresh(self, table: Table) -> None:
        done = False
        while not done:
            with suppress(Unavailable):
                table.refresh()
                done = True


def _note(journal: Any, line: dict[str, Any]) -> None:
    journal.write(json.dumps(line) + "\n")
    journal.flush()


def _as_json(change: Change) -> dict[str, Any]:
    return {
        "key": change.key,
        "kind": change.kind,
        "added": change.added,
        "removed": change.removed,
    }


def replay(journal: Path) -> tuple[list[str], int, Change | None]:
    """Return a thread's files, its last number, and the change it had begun but not noted done."""
    mine: list[str] = []
    number, begun = 0, None
    for line in journal.read_text().splitlines() if journal.exists() else ():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # cut off by a kill: that change had not begun
        if "start" in entry:
            of = entry["start"]
            begun = Change(
                key=of["key"],
                kind=of["kind"],
                added=tuple(of["added"]),
                removed=tuple(of["removed"]),
            )
            number += 1
        elif begun is not None:
            mine, begun = after(begun, mine), None
    return mine, number, begun


def open_lake(folder: Path) -> Connection:
    # A small cache is full soon: what grows after that is a leak.
    return icetree.connect(
        f"sqlite:///{folder}/catalog.db",
        warehouse=str(folder / "lake"),
        **{"io.manifest.cache.max-total-bytes": 4 << 20},
    )


def write(folder: str, process: int, until: int, share: float, count: Any, rss: Any) -> None:
    """Be one process of writers; tells its memory in KiB through `rss`."""
    faulthandler.enable()
    stop = threading.Event()
    failures: list[BaseException] = []

    def life(thread: int) -> None:
        try:
            Writer(Path(folder), f"w{process}-{thread}", share).run(stop, until, count)
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


def settle(folder: Path) -> None:
    """Finish what the last process left begun, without faults, so that journals are whole."""
    for journal in sorted(folder.glob("*.journal")):
        _, _, begun = replay(journal)
        if begun is not None:
            with open_lake(folder) as lake:
                carry_out(lake.table("db.t"), begun)
            with journal.open("a") as file:
                _note(file, {"done": begun.key})


def verify(folder: Path, sample: int) -> tuple[int, list[str]]:
    """Return how many snapshots the table has and what is wrong with it."""
    wrong: list[str] = []
    with open_lake(folder) as lake:
        table = lake.table("db.t")
        shape, files = table.metadata.shape(), table.files
        history = list(table.history())
        numbers = sorted(each.sequence_number for each in history)
        if numbers != list(range(1, len(numbers) + 1)):
            wrong.append("sequence numbers are not 1, 2, 3 and so on")
        keys = Counter((each.summary or {}).get("icetree.commit-key") for each in history)
        wrong += [f"{key} was committed {n} times" for key, n in keys.items() if n != 1]
        expected: list[str] = []
        for journal in sorted(folder.glob("*.journal")):
            expected += replay(journal)[0]
        chosen = random.Random(1).sample(history, min(sample, len(history)))
        for snapshot in [*history[:20], *chosen, *history[-5:]]:
            root, reader = files.root(snapshot, shape), files.reader(shape)
            found = check(
                root,
                reader,
                shape,
                snapshot_id=snapshot.snapshot_id,
                sequence_number=snapshot.sequence_number,
                next_row_id=table.metadata.next_row_id,
            )
            wrong += [f"snapshot {snapshot.sequence_number}: {each}" for each in found]
        for snapshot in history:
            if not Path(f"{table.location}/{snapshot.root_manifest}").is_file():
                wrong.append(f"the root of snapshot {snapshot.sequence_number} is gone")
        head = live_files(files.root(table.metadata.current_snapshot(), shape), files.reader(shape))
        data = head.filter(pa.compute.invert(is_data_dv(head)))["location"].to_pylist()
        if sorted(data) != sorted(f"data/{name}.parquet" for name in expected):
            wrong.append(f"{len(data)} files are live, {len(expected)} should be, or others")
        wrong += _bounded(table, len(history))
    return len(history), wrong


def _bounded(table: Table, count: int) -> list[str]:
    size = Path(table.state.metadata_location).stat().st_size
    print(
        f"metadata.json {size:,} B, {len(table.metadata.snapshot_pages)} pages "
        f"for {count:,} snapshots"
    )
    return [f"metadata.json is {size:,} B"] if size > 64 * 1024 else []


class Company:
    """The processes of writers; one is killed now and then, and another takes its place."""

    def __init__(self, folder: Path, commits: int, share: float) -> None:
        self._spawn = multiprocessing.get_context("spawn")
        self.count = self._spawn.Value("q", 0)
        self._arguments = (str(folder), commits, share)
        # Without a lock, which one that is killed might hold.
        self._rss = [self._spawn.RawValue("q", 0) for _ in range(PROCESSES)]
        self._processes = [self._start(number) for number in range(PROCESSES)]

    def _start(self, number: int) -> Any:
        folder, commits, share = self._arguments
        process = self._spawn.Process(
            target=write, args=(folder, number, commits, share, self.count, self._rss[number])
        )
        process.start()
        return process

    def resident_kib(self) -> int:
        """Return the memory of the first writer, which is never killed."""
        return int(self._rss[0].value)

    def is_working(self) -> bool:
        return any(process.is_alive() for process in self._processes)

    def kill_one(self) -> bool:
        """End the last process at whatever it is doing, unless it is just counting."""
        victim = self._processes[-1]
        if not victim.is_alive():
            return False
        with self.count.get_lock():
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()
        self._processes[-1] = self._start(PROCESSES - 1)
        return True

    def failed(self) -> list[str]:
        codes = [process.exitcode for process in self._processes]
        return [f"writer {n} ended with {code}" for n, code in enumerate(codes) if code != 0]


def soak(folder: Path, commits: int, share: float) -> list[str]:
    """Run, print how it goes, and return what went wrong."""
    with open_lake(folder) as lake:
        lake.create_namespace("db")
        lake.create_table("db.t", SCHEMA, properties=PROPERTIES)
    company = Company(folder, commits, share)
    started, told, kills, late = time.monotonic(), 0, 0, 0
    early_at, early = min(2_000, commits // 2), 0
    step, kill_every = max(commits // 20, 1), max(commits // 40, 25)
    while company.is_working():
        time.sleep(0.25)
        done, rss = company.count.value, company.resident_kib()
        early = early or (rss if done >= early_at else 0)
        if done >= told + step:
            told = done
            rate = done / (time.monotonic() - started)
            print(f"{done:>7,} commits  {rate:6.1f}/s  RSS {rss / 1024:6.1f} MiB", flush=True)
            late = rss
        if done < commits * 0.9 and done // kill_every > kills and company.kill_one():
            kills += 1
    wrong = company.failed()
    settle(folder)
    print(f"{kills} writers were killed; verifying", flush=True)
    count, found = verify(folder, sample=200)
    wrong += found
    if count < commits:
        wrong.append(f"only {count} snapshots for {commits} commits")
    print(f"RSS {early / 1024:.1f} MiB at commit {early_at:,}, {late / 1024:.1f} MiB at the end")
    if early and late > 1.5 * early:
        wrong.append(f"memory grew from {early:,} to {late:,} KiB")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument("--faults", type=float, default=0.003, help="share of requests that fail")
    parser.add_argument("--keep", action="store_true", help="leave the table for inspection")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="icetree-soak-"))
    try:
        wrong = soak(folder, options.commits, options.faults)
    finally:
        if options.keep:
            print(f"the table is in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    for each in wrong[:20]:
        print(f"WRONG: {each}")
    print("all is well" if not wrong else f"{len(wrong)} things are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
