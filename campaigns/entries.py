"""Entries of files that are never written: what campaigns commit where only metadata counts."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.entry.entry import Content, Entry
from icetree.table.table import Table


def place_of(name: str) -> str:
    """Return where a data file would be."""
    return f"data/{name}.parquet"


def data_file(name: str, *, rows: int = 10) -> Entry:
    """Return a data file of so many rows."""
    return Entry(location=place_of(name), record_count=rows, file_size_in_bytes=1_000)


def merged(table: Table, names: Iterable[str], *, into: str) -> Entry:
    """Return a data file of the rows that others have left."""
    tasks = table.scan().plan().tasks
    old = tasks.filter(pc.is_in(tasks["location"], pa.array(map(place_of, names))))
    marked = old.num_rows - old["dv_location"].null_count
    return data_file(into, rows=(pc.sum(old["record_count"]).as_py() or 0) - marked)


def vector(name: str, *, of: str) -> Entry:
    """Return a DV that marks a row of a data file."""
    return Entry(
        content_type=Content.POSITION_DELETES,
        location=f"data/{name}.puffin",
        file_format="puffin",
        file_size_in_bytes=100,
        dv_offset=4,
        dv_size_in_bytes=40,
        record_count=1,
        referenced_file=place_of(of),
    )
