"""A table with a past: leaves and manifest DVs, data DVs, equality deletes, schemas and specs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from icetree.rows.write.deletes import write_equality_deletes
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.peers.values import row

COLUMNS = (
    "id long, n int, country string, price double, amount decimal(9, 2), d date, "
    "ts timestamptz, tsn timestamp, flag boolean, place struct<city: string, zip: int>"
)
#: A root of few files, and leaves of few: trees of two levels out of small tables.
SMALL = {
    "write.root.max-data-entries": "6",
    "write.root.max-delete-entries": "3",
    "write.leaf.max-entries": "8",
    "write.metadata.inline-snapshots": "100",
}


def rows(start: int, size: int, table: Table) -> pa.Table:
    """Return rows with ids from `start` on, in the columns that the table has."""
    named = {"price": "cost"} if "cost" in table.schema.column_names else {}
    made = [{named.get(k, k): v for k, v in row(id).items()} for id in range(start, start + size)]
    return pa.Table.from_pylist(made, schema=table.schema.as_arrow())


def append(table: Table, start: int, size: int = 12) -> None:
    table.append(rows(start, size, table))


def equality_delete(table: Table, **values: Any) -> None:
    """Delete all rows so far that have these values."""
    data = pa.table({name: pa.array([value]) for name, value in values.items()})
    told = write_equality_deletes(data, ["id"], metadata=table.metadata, store=table.files.store)
    table.row_delta(told)


def played(lake: Lake, *, equality: bool) -> Iterator[Table]:
    """Yield the table as it is after each chapter of its story."""
    lake.create_namespace("db")
    table = lake.create_table("db.t", COLUMNS, partition_by=["country"], properties=SMALL)
    yield table
    for start in range(0, 60, 12):
        append(table, start)
    yield table
    table.delete("id between 7 and 9 or id = 30")
    table.create_tag("early")
    yield table
    table.delete("country = 'FR' and id < 40")
    yield table
    with table.edit_spec() as spec:
        spec.add("bucket(3, id)")
        spec.remove("country")
        spec.add("days(ts)")
    with table.edit_schema() as schema:
        schema.rename("price", "cost").add("note", "string")
    append(table, 60, 20)
    yield table
    table.update({"n": "n + 100"}, "id between 20 and 70")
    yield table
    if equality:
        for id in (3, 66):
            equality_delete(table, id=id, ts=row(id)["ts"])
        append(table, 80)
        yield table
    with table.edit_spec() as spec:
        for each in list(spec.fields):
            spec.remove(each.name)
        spec.add("truncate(1, country)").add("hours(tsn)").add("cost")
    append(table, 92, 9)
    table.delete("id in (14, 24, 84, 94)")
    yield table
    table.maintenance.rewrite_manifests()
    yield table
    table.delete("id < 30")
    append(table, 110, 3)
    yield table
