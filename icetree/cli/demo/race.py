"""The same events into a table of icetree and into one of PyIceberg, turn by turn, and what it takes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final, Protocol

import pyarrow as pa

from icetree.cli.demo.events import EVENTS, ROWS, SCHEMA, events
from icetree.cli.demo.peer import CountedIO, CountedStore, peer_catalog, peer_table
from icetree.table.lake import Lake, open_lake

#: Writers at once, and the commits of each.
WRITERS: Final = 4
EACH: Final = 8
#: Plans that are made, of which the middle one counts.
_PLANS: Final = 5
#: So many commits are told of as the first and the last.
SPAN: Final = 20


class System(Protocol):
    """A table that events go into."""

    name: str
    requests: Counter[str]

    def append(self, rows: pa.Table) -> None:
        """Commit rows."""
        ...

    def plan(self, where: str) -> int:
        """Open the table anew and plan a scan; return how many files there are to read."""
        ...

    def writer(self) -> Callable[[pa.Table], object]:
        """Return what commits rows by a connection of its own."""
        ...

    def rows(self) -> int:
        """Return how many rows the table has."""
        ...

    def metadata(self) -> Path:
        """Return the folder of its metadata."""
        ...


class Ours:
    """A table of icetree."""

    name = "icetree"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lake = self._open()
        store = CountedStore(self._lake.store)
        self._lake.store = store
        self.requests = store.requests
        self._lake.create_namespace(EVENTS.partition(".")[0], exist_ok=True)
        self._table = self._lake.create_table(EVENTS, SCHEMA)

    def _open(self) -> Lake:
        warehouse = {"warehouse": str(self._folder / "warehouse")}
        return open_lake(f"sqlite:///{self._folder}/catalog.db", warehouse)

    def append(self, rows: pa.Table) -> None:
        """Commit rows."""
        self._table.append(rows)

    def plan(self, where: str) -> int:
        """Open the table anew and plan a scan; return how many files there are to read."""
        with self._open() as lake:
            return int(lake.table(EVENTS).scan(where).plan().tasks.num_rows)

    def writer(self) -> Callable[[pa.Table], object]:
        """Return what commits rows by a connection of its own."""
        return self._open().table(EVENTS).append

    def rows(self) -> int:
        """Return how many rows the table has."""
        return self._table.refresh().scan().count()

    def metadata(self) -> Path:
        """Return the folder of its metadata."""
        return Path(self._table.location, "metadata")

    def close(self) -> None:
        """Let go of the catalog."""
        self._lake.close()


class Theirs:
    """A table of PyIceberg, in its own catalog; its defaults are left as they are."""

    name = "PyIceberg"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        CountedIO.requests.clear()
        self.requests = CountedIO.requests
        self._table = peer_table(folder, EVENTS, SCHEMA)

    def append(self, rows: pa.Table) -> None:
        """Commit rows."""
        self._table.append(rows)

    def plan(self, where: str) -> int:
        """Open the table anew and plan a scan; return how many files there are to read."""
        catalog = peer_catalog(self._folder)
        try:
            return len(list(catalog.load_table(EVENTS).scan(where).plan_files()))
        finally:
            catalog.close()

    def writer(self) -> Callable[[pa.Table], object]:
        """Return what commits rows by a connection of its own."""
        table = peer_catalog(self._folder).load_table(EVENTS)
        return table.append

    def rows(self) -> int:
        """Return how many rows the table has."""
        return self._table.refresh().scan().count()

    def metadata(self) -> Path:
        """Return the folder of its metadata."""
        return Path(self._table.location().removeprefix("file://"), "metadata")


@dataclass(slots=True, kw_only=True)
class Lane:
    """What one system's commits took, commit by commit."""

    system: System
    seconds: list[float] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    size_bytes: list[int] = field(default_factory=list)
    #: Writes and reads of all commits together.
    requests: Counter[str] = field(default_factory=Counter)
    plan_seconds: float = 0.0
    planned: int = 0
    #: Of writers at once: commits that landed, and those that were refused.
    landed: int = 0
    refused: int = 0
    together_seconds: float = 0.0
    rows: int = 0
    _seen: dict[str, int] = field(default_factory=dict)

    def commit(self, rows: pa.Table) -> None:
        """Commit rows, and note what that took and wrote."""
        before = Counter(self.system.requests)
        start = time.perf_counter()
        self.system.append(rows)
        self.seconds.append(time.perf_counter() - start)
        self.requests += self.system.requests - before
        now = {each.name: each.stat().st_size for each in self.system.metadata().iterdir()}
        new = now.keys() - self._seen.keys()
        self.files.append(len(new))
        self.size_bytes.append(sum(now[name] for name in new))
        self._seen = now

    def plan(self, where: str) -> None:
        """Plan a scan a few times, each by a connection of its own."""
        took = []
        for _ in range(_PLANS):
            start = time.perf_counter()
            self.planned = self.system.plan(where)
            took.append(time.perf_counter() - start)
        self.plan_seconds = median(took)

    def together(self, first: int, each: int) -> None:
        """Let writers make so many commits each at once, from an event on."""
        writers = [self.system.writer() for _ in range(WRITERS)]
        before = self.system.rows()
        start = time.perf_counter()
        with ThreadPoolExecutor(WRITERS) as pool:
            begins = (first + number * each * ROWS for number in range(WRITERS))
            done = list(pool.map(partial(_commits, each=each), writers, begins))
        self.together_seconds = time.perf_counter() - start
        self.landed, self.refused = sum(done), WRITERS * each - sum(done)
        self.rows = self.system.rows() - before

    @property
    def none_lost(self) -> bool:
        """Whether every commit that was not refused is there, once."""
        return self.rows == self.landed * ROWS

    def latency(self, part: slice) -> float:
        """Return the middle latency of some commits."""
        return median(self.seconds[part])


def _commits(append: Callable[[pa.Table], object], first: int, *, each: int) -> int:
    """Commit one batch after the other; return how many were not refused."""
    landed = 0
    for number in range(each):
        try:
            append(events(first + number * ROWS, ROWS))
        except Exception:  # each side refuses with errors of its own
            continue
        landed += 1
    return landed


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """Both lanes, at their end."""

    ours: Lane
    theirs: Lane
    commits: int
    #: Commits of each writer, of those that wrote at once.
    each: int

    @property
    def end(self) -> int:
        """The number of the first event that neither has."""
        return (self.commits + WRITERS * self.each) * ROWS


def race(folder: Path, commits: int, on_commit: Callable[[int], None], *, each: int = EACH) -> Race:
    """Run it: commits in turn, then plans, then writers at once. Our table stays in the folder."""
    mine = Ours(folder)
    lanes = [Lane(system=mine), Lane(system=Theirs(folder / "pyiceberg"))]
    for number in range(commits):
        rows = events(number * ROWS, ROWS)
        # By turns who is first: what a machine does meanwhile, it does to both.
        for lane in lanes if number % 2 else reversed(lanes):
            lane.commit(rows)
        on_commit(number + 1)
    for lane in lanes:
        lane.plan(_some(commits))
    for lane in lanes:
        lane.together(commits * ROWS, each)
    mine.close()
    return Race(ours=lanes[0], theirs=lanes[1], commits=commits, each=each)


def _some(commits: int) -> str:
    """Return a condition that a tenth of the files may match."""
    first = commits * ROWS // 2
    return f"id >= {first} and id < {first + max(commits // 10, 1) * ROWS}"
