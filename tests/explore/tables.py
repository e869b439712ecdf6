"""A small table that has had a life: flushes, deletes of rows and of files, folded leaves, a branch."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa

import icetree
from icetree.table.lake import Lake
from icetree.table.table import Table

COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("country", pa.string()),
        ("amount", pa.float64()),
        ("at", pa.timestamp("us")),
    ]
)
START = datetime(2026, 3, 1)  # noqa: DTZ001 (the column has no zone)


def open_lake(folder: Path) -> Lake:
    return icetree.connect(f"sqlite:///{folder}/c.db", warehouse=str(folder / "lake"))


def rows(first: int, day: int, count: int = 40) -> pa.Table:
    """Return rows of two days, with ids from `first` on."""
    ids = list(range(first, first + count))
    hours = [timedelta(days=day, hours=48 * at / count) for at in range(count)]
    return pa.table(
        [ids, ["DE" if at % 3 else "FR" for at in ids], [at / 4 for at in ids], [START + at for at in hours]],
        schema=COLUMNS,
    )  # fmt: skip


def live(
    lake: Lake, name: str = "db.t", after: Callable[[Table], object] = lambda _: None
) -> Table:
    """Make the table; `after` is called after each commit."""
    table = lake.create_table(
        name,
        COLUMNS,
        partition_by=["day(at)"],
        properties={"write.root.max-data-entries": "6", "write.flush.affinity-min-entries": "1"},
    )
    commits: list[Callable[[], object]] = [
        *(lambda at=at: table.append(rows(at * 40, at // 2)) for at in range(8)),
        lambda: table.delete("id >= 300 and id < 303"),
        lambda: table.delete("at < '2026-03-02T00:00:00'"),
        lambda: table.append(rows(400, 5)),
        lambda: table.create_branch("staging"),
        lambda: table.append(rows(500, 1), branch="staging"),
        lambda: table.maintenance.rewrite_manifests(),  # noqa: PLW0108 (of the table as it is then)
        lambda: table.append(rows(600, 6)),
    ]
    for commit in commits:
        commit()
        after(table)
    return table


def leafy(lake: Lake, name: str) -> Table:
    """Make a table with leaves of one file each, of ids that are apart."""
    small = {"write.root.max-data-entries": "1", "write.leaf.max-entries": "1"}
    table = lake.create_table(name, [("id", "long")], properties=small)
    for id in range(0, 80, 10):
        table.append(pa.table({"id": [id]}))
    return table
