"""What must be so at the pipeline's end: the table beside what its events say by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icetree.cli.demo.events import EVENTS, USER, corrections, events
from icetree.cli.demo.laws import Law
from icetree.cli.demo.pipeline import APPENDS, LATE, Pipeline


def truths(done: Pipeline) -> Iterator[Law]:
    """Ask the table, and yield each answer beside what it should be."""
    expected = _Expected.of(done)
    yield _adds_up(done, expected)
    yield _then_and_now(done, expected)
    yield _evolved(done, expected)
    yield _changes(done, expected)
    yield _verified(done)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expected:
    """Counts and sums of the events themselves: no table is asked."""

    streamed: int
    erased: int
    corrected: int
    late: int
    newest: int
    total: Decimal

    @classmethod
    def of(cls, done: Pipeline) -> _Expected:
        every, changes = events(0, done.end), corrections(done.end, LATE)
        is_late = pc.greater_equal(changes["id"], done.end)
        changed, late = changes.filter(pc.invert(is_late)), changes.filter(is_late)
        erased = every.filter(pc.equal(every["user_id"], USER))
        wrong = every.filter(pc.is_in(every["id"], changed["id"].combine_chunks()))
        newest = pa.concat_tables(map(done.newest, range(APPENDS)))
        return cls(
            streamed=every.num_rows,
            erased=erased.num_rows,
            corrected=changed.num_rows,
            late=late.num_rows,
            newest=newest.num_rows,
            total=_sum(every["amount"])
            - _sum(erased["amount"])
            - _sum(wrong["amount"])
            + _sum(changed["amount"])
            + _sum(late["amount"])
            + _sum(newest["total"]),
        )

    @property
    def rows(self) -> int:
        """The rows that must be there at the end."""
        return self.streamed - self.erased + self.late + self.newest


def _sum(amounts: pa.ChunkedArray) -> Decimal:
    return Decimal(pc.sum(amounts.cast(pa.decimal128(38, 2))).as_py() or 0)


def _counted(rows: Any, amount: str) -> tuple[int, Decimal]:
    found = rows.selectExpr("count(*) AS n", f"coalesce(sum({amount}), 0) AS total").first()
    return int(found.n), Decimal(found.total)


def _adds_up(done: Pipeline, expected: _Expected) -> Law:
    rows, total = _counted(done.lake.read(EVENTS), "total")
    return Law(
        says="What came in, less what was deleted, is what is there, to the cent.",
        seen=f"{expected.streamed:,} - {expected.erased:,} deleted + {expected.late:,} late + "
        f"{expected.newest:,} appended = {rows:,} rows",
        holds=(rows, total) == (expected.rows, expected.total),
    )


def _then_and_now(done: Pipeline, expected: _Expected) -> Law:
    mine = f"SELECT count(*) AS n FROM {EVENTS} {{}} WHERE user_id = {USER}"
    now = _number(done, mine.format(""))
    then = _number(done, mine.format(f"VERSION AS OF {done.streamed}"))
    every = _number(done, f"SELECT count(*) AS n FROM {EVENTS} VERSION AS OF {done.streamed}")
    return Law(
        says="Time travel: the table before the DELETE still is what it was.",
        seen=f"{every:,} rows then, {then:,} of them user {USER}'s; now {now} of theirs",
        holds=(now, then, every) == (0, expected.erased, expected.streamed),
    )


def _evolved(done: Pipeline, expected: _Expected) -> Law:
    rows = done.lake.sql(f"SELECT channel, count(*) AS n FROM {EVENTS} GROUP BY channel").collect()
    found = {row.channel: row.n for row in rows}
    return Law(
        says="Rows from before the new column have its default.",
        seen=", ".join(f"{name}: {count:,}" for name, count in sorted(found.items())),
        holds=found == {"web": expected.rows - expected.newest, "app": expected.newest},
    )


def _changes(done: Pipeline, expected: _Expected) -> Law:
    feed = done.lake.changes(EVENTS, since=done.streamed, images=True)
    rows = feed.groupBy("_change_type").count().collect()
    found = {row["_change_type"]: row["count"] for row in rows}
    return Law(
        says="The change feed since the stream tells what was done, row by row.",
        seen=", ".join(f"{kind} {count:,}" for kind, count in sorted(found.items())),
        holds=found
        == {
            "INSERT": expected.late + expected.newest,
            "DELETE": expected.erased,
            "UPDATE_BEFORE": expected.corrected,
            "UPDATE_AFTER": expected.corrected,
        },
    )


def _verified(done: Pipeline) -> Law:
    report = done.table.verify(deep=True)
    return Law(
        says="Every rule of the format holds in every snapshot, read again from disk.",
        seen=report.text().replace("\n", "; "),
        holds=report.is_clean,
    )


def _number(done: Pipeline, query: str) -> int:
    found = done.lake.sql(query).first()
    assert found is not None  # a count is always one row
    return int(found.n)
