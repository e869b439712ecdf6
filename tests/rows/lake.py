"""A lake in memory, tables of rows in it, and rows as plain values to compare."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icetree.catalog.memory import MemoryCatalog
from icetree.spec.entry.entry import Content, Entry, to_table
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from icetree.tree.changes import Changes, Intent


def new_lake() -> Lake:
    lake = Lake(catalog=MemoryCatalog("test"), store=MemoryStore(), warehouse="memory://lake")
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


def foreign_delete(table: Table, keys: pa.Table, ids: list[int] | None = None) -> Changes:
    """An equality delete by columns, or by `ids`, as a writer adds it that checks nothing."""
    fields = [table.schema.find_field(name) for name in keys.column_names]
    schema = pa.schema(
        [
            column.with_metadata({"PARQUET:field_id": str(field.field_id)})
            for column, field in zip(keys.schema, fields, strict=True)
        ]
    )
    out = pa.BufferOutputStream()
    pq.write_table(keys.cast(schema), out)
    content = out.getvalue().to_pybytes()
    name = f"{uuid.uuid4()}.parquet"
    write_file(table, name, content)
    entry = Entry(
        content_type=Content.EQUALITY_DELETES,
        location=f"data/{name}",
        record_count=keys.num_rows,
        file_size_in_bytes=len(content),
        equality_ids=[field.field_id for field in fields] if ids is None else ids,
    )
    return Changes(intent=Intent.ROW_DELTA, added=to_table([entry], table.metadata.shape()))
