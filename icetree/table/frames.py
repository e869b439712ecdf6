"""Rows for whoever takes Arrow: as a stream, or as the frames of pandas, Polars and DuckDB."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from icetree.errors import InvalidInput
from icetree.spec.spelled import spelled

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl


@spelled
class Frames:
    """Rows that come batch by batch, and every way to have them all.

    It is a stream by Arrow's C interface, so `pa.table(scan)`, `pl.DataFrame(scan)` and
    `duckdb.sql("from scan")` read it. Each time it is read anew.
    """

    if TYPE_CHECKING:

        @property
        def arrow_schema(self) -> pa.Schema: ...

        def to_batches(self) -> Iterator[pa.RecordBatch]: ...

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as Arrow's reader of batches."""
        return pa.RecordBatchReader.from_batches(self.arrow_schema, self.to_batches())

    def to_arrow(self) -> pa.Table:
        """Return the rows."""
        return pa.Table.from_batches(self.to_batches(), self.arrow_schema)

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas frame."""
        _module("pandas")
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a Polars frame."""
        frame: pl.DataFrame = _module("polars").from_arrow(self.to_arrow())
        return frame

    def to_duckdb(
        self, name: str = "scan", *, connection: duckdb.DuckDBPyConnection | None = None
    ) -> duckdb.DuckDBPyConnection:
        """Return a DuckDB connection in which a view holds the rows."""
        into: duckdb.DuckDBPyConnection = connection or _module("duckdb").connect()
        into.register(name, self.to_arrow())
        return into


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InvalidInput(f"{name} is not installed: pip install {name}") from None
