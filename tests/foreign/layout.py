"""A table's columns and partitions, drawn at random: ids of any size, specs that changed.

Nothing here, and in the other modules that make bytes, is icetree's: what it reads of these
tables it cannot have written.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
Json = dict[str, Any]

#: The last column whose stats have ids within 32 bits.
LAST_WITH_STATS = 10_737_368
ROW_ID, LAST_UPDATED = 2147483540, 2147483539
DELETED_PATH, DELETED_ROW = 2147483546, 2147483545
_LARGEST_COLUMN = 2147483447

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (a timestamp without a zone)
_NAMES = ("ada", "bob", "", "çelik", "a name that is longer than any bound that is cut short")
_DAYS = tuple(EPOCH + dt.timedelta(days=days) for days in (-1, 19782, 19783))

_TYPES: dict[str, tuple[str, pa.DataType]] = {
    "id": ("long", pa.int64()),
    "name": ("string", pa.string()),
    "n": ("int", pa.int32()),
    "at": ("timestamp", pa.timestamp("us")),
    "price": ("double", pa.float64()),
    "flag": ("boolean", pa.bool_()),
    "note": ("string", pa.string()),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A column, or an expression over one: what can have stats."""

    id: int
    name: str
    type: str
    arrow: pa.DataType
    #: Of a row.
    value: Callable[[Row], Any]

    @property
    def has_stats(self) -> bool:
        return self.id <= LAST_WITH_STATS


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One field of a partition spec."""

    expr_id: int
    partition_field_id: int
    source: Field
    transform: str
    #: What its stats stand under: the column itself for identity.
    field: Field
    #: Its Avro type in manifests of before v4.
    avro: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What every file of a table must know."""

    columns: tuple[Field, ...]
    #: By spec id; 0 is unpartitioned.
    specs: dict[int, tuple[Partition, ...]]
    default_spec_id: int

    def column(self, name: str) -> Field:
        return next(each for each in self.columns if each.name == name)

    @property
    def partitions(self) -> dict[int, Partition]:
        return {each.expr_id: each for spec in self.specs.values() for each in spec}

    @property
    def stats_fields(self) -> tuple[Field, ...]:
        """Every field that can have stats, by id once."""
        found = {each.id: each for each in self.columns}
        found |= {each.field.id: each.field for each in self.partitions.values()}
        return tuple(each for each in found.values() if each.has_stats)

    def tuple_of(self, spec_id: int, row: Row) -> tuple[Any, ...]:
        return tuple(each.field.value(row) for each in self.specs[spec_id])

    def schema_json(self) -> Json:
        fields = [
            {"id": each.id, "name": each.name, "required": each.name == "id", "type": each.type}
            for each in self.columns
        ]
        return {"type": "struct", "schema-id": 0, "fields": fields}

    def metadata_json(self) -> Json:
        """The parts of table metadata that say how rows are laid out."""
        return {
            "last-column-id": max(each.id for each in (*self.columns, *self._own_expressions())),
            "schemas": [self.schema_json()],
            "current-schema-id": 0,
            "expressions": [
                {
                    "expr-id": each.expr_id,
                    "expr": {
                        "source-id": each.source.id,
                        "transform": each.transform,
                        "name": each.field.name
                        if each.transform != "identity"
                        else each.source.name,
                    },
                    "partition-field-id": each.partition_field_id,
                }
                for each in self.partitions.values()
            ],
            "partition-specs": [
                {"spec-id": id, "fields": [{"expr-id": each.expr_id} for each in spec]}
                for id, spec in self.specs.items()
            ],
            "default-spec-id": self.default_spec_id,
            "last-partition-id": max(
                (each.partition_field_id for each in self.partitions.values()), default=999
            ),
        }

    def _own_expressions(self) -> list[Field]:
        return [_named(each) for each in self.partitions.values()]


def _named(each: Partition) -> Field:
    return Field(id=each.expr_id, name="", type="", arrow=each.field.arrow, value=each.field.value)


