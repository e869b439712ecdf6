"""The tables of the simulation, and rows for them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField, StringType

from campaigns.simulate.model import Row, Values, Where, projected
from icetree.rows.schema import arrow_schema
from icetree.spec.metadata_columns import LINEAGE
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
        world.judge.begin(table.name, table.state.metadata_location)
    opened = tuple({U: number, K: number, V: None, N: BALANCE} for number in range(ACCOUNTS))
    commit = commit_on(table, "open accounts", parts=(Part(intent=Intent.APPEND, added=opened),))
    table.append(arrow(table.schema, opened))
    world.judge.landed(commit, table.name, table.state.metadata_location)


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
