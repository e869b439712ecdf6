"""A table on a memory store and catalog, and files for it that hold numbers in a range."""

from __future__ import annotations

from typing import Any

from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from icetree.catalog.memory import MemoryCatalog
from icetree.spec.entry.entry import Content, Entry
from icetree.spec.entry.stats import FieldStats
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from icetree.tree.check.check import check
from icetree.tree.live import live_files

SCHEMA = Schema(
    NestedField(1, "n", LongType(), required=False),
    NestedField(2, "country", StringType(), required=False),
)


def connection() -> Lake:
    """Return a connection to nothing but memory, with a namespace `db`."""
    opened = Lake(catalog=MemoryCatalog("m"), store=MemoryStore(), warehouse="memory://w")
    opened.create_namespace("db")
    return opened


def new_table(lake: Lake | None = None, **how: Any) -> Table:
    """Make `db.t`: `n long, country string`."""
    return (lake or connection()).create_table("db.t", SCHEMA, **how)


def data_file(
    name: str, low: int = 0, high: int = 9, *, country: str | None = None, spec_id: int = 0
) -> Entry:
    """A file of rows with n from `low` to `high`, of one country where one is given."""
    rows = high - low + 1
    stats = {1: FieldStats(lower=low, upper=high, tight=True, values=rows, nulls=0)}
    if country is not None:
        stats[2] = FieldStats(lower=country, upper=country, tight=True, values=rows, nulls=0)
    return Entry(
        location=f"memory://w/db/t/data/{name}.parquet",
        record_count=rows,
        file_size_in_bytes=100 * rows,
        partition_spec_id=spec_id,
        stats=stats,
    )


def vector(name: str, of: str, rows: int = 1) -> Entry:
    """A data DV for the data file called `of`."""
    return Entry(
        content_type=Content.POSITION_DELETES,
        location=f"memory://w/db/t/data/{name}.puffin",
        file_format="puffin",
        referenced_file=f"memory://w/db/t/data/{of}.parquet",
        record_count=rows,
        file_size_in_bytes=500,
        dv_offset=4,
        dv_size_in_bytes=40,
    )


def place(name: str) -> str:
    """The location of the data file called `name`."""
    return f"memory://w/db/t/data/{name}.parquet"


def live(table: Table, *, branch: str = "main") -> list[str]:
    """Name the live files of a branch, DVs as `dv of data file`, having checked the tree."""
    snapshot = table.state.head(branch)
    shape = table.metadata.shape()
    root, reader = table.files.root(snapshot, shape), table.files.reader(shape)
    facts: dict[str, Any] = {}
    if snapshot is not None:
        facts = {"snapshot_id": snapshot.snapshot_id, "sequence_number": snapshot.sequence_number}
    assert check(root, reader, shape, **facts) == []
    found = live_files(root, reader).select(["content_type", "location", "referenced_file"])
    return sorted(
        f"dv of {_short(row['referenced_file'])}"
        if row["content_type"] == Content.POSITION_DELETES
        else _short(row["location"])
        for row in found.to_pylist()
    )


def _short(location: str) -> str:
    return location.removeprefix("data/").partition(".")[0]
