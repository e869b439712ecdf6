"""What a plain model of a table knows: rows and their files, what a handle saw, what a commit tries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from icetree.table.table import Table

SCHEMA = pa.schema(
    [pa.field("uid", pa.int64()), pa.field("k", pa.string()), pa.field("t", pa.timestamp("us"))]
)
#: What the model knows of the table in one state.
OF_A_STATE = ("rows", "dv_at", "equal_at", "gone_at", "compacted_at")
START = datetime(2024, 1, 1)  # noqa: DTZ001 (as the column: without a time zone)
TERMS = ((), ("truncate(1, k)",), ("day(t)",), ("k",), ("truncate(1, k)", "day(t)"))
SOURCES = {"truncate(1, k)": "k", "day(t)": "t", "k": "k"}
_PARTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "truncate(1, k)": lambda row: row["k"][:1],
    "day(t)": lambda row: row["t"].date(),
    "k": lambda row: row["k"],
}


@dataclass(kw_only=True)
class Row:
    """A live row: its values, and the file it is in."""

    values: dict[str, Any]
    file: str
    spec_id: int


@dataclass(kw_only=True)
class Seen:
    """A handle, and what the head was when it last looked."""

    table: Table
    version: int = 0
    rows: dict[int, Row] = field(default_factory=dict)
    terms: tuple[str, ...] = ()
    #: The name was made to stand for another state since.
    is_left: bool = False


@dataclass(kw_only=True)
class Past:
    """A state that the name of the table may be made to stand for again, and the model of it."""

    at: str
    terms: tuple[str, ...]
    files: set[str]
    model: dict[str, Any]


@dataclass(kw_only=True)
class Tried:
    """What a commit relies on and would do, for the model to judge."""

    #: Files that go.
    removed: frozenset[str] = frozenset()
    #: Files that get a DV.
    marked: frozenset[str] = frozenset()
    #: Rows that the DVs delete, by uid.
    deleted: frozenset[int] = frozenset()
    #: Rows that come, by uid; carried ones keep theirs.
    added: frozenset[int] = frozenset()
    #: Equality deletes by these uids, in the spec of this id; None for all files.
    equal: frozenset[int] = frozenset()
    equal_spec: int | None = None
    #: New data keeps the age of its base, so that younger equality deletes reach it.
    is_rewrite: bool = False
    spec_id: int = 0


def rows_of(rows: Any) -> pa.Table:
    """Return rows of these values as Arrow data."""
    return pa.Table.from_pylist(list(rows), SCHEMA)


def uids_of(rows: pa.Table) -> frozenset[int]:
    """Return who rows are."""
    return frozenset(rows["uid"].to_pylist())


def partition_of(row: dict[str, Any], terms: tuple[str, ...]) -> tuple[object, ...]:
    """Return what a row comes to by these terms."""
    return tuple(_PARTS[term](row) for term in terms)