def draw_layout(rng: Random) -> Layout:
    """Draw columns with ids small and large, and up to four specs over those with small ids."""
    names = list(_TYPES)
    ids = rng.sample(range(1, 60), 2 * len(names))
    by_name = dict(zip(names, ids, strict=False))
    for name in ("price", "flag", "note", "n", "at"):
        if rng.random() < 0.15:
            by_name[name] = rng.choice(
                (
                    LAST_WITH_STATS,
                    LAST_WITH_STATS + 1,
                    rng.randrange(LAST_WITH_STATS, _LARGEST_COLUMN),
                )
            )
    if len(set(by_name.values())) < len(names):
        by_name = dict(zip(names, ids, strict=False))
    columns = tuple(
        Field(id=by_name[name], name=name, type=type, arrow=arrow, value=_get(name))
        for name, (type, arrow) in _TYPES.items()
    )
    free = ids[len(names) :]
    made = {each.name: each for each in columns}
    every = [
        (made["name"], "identity", made["name"], "string"),
        (made["n"], "truncate[10]", _over(free.pop(), "n_trunc", pa.int32(), decade), "int"),
        (
            made["at"],
            "day",
            _over(free.pop(), "at_day", pa.date32(), day),
            {"type": "int", "logicalType": "date"},
        ),
    ]
    parts = [
        Partition(
            expr_id=free.pop(),
            partition_field_id=1000 + at,
            source=source,
            transform=transform,
            field=field,
            avro=avro,
        )
        for at, (source, transform, field, avro) in enumerate(every)
    ]
    # An expression's stats stand under its own id, those of an identity under its column's.
    parts = [_renumbered(each) for each in parts]
    specs: dict[int, tuple[Partition, ...]] = {0: ()}
    for number in range(1, rng.randint(1, 4)):
        specs[number] = tuple(rng.sample(parts, rng.randint(1, 2)))
    if len({tuple(each.expr_id for each in spec) for spec in specs.values()}) < len(specs):
        specs = {0: (), 1: (parts[0],)}
    order = list(columns)
    rng.shuffle(order)
    return Layout(columns=tuple(order), specs=specs, default_spec_id=rng.choice(list(specs)))


def plain_layout(**ids: int) -> Layout:
    """Return every column, numbered from 1 unless told, and a second spec by name."""
    columns = tuple(
        Field(id=ids.get(name, at), name=name, type=type, arrow=arrow, value=_get(name))
        for at, (name, (type, arrow)) in enumerate(_TYPES.items(), start=1)
    )
    by_name = Partition(
        expr_id=100,
        partition_field_id=1000,
        source=columns[1],
        transform="identity",
        field=columns[1],
        avro="string",
    )
    return Layout(columns=columns, specs={0: (), 1: (by_name,)}, default_spec_id=0)


def _over(id: int, name: str, arrow: pa.DataType, value: Callable[[Row], Any]) -> Field:
    return Field(id=id, name=name, type="", arrow=arrow, value=value)


def _renumbered(each: Partition) -> Partition:
    if each.transform == "identity":
        return each
    return Partition(
        expr_id=each.field.id,
        partition_field_id=each.partition_field_id,
        source=each.source,
        transform=each.transform,
        field=each.field,
        avro=each.avro,
    )


def _get(name: str) -> Callable[[Row], Any]:
    return lambda row: row[name]


def decade(row: Row) -> int | None:
    """The integer's `truncate[10]`."""
    return None if row["n"] is None else row["n"] - row["n"] % 10


def day(row: Row) -> dt.date | None:
    """The day of the time."""
    return None if row["at"] is None else row["at"].date()


def draw_rows(rng: Random, first_id: int, count: int, layout: Layout, spec_id: int) -> list[Row]:
    """Draw rows of one partition of a spec, with ids that no other row has."""
    rows = [
        {
            "id": first_id + at,
            "name": rng.choice((*_NAMES, None)),
            "n": rng.choice((rng.randrange(-25, 40), None)) if rng.random() < 0.3 else at * 7 % 31,
            "at": _draw_time(rng),
            "price": rng.choice((0.0, -0.0, math.nan, 1.5, -2.25, None, 1e300)),
            "flag": rng.choice((False, False, True, None)),
            "note": rng.choice(("x" * 20, "y", None)),
        }
        for at in range(count)
    ]
    quiet = rng.choice(("flag", "note", "price", None))
    for row in rows:
        if quiet == "flag":
            row["flag"] = False
        elif quiet is not None:
            row[quiet] = None
    chosen = rows[0]
    for part in layout.specs[spec_id]:
        for row in rows:
            value = chosen[part.source.name]
            if part.transform == "truncate[10]" and value is not None:
                value = value - value % 10 + rng.randrange(10)
            elif part.transform == "day" and value is not None:
                value = value.replace(hour=0, minute=0) + dt.timedelta(minutes=rng.randrange(1440))
            if row is not chosen:
                row[part.source.name] = value
    return rows


def _draw_time(rng: Random) -> dt.datetime | None:
    if rng.random() < 0.2:
        return None
    return rng.choice(_DAYS) + dt.timedelta(minutes=rng.randrange(1440))
