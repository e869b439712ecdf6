"""A table of three rows, which statements change in either mode."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from icetree.table.table import Table
from tests.rows.lake import new_table

MODES = ("merge-on-read", "copy-on-write")
_COLUMNS = [("id", "long"), ("n", "int"), ("s", "string")]


def table_of(*rows: tuple[Any, ...], mode: str = "merge-on-read", **how: Any) -> Table:
    table = new_table(
        how.pop("columns", _COLUMNS),
        properties={f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
        | how.pop("properties", {}),
        **how,
    )
    if rows:
        table.append(some(*rows))
    return table


def some(*rows: tuple[Any, ...]) -> pa.Table:
    ids, ns, ss = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "n": pa.array(ns, pa.int32()), "s": pa.array(ss, pa.string())}
    )  # fmt: skip


def rows(table: Table, *columns: str) -> list[tuple[Any, ...]]:
    found = table.scan(columns=columns or None).to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


ONE, TWO, THREE = (1, 10, "a"), (2, 20, "b"), (3, None, None)
