"""A table with a few snapshots for procedures, and what these tell, as plain values."""

from __future__ import annotations

from typing import Any

from icetree.spark.sql.statement import run_sql
from tests.spark.sql_lake import SqlLake


def ids(sql: SqlLake, name: str = "db.t") -> list[int]:
    """Return the snapshots of a table, oldest first."""
    return [each.snapshot_id for each in sql.lake.table(name).history()][::-1]


def rows(sql: SqlLake, name: str = "db.t") -> list[Any]:
    return sorted(sql.lake.table(name).scan().to_arrow()["id"].to_pylist())


def told(sql: SqlLake, text: str) -> list[dict[str, Any]]:
    """Return what a statement tells, by column."""
    return [row.asDict() for row in run_sql(sql.lake, text).collect()]
