"""Polars reads an export: the rows that icetree sees, deletes applied, with either of its readers."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import polars as pl
import pyarrow as pa
import pytest

from icetree.catalog.memory import MemoryCatalog
from icetree.store.local import LocalStore
from icetree.table.lake import Lake


@pytest.mark.parametrize("reader", ["native", "pyiceberg"])
def test_polars_reads_what_is_exported(
    reader: Literal["native", "pyiceberg"], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Else it warns that a planner of its own is not installed.
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    with Lake(catalog=MemoryCatalog("m"), store=LocalStore(), warehouse=str(tmp_path)) as lake:
        lake.create_namespace("db")
        few = {"write.root.max-data-entries": "2"}
        columns = pa.schema([("id", pa.int64()), ("c", pa.string())])
        table = lake.create_table("db.t", columns, partition_by=["c"], properties=few)
        for start in range(0, 40, 10):
            ids = [*range(start, start + 10)]
            table.append(pa.table({"id": ids, "c": [None if id % 7 == 0 else str(id % 3) for id in ids]}))  # fmt: skip
        table.delete("id in (3, 14, 20)")
        place = table.export().metadata_location
        found = pl.scan_iceberg(place, reader_override=reader)
        for where, kept in ((None, pl.lit(True)), ("id > 12 and c = '2'", (pl.col("id") > 12) & (pl.col("c") == "2"))):  # fmt: skip
            mine = table.scan(where).to_arrow().sort_by("id").to_pylist()
            assert found.filter(kept).sort("id").collect().to_dicts() == mine
            assert mine
