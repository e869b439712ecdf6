"""The tables of the simulation, and rows for them."""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField, StringType

from campaigns.simulate.model import Row, Values, Where, projected
from icetree.rows.schema import arrow_schema
from icetree.spec.schema.metadata_columns import LINEAGE
from icetree.table.table import Table

if TYPE_CHECKING:
    from campaigns.simulate.turn import Turn
    from campaigns.simulate.world import World

ROWS: Final = "db.rows"
BANK: Final = "db.bank"
#: Columns that never change: what tells rows apart, and what they are grouped by.
U, K, V, N = 1, 2, 3, 4
SCHEMA: Final = Schema(
    NestedField(U, "u", LongType(), required=True),
    NestedField(K, "k", IntegerType(), required=False),
    NestedField(V, "v", StringType(), required=False),
    NestedField(N, "n", IntegerType(), required=False),
)
ACCOUNTS: Final = 6
BALANCE: Final = 100
_GROUPS: Final = (0, 1, 2, 3, None)


def make_tables(world: World) -> None:
    """Make the tables, and give everybody at the bank the same."""
    from campaigns.simulate.intent import commit_on
    from campaigns.simulate.model import Part
    from icetree.tree.changes import Intent

    settings = world.script.settings
    world.lake.create_namespace("db")
    for name in (ROWS, BANK):
        table = world.lake.create_table(
            name, SCHEMA, partition_by=settings.partition_by, properties=settings.properties
        )
        if name == ROWS and settings.born_as < table.metadata.format_version:
            table = _born_before(world, table, settings.born_as)
        world.judge.begin(table.name, table.state.metadata_location)
    opened = tuple({U: number, K: number, V: None, N: BALANCE} for number in range(ACCOUNTS))
    commit = commit_on(table, "open accounts", parts=(Part(intent=Intent.APPEND, added=opened),))
    table.append(arrow(table.schema, opened))
    world.judge.landed(commit, table.name, table.state.metadata_location)


def _born_before(world: World, table: Table, version: int) -> Table:
    """Return the table, which has no rows yet, as one of an older format version."""
    metadata = table.metadata
    spec = [
        {
            "source-id": each.source_ids[0],
            "field-id": 1000 + at,
            "transform": each.transform,
            "name": each.name,
        }
        for at, each in enumerate(metadata.shape().spec(metadata.default_spec_id))
    ]
    document = {
        "format-version": version,
        "table-uuid": metadata.table_uuid,
        "location": metadata.location,
        "last-sequence-number": 0,
        "last-updated-ms": metadata.last_updated_ms,
        "last-column-id": N,
        "current-schema-id": 0,
        "schemas": [metadata.schema_json()],
        "default-spec-id": metadata.default_spec_id,
        "partition-specs": [{"spec-id": metadata.default_spec_id, "fields": spec}],
        "last-partition-id": 999 + len(spec),
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": dict(metadata.properties),
        **({"next-row-id": 0} if version > 2 else {}),
    }
    location = f"{metadata.location}/metadata/v{version}.metadata.json"
    world.store.write_new(location, json.dumps(document).encode())
    world.catalog.swap(table.name, expected=table.state.metadata_location, to=location)
    return table.refresh()


def some_rows(turn: Turn, schema: Schema, where: Where | None = None) -> tuple[Values, ...]:
    """Return a few new rows with a value for every column; with a filter, rows that match it."""
    chance = turn.chance
    rows = []
    for at in range(chance.choice((1, 1, 2, 3))):
        number = turn.step.number * 10 + at
        values: dict[int, Any] = {
            field.field_id: _value(field.field_type, number, chance) for field in schema.fields
        }
        values[U], values[K] = number, chance.choice(_GROUPS)
        if where is not None and not where.matches(values):
            values[where.field_id] = None if where.kind == "null" else _inside(where)
        rows.append(values)
    return tuple(rows)


def _value(kind: Any, number: int, chance: random.Random) -> Any:
    if chance.random() < 0.2:
        return None
    return f"v{number}" if isinstance(kind, StringType) else chance.randrange(1000)


def _inside(where: Where) -> int:
    literal: int = where.literals[0]
    return literal - 1 if where.kind == "<" else literal


def some_filter(turn: Turn) -> Where:
    """Return a filter on a column that is always there."""
    chance = turn.chance
    if chance.random() < 0.2:
        number = chance.randrange(turn.step.number * 10)
        kind = chance.choice((">=", "<"))
        return Where(text=f"u {kind} {number}", field_id=U, kind=kind, literals=(number,))
    kind = chance.choice(("=", "=", ">=", "<", "in", "null"))
    if kind == "null":
        return Where(text="k is null", field_id=K, kind=kind)
    if kind == "in":
        pair = tuple(chance.sample(range(4), 2))
        return Where(text=f"k in ({pair[0]}, {pair[1]})", field_id=K, kind=kind, literals=pair)
    number = chance.randrange(4)
    return Where(text=f"k {kind} {number}", field_id=K, kind=kind, literals=(number,))


def arrow(schema: Schema, rows: tuple[Values, ...]) -> pa.Table:
    """Return rows as Arrow data."""
    names = [field.name for field in schema.fields]
    found = [dict(zip(names, projected(row, schema), strict=True)) for row in rows]
    return pa.Table.from_pylist(found, arrow_schema(schema))


def moved(schema: Schema, rows: tuple[Row, ...]) -> pa.Table:
    """Return rows that move as Arrow data with their lineage; one that changes has no age yet."""
    table = arrow(schema, tuple(row.values for row in rows))
    ids = [row.row_id for row in rows]
    ages = [None if row.updated < 0 else row.updated for row in rows]
    for field, values in zip(LINEAGE, (ids, ages), strict=True):
        table = table.append_column(field.name, pa.array(values, pa.int64()))
    return table


def a_branch(turn: Turn, table: Table) -> str:
    """Return a branch that the handle knows of, most often main."""
    branches = sorted(name for name, ref in table.refs.items() if ref.type == "branch")
    others = [name for name in branches if name != "main"]
    return turn.chance.choice(others) if others and turn.chance.random() < 0.3 else "main"


def an_isolation(turn: Turn) -> str:
    """Return how much a commit tolerates."""
    return turn.chance.choice(("serializable", "serializable", "snapshot"))


def time_of(at_ms: int) -> datetime:
    """Return a time as people give it."""
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=at_ms)
