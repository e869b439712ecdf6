"""What a table is made of, as DataFrames: `db.t.snapshots` and its like."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame

from icetree.errors import InvalidInput
from icetree.spark.frames import arrow_frame
from icetree.spark.read.position_deletes import position_deletes
from icetree.table.inspect.inspect import Inspect
from icetree.table.point import Point

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

_CHANGES: Final = "changes"
_POSITION_DELETES: Final = "position_deletes"
#: The last part of a name that asks for metadata instead of rows.
KINDS: Final = frozenset({_CHANGES}) | frozenset(
    name for name in vars(Inspect) if not name.startswith("_") and callable(vars(Inspect)[name])
)


def metadata_kind(lake: SparkLake, name: str) -> tuple[str, str] | None:
    """Return (table, kind) where a name asks for metadata; a table of that very name comes first."""
    table, _, kind = name.rpartition(".")
    if kind not in KINDS or "." not in table or lake.table_exists(name):
        return None
    return table, kind


def metadata_table(lake: SparkLake, table: str, kind: str, *, at: Point | None = None) -> DataFrame:
    """Return metadata of a table, of another snapshot than the current one where that is asked."""
    handle = lake.table(table)
    if kind == _POSITION_DELETES:
        return position_deletes(lake.spark, handle, handle.snapshot(at))
    if kind == _CHANGES:
        return lake.changes(table, upto=at)
    look = getattr(handle.inspect, kind)
    if at is None:
        return arrow_frame(lake.spark, look())
    if "at" not in inspect.signature(look).parameters:
        raise InvalidInput(f"{table}.{kind} is the same at any time: ask for it without one")
    return arrow_frame(lake.spark, look(at=at))
