"""What happens to the table on Spark, step by step, and what each step costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icetree.cli.demo.events import EVENTS, ROWS, SCHEMA, USER, corrections, events
from icetree.cli.demo.ledger import Ledger
from icetree.explore.cost import Cost
from icetree.spark.lake import SparkLake
from icetree.spark.stream.write import Batch
from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.table import Table

#: Micro-batches of the stream, a file each.
BATCHES: Final = 8
#: Events that the corrections bring along, and those of each append to the changed table.
LATE: Final = 500
AFTER: Final = 2_000
APPENDS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What was done, how long it took, and the metadata written for it."""

    what: str
    rows: int | None
    seconds: float
    commits: int
    cost: Cost


@dataclass(slots=True, kw_only=True)
class Pipeline:
    """A table in a lake and its story so far; it has the events up to a number already."""

    lake: SparkLake
    #: Where files land that the stream reads, and where it keeps how far it is.
    folder: Path
    #: How many events the table starts with.
    past: int
    batches: int = BATCHES
    #: Hears of each step before it is done.
    on_start: Callable[[str], None] = lambda _: None
    #: Hears how many commits the stream has made.
    on_commit: Callable[[int], None] = lambda _: None
    #: The snapshot that the stream left.
    streamed: int = 0
    steps: list[Step] = field(default_factory=list)
    _ledger: Ledger = field(default_factory=Ledger)

    @property
    def table(self) -> Table:
        """The table as it is now."""
        return self.lake.table(EVENTS)

    @property
    def end(self) -> int:
        """The number of the first event after the stream."""
        return self.past + self.batches * ROWS

    def run(self) -> Iterator[Step]:
        """Do it all, and yield each step once it is done."""
        self._ledger.look(self.table)
        for step in self._all():
            self.steps.append(step)
            yield step

    def _all(self) -> Iterator[Step]:
        yield self._streamed(f"stream {self.batches} files that land")
        yield self._step(f"DELETE what user {USER} did", self._erase)
        yield self._step("MERGE corrections, late events", self._merge)
        yield self._step("add a column, rename another", self._columns)
        yield self._step("partition by day from now on", self._partition)
        yield self._step(f"append {APPENDS} times, by day", self._append)

    def _step(self, what: str, do: Callable[[], int | None]) -> Step:
        self.on_start(what)
        start = time.perf_counter()
        rows = do()
        seconds = time.perf_counter() - start
        written = self._ledger.look(self.table)
        return Step(
            what=what, rows=rows, seconds=seconds, commits=written.commits, cost=written.cost
        )

    def _streamed(self, what: str) -> Step:
        step = self._step(what, self._stream)
        return replace(step, what=f"{what}, {step.commits / step.seconds:.1f}/s")

    def frame(self, rows: pa.Table) -> Any:
        """Return rows as Spark has them."""
        return self.lake.spark.createDataFrame(rows)

    # --- steps -----------------------------------------------------------------------------

    def _stream(self) -> int:
        landing = self.folder / "landing"
        landing.mkdir(parents=True)
        for number in range(self.batches):
            rows = events(self.past + number * ROWS, ROWS)
            pq.write_table(rows, landing / f"{number:03d}.parquet")
        made: list[Batch] = []

        def hear(batch: Batch) -> None:
            if batch.committed is not None:
                made.append(batch)
                self.on_commit(len(made))

        schema = self.frame(SCHEMA.empty_table()).schema
        source = self.lake.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        query = self.lake.write_stream(
            EVENTS,
            source.parquet(str(landing)),
            checkpoint=self.folder / "checkpoint",
            trigger="available-now",
            on_batch=hear,
        )
        query.awaitTermination()
        self.streamed = self.table.metadata.current_snapshot_id or 0
        return sum(batch.rows for batch in made)

    def _erase(self) -> int:
        self.lake.sql(f"DELETE FROM {EVENTS} WHERE user_id = {USER}")
        return _told(self.table.snapshot(), "added-position-deletes")

    def _merge(self) -> int:
        self.frame(corrections(self.end, LATE)).createOrReplaceTempView("corrections")
        self.lake.sql(
            f"MERGE INTO {EVENTS} AS event USING corrections AS c ON event.id = c.id "
            "WHEN MATCHED THEN UPDATE SET amount = c.amount WHEN NOT MATCHED THEN INSERT *"
        )
        return _told(self.table.snapshot(), "added-records")

    def _columns(self) -> None:
        self.lake.sql(f"ALTER TABLE {EVENTS} ADD COLUMN channel STRING DEFAULT 'web'")
        self.lake.sql(f"ALTER TABLE {EVENTS} RENAME COLUMN amount TO total")

    def _partition(self) -> None:
        self.lake.sql(f"ALTER TABLE {EVENTS} ADD PARTITION FIELD days(at)")

    def _append(self) -> int:
        total = 0
        for each in range(APPENDS):
            done = self.lake.write(EVENTS, self.frame(self.newest(each))).append()
            total += _told(done.snapshot, "added-records")
        return total

    def newest(self, which: int) -> pa.Table:
        """Return the events of one append to the changed table."""
        found = events(self.end + LATE + which * AFTER, AFTER)
        found = found.filter(pc.not_equal(found["user_id"], USER))
        named = found.rename_columns([n if n != "amount" else "total" for n in found.column_names])
        return named.append_column("channel", pa.repeat("app", named.num_rows))


def _told(snapshot: Snapshot | None, what: str) -> int:
    return int(((snapshot and snapshot.summary) or {}).get(what, 0))
