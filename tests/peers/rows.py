"""The rows of data files, read without any plan."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from icetree.store.places import local_path
from tests.peers.filters import Row

if TYPE_CHECKING:
    from icetree.table.table import Table


class RowsOf:
    """All rows of each data file under the names that the table's columns have now."""

    def __init__(self, table: Table) -> None:
        self._names = {field.field_id: field.name for field in table.schema.fields}
        self._read = cache(self._rows)

    def __call__(self, location: str) -> list[Row]:
        return self._read(location)

    def _rows(self, location: str) -> list[Row]:
        read: Any = pq.ParquetFile(local_path(location)).read()
        ids = [int(field.metadata[b"PARQUET:field_id"]) for field in read.schema]
        known = [at for at, id in enumerate(ids) if id in self._names]
        return read.select(known).rename_columns([self._names[ids[at]] for at in known]).to_pylist()
