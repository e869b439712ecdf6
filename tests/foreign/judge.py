"""Does icetree read another writer's table as the model has it: rows, ids, changes, and `verify`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any

import pyarrow as pa

from icetree.catalog.memory import MemoryCatalog
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.foreign.columns import Row, comparable
from tests.foreign.filters import filters_of
from tests.foreign.layout import Schema
from tests.foreign.spelled import document, marks
from tests.foreign.world import World

LINEAGE = ("_row_id", "_last_updated_sequence_number")
#: How many of them a snapshot is read with.
_FILTERS_EACH = 4


def open_table(world: World) -> Table:
    """Return the table as icetree sees it, on a store of its own."""
    store = MemoryStore()
    store.write_many(world.stored.items())
    lake = Lake(catalog=MemoryCatalog("foreign"), store=store, warehouse="memory://w")
    lake.create_namespace("db")
    return lake.register_table("db.t", world.metadata_location)


def scan(table: Table, schema: Schema, where: str | None = None, **which: Any) -> Counter[str]:
    """Return the rows of a scan, with who they are."""
    names = [each.name for each in schema.columns]
    found = table.scan(where, columns=[*names, *LINEAGE], **which).to_arrow()
    return _spelled(found.to_pylist(), schema, LINEAGE)


def counted(rows: Iterable[Row], schema: Schema) -> Counter[str]:
    """Return rows of the model so that they compare equal where they are, NaN and -0.0 too."""
    return _modelled(rows, schema, LINEAGE)


def _modelled(rows: Iterable[Row], schema: Schema, lineage: tuple[str, ...]) -> Counter[str]:
    named = (schema.named(row) | {name: row[name] for name in lineage} for row in rows)
    return _spelled(named, schema, lineage)


def _spelled(rows: Iterable[Row], schema: Schema, lineage: tuple[str, ...]) -> Counter[str]:
    return Counter(
        repr(
            [
                *(comparable(each.type, row[each.name]) for each in schema.columns),
                *(row[name] for name in lineage),
            ]
        )
        for row in rows
    )


def require_rows(
    table: Table, schema: Schema, expected: list[Row], chance: Random, **which: Any
) -> None:
    """Require that a scan, and some scans with filters, return just the rows they should."""
    _same(scan(table, schema, **which), counted(expected, schema), "rows")
    for where, holds in chance.sample(filters_of(schema), _FILTERS_EACH):
        kept = [row for row in expected if holds(row)]
        _same(scan(table, schema, where, **which), counted(kept, schema), f"rows where {where}")


def require_changes(
    table: Table,
    schema: Schema,
    since: int | None,
    upto: int,
    before: list[Row],
    after: list[Row],
    *,
    replaced: bool,
) -> None:
    """Require that a snapshot's changes are what sets its rows apart from those before it.

    Both have the columns of today.
    """
    names = [each.name for each in schema.columns]
    found = table.changes(since=since, upto=upto).to_arrow(columns=[*names, "_row_id"])
    changes: dict[str, list[Row]] = {"INSERT": [], "DELETE": []}
    for row in found.to_pylist():
        changes[row["_change_type"]].append(row)
    told = ("_row_id",)
    old, new = (_modelled(rows, schema, told) for rows in (before, after))
    if replaced:
        assert old == new, "the model's replacement changes rows"
    _same(_spelled(changes["DELETE"], schema, told), old - new, f"rows deleted in {upto}")
    _same(_spelled(changes["INSERT"], schema, told), new - old, f"rows inserted in {upto}")


def require_sound(table: Table) -> None:
    """Require that `verify` has nothing to say."""
    report = table.verify(deep=True)
    assert not report.findings, "\n".join(map(str, report.findings))


def require_read_right(world: World, table: Table) -> None:
    """Require all of it, for every snapshot of the table and every ref."""
    require_sound(table)
    chance = Random(world.seed)
    layout, snapshots = world.layout, world.writer.snapshots
    rows = {each.id: world.rows(at) for at, each in enumerate(snapshots)}
    for at, each in enumerate(snapshots):
        # Going back, one sees the columns of the time.
        schema = layout.schemas[each.schema_id]
        require_rows(table, schema, rows[each.id], chance, at=each.id)
        if each.parent in rows or (at == 0 and each.parent is None):
            before = [] if each.parent is None else rows[each.parent]
            require_changes(
                table,
                layout.schema,
                each.parent,
                each.id,
                before,
                rows[each.id],
                replaced=each.operation == "replace",
            )
    require_refs(world, table, chance)


def require_refs(world: World, table: Table, chance: Random) -> None:
    """Require that each branch and each tag of the other writer's has its rows."""
    layout = world.layout
    for name, at in world.refs.items():
        is_tag = name in world.writer.tags
        id = world.writer.snapshots[at].schema_id
        schema = layout.schemas[id] if is_tag else layout.schema
        require_rows(table, schema, world.rows(at), chance, at=name)


def require_kept(world: World, table: Table) -> None:
    """Require that metadata still says what only its first writer knows of the table itself."""
    told, now = world.stored[world.metadata_location], table.state.metadata_location
    before = marks(document(told))
    after = marks(document(table.files.store.read(now)))
    assert before.items() <= after.items(), before.keys() - after.keys()


def _same(found: Counter[str], expected: Counter[str], what: str) -> None:
    missing, extra = expected - found, found - expected
    assert not missing, f"{what}: missing {list(missing.elements())[:5]}"
    assert not extra, f"{what}: too many {list(extra.elements())[:5]}"


def as_arrow(rows: list[Row], table: Table, schema: Schema) -> pa.Table:
    """Return rows of the model in the table's own Arrow schema."""
    named = [schema.named(row) for row in rows]
    return pa.Table.from_pylist(named, schema=table.scan().arrow_schema)
