"""A lake in memory, tables of rows in it, and rows as plain values to compare."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from icetree.catalog.memory import MemoryCatalog
from icetree.store.memory import MemoryStore
from icetree.table.connection import Connection
from icetree.table.table import Table


def new_lake() -> Connection:
    lake = Connection(catalog=MemoryCatalog("test"), store=MemoryStore(), warehouse="memory://lake")
    lake.create_namespace("db")
    return lake


def new_table(schema: Any, **how: Any) -> Table:
    return new_lake().create_table("db.rows", schema, **how)


def rows(data: pa.Table) -> list[str]:
    """Return rows that compare equal where the rows do, NaN and -0.0 too, in any order."""
    return sorted(map(repr, data.to_pylist()))


def files(table: Table) -> list[str]:
    """Return the absolute locations of the table's data files."""
    found = table.scan().plan().tasks["location"].to_pylist()
    return [f"{table.location}/{name}" for name in found]


def write_file(table: Table, name: str, content: bytes) -> None:
    table.files.store.write_new(f"{table.location}/data/{name}", content)
