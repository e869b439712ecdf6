"""A lake in memory with a table that has a bit of everything: what sound examples are taken from."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from functools import cache

import pyarrow as pa

from icetree.catalog.memory import MemoryCatalog
from icetree.rows.write.deletes import write_data_vectors
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from icetree.tree.plan.plan import plan

WHEN = datetime(2026, 1, 1, tzinfo=timezone.utc)
ROWS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("ts", pa.timestamp("us", tz="UTC")),
        pa.field("country", pa.string()),
        pa.field("x", pa.float64()),
        pa.field("price", pa.decimal128(9, 2)),
        pa.field("day", pa.date32()),
        pa.field("is_new", pa.bool_()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("place", pa.struct([("lat", pa.float32()), ("name", pa.binary())])),
        pa.field("notes", pa.map_(pa.string(), pa.int32())),
    ]
)


def rows(first: int, count: int = 6) -> pa.Table:
    """Rows with nulls and NaNs among them."""
    return pa.Table.from_pylist(
        [
            {
                "id": first + at,
                "ts": WHEN.replace(day=1 + first % 28),
                "country": (None, "DE", "a country with a long name")[at % 3],
                "x": float("nan") if at % 4 == 0 else at / 2,
                "price": Decimal("1.25") * at,
                "day": date(2026, 1, 1 + at),
                "is_new": at % 2 == 0,
                "tags": [None, [], ["a", None]][at % 3],
                "place": None if at % 2 else {"lat": 1.5, "name": b"\x00\xff"},
                "notes": {"k": at},
            }
            for at in range(count)
        ],
        ROWS,
    )


@cache
def lake() -> Lake:
    """A connection to nothing but memory, with a table `db.t` that has a bit of everything."""
    opened = Lake(catalog=MemoryCatalog("m"), store=MemoryStore(), warehouse="memory://fuzz")
    opened.create_namespace("db")
    table = opened.create_table(
        "db.t",
        ROWS,
        partition_by=["bucket(2, id)"],
        order_by=["id"],
        properties={"write.root.max-data-entries": "2", "write.metadata.inline-snapshots": "3"},
    )
    for at in range(4):
        table.append(rows(10 * at))
    planned = plan(
        table.files.root(table.snapshot(), table.metadata.shape()),
        table.files.reader(table.metadata.shape()),
        table.metadata.shape(),
        stats_columns=True,
    ).tasks
    table.row_delta(
        write_data_vectors(
            {planned["location"][0].as_py(): [0, 2]},
            tasks=planned,
            metadata=table.metadata,
            store=table.files.store,
        )
    )
    in_leaf = [each for each in planned.to_pylist() if each["leaf"]]
    with table.transaction() as changes:
        changes.delete_files([in_leaf[-1]["location"]])
        changes.append(rows(90))
    return opened


def table() -> Table:
    """A handle of the table."""
    return lake().table("db.t")


@cache
def files() -> dict[str, bytes]:
    """Every file of the table by location."""
    store = lake().store
    return {each.location: store.read(each.location) for each in store.list("memory://fuzz")}
