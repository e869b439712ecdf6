"""Does icetree read another writer's table as the model has it: rows, ids, changes, and `verify`."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pyarrow as pa

from icetree.catalog.memory import MemoryCatalog
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.foreign.layout import EPOCH, Row
from tests.foreign.world import World

LINEAGE = ("_row_id", "_last_updated_sequence_number")
NAMES = ("id", "name", "n", "at", "price", "flag", "note")

_LEAP_DAY = EPOCH + dt.timedelta(days=19782, hours=12)

#: A filter as text, and what it means.
FILTERS: tuple[tuple[str, Callable[[Row], bool]], ...] = (
    ("id <= 4", lambda row: row["id"] <= 4),
    ("id in (2, 3, 11, 17)", lambda row: row["id"] in (2, 3, 11, 17)),
    ("name = 'bob'", lambda row: row["name"] == "bob"),
    ("name is null", lambda row: row["name"] is None),
    ("name > 'a name'", lambda row: row["name"] is not None and row["name"] > "a name"),
    ("n >= 10 and n < 20", lambda row: row["n"] is not None and 10 <= row["n"] < 20),
    ("n = 7 or name = ''", lambda row: row["n"] == 7 or row["name"] == ""),
    ("n is not null and id > 9", lambda row: row["n"] is not None and row["id"] > 9),
    (
        "at >= '2024-02-29 12:00:00'",
        lambda row: row["at"] is not None and row["at"] >= _LEAP_DAY,
    ),
    ("at is null", lambda row: row["at"] is None),
    ("price is null", lambda row: row["price"] is None),
    ("price < 0.5", lambda row: _is_number(row["price"]) and row["price"] < 0.5),
    ("flag = true", lambda row: row["flag"] is True),
    ("note = 'y'", lambda row: row["note"] == "y"),
)


#: How many of them a snapshot is read with.
_FILTERS_EACH = 4


def _is_number(value: float | None) -> bool:
    return value is not None and not math.isnan(value)


def open_table(world: World) -> Table:
    """Return the table as icetree sees it, on a store of its own."""
    store = MemoryStore()
    store.write_many(world.stored.items())
    lake = Lake(catalog=MemoryCatalog("foreign"), store=store, warehouse="memory://w")
    lake.create_namespace("db")
    return lake.register_table("db.t", world.metadata_location)


def scan(table: Table, where: str | None = None, **which: Any) -> Counter[str]:
    """Return the rows of a scan, with who they are."""
    found = table.scan(where, columns=[*NAMES, *LINEAGE], **which).to_arrow()
    return counted(found.to_pylist())


def counted(rows: Iterable[Row]) -> Counter[str]:
    """Return rows so that they compare equal where they are, NaN and -0.0 too."""
    return Counter(repr([row[name] for name in (*NAMES, *LINEAGE)]) for row in rows)


def require_rows(table: Table, expected: list[Row], chance: Random, **which: Any) -> None:
    """Require that a scan, and some scans with filters, return just the rows they should."""
    _same(scan(table, **which), counted(expected), "rows")
    for where, holds in chance.sample(FILTERS, _FILTERS_EACH):
        kept = [row for row in expected if holds(row)]
        _same(scan(table, where, **which), counted(kept), f"rows where {where}")


def require_changes(
    table: Table,
    since: int | None,
    upto: int,
    before: list[Row],
    after: list[Row],
    *,
    replaced: bool,
) -> None:
    """Require that a snapshot's changes are what sets its rows apart from those before it."""
    found = table.changes(since=since, upto=upto).to_arrow(columns=[*NAMES, "_row_id"])
    changes: dict[str, list[Row]] = {"INSERT": [], "DELETE": []}
    for row in found.to_pylist():
        changes[row["_change_type"]].append(row)
    old, new = _values(before), _values(after)
    if replaced:
        assert old == new, "the model's replacement changes rows"
    _same(_values(changes["DELETE"]), old - new, f"rows deleted in {upto}")
    _same(_values(changes["INSERT"]), new - old, f"rows inserted in {upto}")


def _values(rows: Iterable[Row]) -> Counter[str]:
    return Counter(repr([row[name] for name in (*NAMES, "_row_id")]) for row in rows)


def require_sound(table: Table) -> None:
    """Require that `verify` has nothing to say."""
    report = table.verify(deep=True)
    assert not report.findings, "\n".join(map(str, report.findings))


def require_read_right(world: World, table: Table) -> None:
    """Require all of it, for every snapshot of the table."""
    require_sound(table)
    chance = Random(world.seed)
    before: list[Row] = []
    since = world.writer.base
    for at, snapshot in enumerate(world.writer.snapshots):
        rows = world.rows(at)
        require_rows(table, rows, chance, at=snapshot.id)
        if since is not None or at == 0:
            is_first_of_old = at == 0 and since is not None
            if not is_first_of_old:
                require_changes(
                    table,
                    since,
                    snapshot.id,
                    before,
                    rows,
                    replaced=snapshot.operation == "replace",
                )
        before, since = rows, snapshot.id


def _same(found: Counter[str], expected: Counter[str], what: str) -> None:
    missing, extra = expected - found, found - expected
    assert not missing, f"{what}: missing {list(missing.elements())[:5]}"
    assert not extra, f"{what}: too many {list(extra.elements())[:5]}"


def as_arrow(rows: list[Row], table: Table) -> pa.Table:
    """Return rows in the table's own Arrow schema."""
    schema = table.scan().arrow_schema
    return pa.Table.from_pylist(rows, schema=schema)
