"""A table as a list of rows: what every statement must come to, worked out in plain Python."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tests.chance_columns import Kind, as_told, is_among, is_ordered

Row = dict[str, Any]
#: A condition as SQL, and what it means.
Condition = tuple[str, Callable[[Row], bool]]


#: Columns that every version of the table has; what `st` holds is a pair, whatever names it has.
LASTING = ("id", "g", "s", "day", "st")


def above(value: Any, least: float, *, nan_is_greatest: bool = True) -> bool:
    """Compare numbers; a null is above none, and a NaN above every one to Spark, else above none."""
    if value is None:
        return False
    return nan_is_greatest if math.isnan(value) else value > least


def within(row: Row, at: int) -> Any:
    """Return a field of the struct, which may be null as a whole."""
    return None if row["st"] is None else row["st"][at]


def conditions(chance: random.Random, inner: str, *, nan_is_greatest: bool = True) -> Condition:
    """Return a random condition on the columns that every version of the table has.

    `inner` is what the first field of the struct is called.
    """

    def over(value: Any, least: float) -> bool:
        return above(value, least, nan_is_greatest=nan_is_greatest)

    number = chance.randrange(60)
    least = chance.randrange(-3, 10)
    word = chance.choice("abc")
    return chance.choice(
        [
            (f"id % 5 = {number % 5}", lambda row: row["id"] % 5 == number % 5),
            (
                f"id BETWEEN {number} AND {number + 9}",
                lambda row: number <= row["id"] <= number + 9,
            ),
            (f"g > {least}", lambda row: over(row["g"], least)),
            ("g IS NULL", lambda row: row["g"] is None),
            (f"s = '{word}'", lambda row: row["s"] == word),
            (
                f"s <> '{word}' OR id = {number}",
                lambda row: (row["s"] is not None and row["s"] != word) or row["id"] == number,
            ),
            ("NOT (g <= 4)", lambda row: over(row["g"], 4)),
            (f"st.{inner} > {least}", lambda row: over(within(row, 0), least)),
            (f"st.{inner} IS NULL", lambda row: within(row, 0) is None),
            (f"st.x > {least}", lambda row: over(within(row, 1), least)),
            (
                f"id IN ({number}, {number + 1}, {number + 2})",
                lambda row: number <= row["id"] <= number + 2,
            ),
        ]
    )


def drawn_conditions(
    chance: random.Random,
    drawn: dict[str, Kind],
    spell: Callable[[Kind, Any], str],
    *,
    nan_is_greatest: bool,
) -> Condition:
    """Return a random condition on one of the drawn columns; `spell` writes a value of its type."""
    name = chance.choice(list(drawn))
    kind = drawn[name]
    value = kind.value(chance) if is_ordered(kind) else None
    what = chance.choice(["null", "not null", "=", ">"])
    unspoken = value is None or (isinstance(value, float) and not math.isfinite(value))
    if unspoken or "null" in what:
        if what in ("null", "="):
            return f"{name} IS NULL", lambda row: row[name] is None
        return f"{name} IS NOT NULL", lambda row: row[name] is not None
    text = spell(kind, value)
    if what == "=" or is_among(kind, "boolean", "uuid"):
        return f"{name} = {text}", lambda row: row[name] is not None and row[name] == value

    def is_more(row: Row) -> bool:
        held = row[name]
        is_nan = isinstance(held, float) and math.isnan(held)
        return held is not None and (nan_is_greatest if is_nan else held > value)

    return f"{name} > {text}", is_more


def new_rows(
    chance: random.Random, ids: list[int], columns: list[str], drawn: dict[str, Kind]
) -> list[Row]:
    """Return rows with random values, some of them null or NaN."""
    made = []
    for id in ids:
        row: Row = {
            "id": id,
            "g": chance.choice([None, math.nan, -0.0, 1.5, 4.0, float(chance.randrange(12))]),
            "s": chance.choice([None, "a", "b", "c", "long text " * 3]),
            "day": chance.randrange(3),
            "st": chance.choice(
                [None, (chance.randrange(9), None), (None, 2.5), (chance.randrange(9), math.nan)]
            ),
        }
        row |= {name: drawn[name].values(chance, 1)[0] for name in columns[len(LASTING) :]}
        made.append(row)
    return made


@dataclass(slots=True)
class Model:
    """The rows now, and as they were after each commit."""

    columns: list[str] = field(default_factory=lambda: [*LASTING])
    #: What the others are.
    drawn: dict[str, Kind] = field(default_factory=dict)
    #: What the first field of the struct is called.
    inner: str = "n"
    rows: list[Row] = field(default_factory=list)
    #: Snapshot id -> (columns, rows) of that time.
    past: dict[int, tuple[list[str], list[Row]]] = field(default_factory=dict)

    #: How many rows were inserted, updated and deleted since somebody asked.
    told: list[int] = field(default_factory=lambda: [0, 0, 0])
    #: The ids of the rows that were updated since then.
    updated: set[int] = field(default_factory=set)

    def counts(self) -> list[int]:
        """Return what was done to rows since the last time."""
        told, self.told, self.updated = self.told, [0, 0, 0], set()
        return told

    def append(self, rows: list[Row]) -> None:
        self.rows += [dict(row) for row in rows]
        self.told[0] += len(rows)

    def delete(self, holds: Callable[[Row], bool]) -> None:
        left = [row for row in self.rows if not holds(row)]
        self.told[2] += len(self.rows) - len(left)
        self.rows = left

    def update(self, holds: Callable[[Row], bool], change: Callable[[Row], Row]) -> None:
        self.updated |= {row["id"] for row in self.rows if holds(row)}
        self.told[1] += sum(map(holds, self.rows))
        self.rows = [{**row, **change(row)} if holds(row) else row for row in self.rows]

    def merge(
        self,
        source: list[Row],
        *,
        update: bool,
        insert: bool,
        delete: Callable[[Row], bool] | None = None,
        drop_others: Callable[[Row], bool] | None = None,
    ) -> None:
        by_id = {row["id"]: row for row in source}
        kept = []
        for row in self.rows:
            match = by_id.get(row["id"])
            if match is None:
                if drop_others is None or not drop_others(row):
                    kept.append(row)
            elif delete is not None and delete(match):
                continue
            else:
                self.told[1] += update
                self.updated |= {row["id"]} if update else set()
                kept.append(dict(match) if update else row)
        self.told[2] += len(self.rows) - len(kept)
        if insert:
            here = {row["id"] for row in self.rows}
            new = [dict(row) for row in source if row["id"] not in here]
            self.told[0] += len(new)
            kept += new
        self.rows = kept

    def add_column(self, name: str, kind: Kind, default: Any) -> None:
        self.columns.append(name)
        self.drawn[name] = kind
        self.rows = [{**row, name: default} for row in self.rows]

    def rename_column(self, name: str, new: str) -> None:
        self.columns[self.columns.index(name)] = new
        self.drawn[new] = self.drawn.pop(name)
        self.rows = [{new if k == name else k: v for k, v in row.items()} for row in self.rows]

    def drop_column(self, name: str) -> None:
        self.columns.remove(name)
        del self.drawn[name]
        self.rows = [{k: v for k, v in row.items() if k != name} for row in self.rows]

    def remember(self, snapshot_id: int | None) -> None:
        if snapshot_id is not None:
            self.past[snapshot_id] = (list(self.columns), self.as_texts(self.rows))

    def as_texts(self, rows: list[Row]) -> list[Row]:
        """Return rows whose drawn columns are texts, which are equal where values are."""
        made = {
            name: pa.array([row[name] for row in rows], each.arrow)
            for name, each in self.drawn.items()
        }
        texts = as_told(pa.table(made), self.drawn)
        return [{**row, **text} for row, text in zip(rows, texts, strict=True)]


def comparable(rows: list[Row], columns: list[str]) -> list[tuple[Any, ...]]:
    """Return rows in one order, with values that are equal when they are the same."""
    return sorted((tuple(_plain(row[name]) for name in columns) for row in rows), key=repr)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(map(_plain, value.values()))
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def fresh_ids(chance: random.Random, model: Model, count: int) -> list[int]:
    """Return ids that the table does not have."""
    taken = {row["id"] for row in model.rows}
    return list(
        _first(
            count, (id for id in iter(lambda: chance.randrange(10_000), None) if id not in taken)
        )
    )


def _first(count: int, ids: Iterator[int]) -> Iterator[int]:
    seen: set[int] = set()
    while len(seen) < count:
        id = next(ids)
        if id not in seen:
            seen.add(id)
            yield id
