"""What happens to the pipeline's table on Spark, step by step, and what each step costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any, Final

from icetree.cli.demo.events import (
    CREATE,
    EVENTS,
    PAST,
    ROWS,
    USER,
    coming,
    corrections,
    events,
)
from icetree.cli.demo.ledger import Ledger
from icetree.errors import Unavailable
from icetree.explore.cost import Cost
from icetree.explore.v3 import V3
from icetree.spark.lake import SparkLake
from icetree.spark.stream.write import Batch, stop
from icetree.spec.snapshot import Snapshot
from icetree.table.table import Table

#: Events that the corrections bring along, and those of each append to the changed table.
LATE: Final = 500
AFTER: Final = 2_000
APPENDS: Final = 3
#: A stream that brings nothing for so long will not bring more.
_PATIENCE_S: Final = 300.0
_STOP_S: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What was done, how long it took, and the metadata written for it."""

    what: str
    rows: int | None
    seconds: float
    commits: int
    v4: Cost
    v3: Cost


@dataclass(slots=True, kw_only=True)
class Pipeline:
    """A table in a lake and its story so far."""

    lake: SparkLake
    #: Where the stream keeps how far it is.
    checkpoint: Path
    #: How many commits the stream makes.
    commits: int
    #: How many events of the past the table starts with: those of two days at least.
    past: int = PAST
    #: Hears of each step before it is done.
    on_start: Callable[[str], None] = lambda _: None
    #: Hears how many commits the stream has made.
    on_commit: Callable[[int], None] = lambda _: None
    #: The snapshot that the stream left.
    streamed: int = 0
    steps: list[Step] = field(default_factory=list)
    v3: V3 = field(default_factory=V3)
    _ledger: Ledger = field(default_factory=Ledger)

    @property
    def table(self) -> Table:
        """The table as it is now."""
        return self.lake.table(EVENTS)

    @property
    def end(self) -> int:
        """The number of the first event after the stream."""
        return self.past + self.commits * ROWS

    def run(self) -> Iterator[Step]:
        """Do it all, and yield each step once it is done."""
        for step in self._all():
            self.steps.append(step)
            yield step

    def _all(self) -> Iterator[Step]:
        yield self._step("create a table of events, by day", self._create)
        yield self._step("append a week of the past", self._load)
        yield self._streamed(f"stream {self.commits:,} small commits")
        yield self._step(f"DELETE what user {USER} did", self._erase)
        yield self._step("MERGE corrections and late events", self._merge)
        yield self._step("add a column with a default, rename one", self._columns)
        yield self._step("partition by bucket(4, user_id) too", self._partition)
        yield self._step(f"append {APPENDS} times to the new layout", self._append)

    def _step(self, what: str, do: Callable[[], int | None], *, merges: bool = True) -> Step:
        self.on_start(what)
        start = time.perf_counter()
        rows = do()
        seconds = time.perf_counter() - start
        table = self.table
        written = self._ledger.look(table)
        return Step(
            what=what,
            rows=rows,
            seconds=seconds,
            commits=written.commits,
            v4=written.cost,
            v3=self.v3.follow(table, commits=written.commits, merges=merges),
        )

    def _streamed(self, what: str) -> Step:
        step = self._step(what, self._stream, merges=False)
        return replace(step, what=f"{what}, {self.commits / step.seconds:.1f} a second")

    # --- steps -----------------------------------------------------------------------------

    def _create(self) -> None:
        self.lake.create_namespace("shop")
        self.lake.sql(CREATE)

    def _load(self) -> int:
        done = self.lake.write(EVENTS, events(self.lake, 0, self.past)).append()
        return _told(done.snapshot, "added-records")

    def _stream(self) -> int:
        made: list[Batch] = []
        ended = Event()

        def hear(batch: Batch) -> None:
            if batch.committed is not None:
                made.append(batch)
                self.on_commit(len(made))
            if len(made) >= self.commits:
                ended.set()

        rows = coming(self.lake, self.past, self.commits)
        query = self.lake.write_stream(EVENTS, rows, checkpoint=self.checkpoint, on_batch=hear)
        try:
            seen, since = 0, time.monotonic()
            while not ended.wait(_STOP_S):
                if len(made) > seen:
                    seen, since = len(made), time.monotonic()
                if not query.isActive or time.monotonic() - since > _PATIENCE_S:
                    why = query.exception() or f"nothing new in {_PATIENCE_S:.0f} seconds"
                    raise Unavailable(f"the stream ended after {len(made)} commits: {why}")
        finally:
            # The source never ends: what it brings by now is empty, and cut off without harm.
            stop(query, timeout_s=_STOP_S)
        self.streamed = self.table.metadata.current_snapshot_id or 0
        return sum(batch.rows for batch in made)

    def _erase(self) -> int:
        self.lake.sql(f"DELETE FROM {EVENTS} WHERE user_id = {USER}")
        return _told(self.table.snapshot(), "added-position-deletes")

    def _merge(self) -> int:
        corrections(self.lake, self.end, LATE).createOrReplaceTempView("corrections")
        self.lake.sql(
            f"MERGE INTO {EVENTS} AS event USING corrections AS c ON event.id = c.id "
            "WHEN MATCHED THEN UPDATE SET amount = c.amount WHEN NOT MATCHED THEN INSERT *"
        )
        return _told(self.table.snapshot(), "added-records")

    def _columns(self) -> None:
        self.lake.sql(f"ALTER TABLE {EVENTS} ADD COLUMN channel STRING DEFAULT 'web'")
        self.lake.sql(f"ALTER TABLE {EVENTS} RENAME COLUMN amount TO total")

    def _partition(self) -> None:
        self.lake.sql(f"ALTER TABLE {EVENTS} ADD PARTITION FIELD bucket(4, user_id)")

    def _append(self) -> int:
        total = 0
        for each in range(APPENDS):
            done = self.lake.write(EVENTS, self.newest(each)).append()
            total += _told(done.snapshot, "added-records")
        return total

    def newest(self, which: int) -> Any:
        """Return the events of one append to the changed table, as a DataFrame."""
        found = events(self.lake, self.end + LATE + which * AFTER, AFTER)
        return found.where(f"user_id <> {USER}").selectExpr(
            "id", "user_id", "kind", "country", "amount AS total", "at", "'app' AS channel"
        )


def _told(snapshot: Snapshot | None, what: str) -> int:
    return int(((snapshot and snapshot.summary) or {}).get(what, 0))
