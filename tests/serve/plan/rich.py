"""A table with everything that a reader has to get right: deletes, old schemas, old specs, nulls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from icetree.rows.write.deletes import write_equality_deletes
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.peers.values import row

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int32()),
        ("country", pa.string()),
        ("price", pa.float64()),
        ("amount", pa.decimal128(9, 2)),
        ("d", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("tsn", pa.timestamp("us")),
        ("flag", pa.bool_()),
        ("place", pa.struct([("city", pa.string()), ("zip", pa.int32())])),
    ]
)


def rich_table(lake: Lake, name: str, *, equality: bool) -> Table:
    """Make the table; it has seven snapshots or so, and files of three specs and two schemas."""
    table = lake.create_table(name, SCHEMA, partition_by=["country", "bucket(2, id)"])
    table.append(rows_of(range(60)))
    table.append(rows_of(range(60, 120)))
    table.delete("n = 8 or id in (3, 61)")
    with table.edit_spec() as spec:
        spec.remove("country")
        spec.add("month(d)")
    table.append(rows_of(range(120, 200)))
    if equality:
        _delete_equal(table, pa.table({"id": [5, 77, 150], "d": _days([5, 77, 150])}))
    with table.edit_schema() as schema:
        schema.rename("price", "cost")
        schema.add("extra", pa.string())
        schema.widen("n", pa.int64())
    with table.edit_spec() as spec:
        spec.add("truncate(4, place.city)")
    table.append(rows_of(range(200, 300), evolved=True))
    table.delete("id in (7, 57, 107, 157, 207, 257)")
    return table


def rows_of(ids: Sequence[int], *, evolved: bool = False) -> pa.Table:
    found: list[dict[str, Any]] = [row(id) for id in ids]
    if not evolved:
        return pa.Table.from_pylist(found, schema=SCHEMA)
    names = ["cost" if name == "price" else name for name in SCHEMA.names]
    made = pa.Table.from_pylist(found, schema=SCHEMA).rename_columns(names)
    extra = pa.array([None if id % 5 == 0 else f"e{id % 40}" for id in ids], pa.string())
    return made.append_column("extra", extra)


def _days(ids: list[int]) -> pa.Array:
    return pa.array([row(id)["d"] for id in ids], pa.date32())


def _delete_equal(table: Table, keys: pa.Table) -> None:
    places = {"metadata": table.metadata, "store": table.files.store}
    table.row_delta(write_equality_deletes(keys, ["id"], **places))
