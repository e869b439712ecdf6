"""Statements on two tables, drawn as text by what columns these have now."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping

from pyspark.sql import types as t

from campaigns.statements.conditions import Asking, Place, places, quoted
from campaigns.statements.queries import query
from campaigns.statements.tables import BRANCH, OTHER, TABLE, Shape, altered, created
from campaigns.statements.values import is_single, literal


class Drawn:
    """Draws one statement after another."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.shape = Shape()
        self._first = created(self.chance, self.shape)

    def statement(self, number: int, columns: Callable[[str], t.StructType]) -> str:
        """Return the next statement; `columns` tells what a table has now."""
        if number < len(self._first):
            return self._first[number]
        tables = {name: columns(name) for name in (TABLE, OTHER)}
        if number < 6:
            # What follows is to meet some rows.
            name = OTHER if number == 5 else TABLE
            return f"INSERT INTO {name} {self.values(tables[name], 9)}"
        forms = {
            self._select: 30,
            self._insert: 14,
            self._overwrite: 6,
            self._delete: 9,
            self._update: 12,
            self._merge: 14,
            self._alter: 9,
            self._set: 3,
        }
        [form] = self.chance.choices([*forms], [*forms.values()])
        return form(tables)

    # --- rows ------------------------------------------------------------------------------

    def values(self, columns: t.StructType, most: int = 7) -> str:
        """Return some rows as VALUES."""
        rows = []
        for _ in range(self.chance.randrange(1, most)):
            row = (literal(self.chance, each.dataType, 0.15) for each in columns.fields)
            rows.append(f"({', '.join(row)})")
        return f"VALUES {', '.join(rows)}"

    def _about(self, tables: Mapping[str, t.StructType]) -> tuple[str, t.StructType]:
        chance = self.chance
        name = OTHER if chance.random() < 0.1 else TABLE
        if name == TABLE and self.shape.has_branch and chance.random() < 0.15:
            return f"{TABLE}.branch_{BRANCH}", tables[TABLE]
        return name, tables[name]

    def _others(self, tables: Mapping[str, t.StructType]) -> list[tuple[str, t.StructType]]:
        return [(OTHER, tables[OTHER]), (TABLE, tables[TABLE])]

    def _new_rows(self, tables: Mapping[str, t.StructType], wanted: t.StructType) -> str:
        """Return a query or VALUES that has such columns."""
        chance = self.chance
        if chance.random() < 0.6:
            return self.values(wanted)
        name, columns = chance.choice(self._others(tables))
        asking = Asking(chance=chance, places=places(columns))
        return f"{_selecting(asking, wanted.fields)} FROM {name} WHERE {asking.condition()}"

    def _insert(self, tables: Mapping[str, t.StructType]) -> str:
        chance = self.chance
        name, columns = self._about(tables)
        draw = chance.random()
        if draw < 0.5:
            return f"INSERT INTO {name} {self._new_rows(tables, columns)}"
        some = chance.sample(columns.fields, chance.randrange(1, len(columns.fields) + 1))
        listed = ", ".join(quoted(each.name) for each in some)
        if draw < 0.75:
            return f"INSERT INTO {name} ({listed}) {self._new_rows(tables, t.StructType(some))}"
        asking = Asking(chance=chance, places=places(tables[OTHER]))
        return f"INSERT INTO {name} BY NAME {_selecting(asking, some)} FROM {OTHER}"

    def _overwrite(self, tables: Mapping[str, t.StructType]) -> str:
        chance, columns = self.chance, tables[TABLE]
        draw = chance.random()
        named = [each for each in columns.fields if quoted(each.name) in self.shape.layout]
        if draw < 0.3 and named:
            rest = t.StructType([each for each in columns.fields if each is not named[0]])
            value = literal(chance, named[0].dataType, 0.1)
            rows = self._new_rows(tables, rest)
            return f"INSERT OVERWRITE {TABLE} PARTITION ({quoted(named[0].name)} = {value}) {rows}"
        if draw < 0.35:
            asking = Asking(chance=chance, places=places(columns))
            return f"INSERT INTO {TABLE} REPLACE WHERE {asking.condition(1)} {self._new_rows(tables, columns)}"
        return f"INSERT OVERWRITE {TABLE} {self._new_rows(tables, columns)}"

    # --- changes ---------------------------------------------------------------------------

    def _delete(self, tables: Mapping[str, t.StructType]) -> str:
        chance = self.chance
        name, columns = self._about(tables)
        draw = chance.random()
        if draw < 0.04:
            return chance.choice((f"DELETE FROM {name}", f"TRUNCATE TABLE {TABLE}"))
        alias = "" if draw < 0.6 else " AS me"
        of = places(columns, "me." if alias else "")
        asking = Asking(chance=chance, places=of, others=self._others(tables))
        return f"DELETE FROM {name}{alias} WHERE {asking.condition()}"

    def _assigned(self, columns: t.StructType, of: str, asking: Asking) -> str:
        """Return what a few columns, or fields of structs, are set to."""
        chance = self.chance
        chosen: list[Place] = []
        for each in chance.sample(columns.fields, min(len(columns.fields), chance.randrange(1, 4))):
            within = places(t.StructType([each]), of)
            chosen.append(within[0] if chance.random() < 0.5 else chance.choice(within))
        return ", ".join(f"{each.text} = {asking.value(each.type)}" for each in chosen)

    def _update(self, tables: Mapping[str, t.StructType]) -> str:
        chance = self.chance
        name, columns = self._about(tables)
        of = chance.choice(("", "", "me."))
        mine = places(columns, of)
        # Of what columns are set to, Iceberg Java takes no IN and no EXISTS of a query.
        to = self._assigned(columns, of, Asking(chance=chance, places=mine))
        asking = Asking(chance=chance, places=mine, others=self._others(tables))
        where = f" WHERE {asking.condition()}" if chance.random() < 0.9 else ""
        return f"UPDATE {name}{' me' if of else ''} SET {to}{where}"

    def _merge(self, tables: Mapping[str, t.StructType]) -> str:
        chance = self.chance
        name, columns = self._about(tables)
        source, found = self._source(tables)
        mine, theirs = places(columns, "me."), places(found, "q.")
        alike = [
            (one.text, other.text)
            for one in mine
            for other in theirs
            if one.said == other.said and is_single(one.said)
        ]
        keys = [each for each in alike if each[0].endswith(".id") and each[1].endswith(".id")]
        one, other = chance.choice(
            keys if keys and chance.random() < 0.7 else alike or [("1", "1")]
        )
        on = f"{one} {chance.choice(('=', '=', '=', '<=>'))} {other}"
        both = Asking(chance=chance, places=[*mine, *theirs])
        if chance.random() < 0.3:
            on += f" AND {both.condition(1)}"
        same = {each.name for each in columns.fields} == {each.name for each in found.fields}
        clauses = []
        for left in _left(chance.choice((0, 1, 1, 2))):
            then = f"UPDATE SET {self._assigned(columns, 'me.' if chance.random() < 0.5 else '', both)}"
            then = chance.choice((then, then, "DELETE", "UPDATE SET *" if same else then))
            clauses.append(f"WHEN MATCHED{self._when(both, left)} THEN {then}")
        for left in _left(chance.choice((0, 1, 1, 2))):
            asking = Asking(chance=chance, places=theirs)
            clauses.append(
                f"WHEN NOT MATCHED{self._when(asking, left)} THEN {self._inserted(columns, asking, same)}"
            )
        for left in _left(chance.choice((0, 0, 1, 2) if clauses else (1, 2))):
            asking = Asking(chance=chance, places=mine)
            then = chance.choice(("DELETE", f"UPDATE SET {self._assigned(columns, '', asking)}"))
            clauses.append(f"WHEN NOT MATCHED BY SOURCE{self._when(asking, left)} THEN {then}")
        return f"MERGE INTO {name} me USING {source} q ON {on} {' '.join(clauses)}"

    def _when(self, asking: Asking, left: int) -> str:
        """Return a condition; of several clauses of a kind the last alone may have none."""
        return f" AND {asking.condition(1)}" if left or self.chance.random() < 0.55 else ""

    def _inserted(self, columns: t.StructType, asking: Asking, same: bool) -> str:
        if same and self.chance.random() < 0.5:
            return "INSERT *"
        some = self.chance.sample(columns.fields, self.chance.randrange(1, len(columns.fields) + 1))
        said = ", ".join(asking.value(each.dataType) for each in some)
        return f"INSERT ({', '.join(quoted(each.name) for each in some)}) VALUES ({said})"

    def _source(self, tables: Mapping[str, t.StructType]) -> tuple[str, t.StructType]:
        """Return what a MERGE reads; keys are there several times, or null, more often than not."""
        chance = self.chance
        name, columns = chance.choice([*self._others(tables), (OTHER, tables[OTHER])])
        asking, draw = Asking(chance=chance, places=places(columns)), chance.random()
        if draw < 0.3:
            return name, columns
        if draw < 0.6:
            listed = ", ".join(
                f"min({quoted(e.name)}) AS {quoted(e.name)}"
                for e in columns.fields
                if is_single(e.dataType.simpleString()) and e.name != "id"
            )
            found = t.StructType(
                [
                    e
                    for e in columns.fields
                    if e.name == "id" or is_single(e.dataType.simpleString())
                ]
            )
            ids = [each.name for each in found.fields if each.name == "id"]
            if listed and ids:
                order = ["id", *(each.name for each in found.fields if each.name != "id")]
                found = t.StructType([found[each] for each in order])
                return f"(SELECT id, {listed} FROM {name} GROUP BY id)", found
        if draw < 0.8:
            return f"(SELECT * FROM {name} WHERE {asking.condition()})", columns
        target = tables[TABLE]
        names = ", ".join(quoted(each.name) for each in target.fields)
        return f"(SELECT * FROM {self.values(target, 4)} AS v({names}))", target

    # --- tables ----------------------------------------------------------------------------

    def _alter(self, tables: Mapping[str, t.StructType]) -> str:
        return altered(self.chance, tables[TABLE], self.shape)

    def _set(self, _: Mapping[str, t.StructType]) -> str:
        chance = self.chance
        if chance.random() < 0.7:
            return f"SET spark.sql.sources.partitionOverwriteMode = {chance.choice(('static', 'dynamic'))}"
        zone = chance.choice(("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"))
        return f"SET spark.sql.session.timeZone = {zone}"

    def _select(self, tables: Mapping[str, t.StructType]) -> str:
        versions = [f"{TABLE} VERSION AS OF '{each}'" for each in self.shape.tags]
        versions += [f"{TABLE}.tag_{each}" for each in self.shape.tags]
        if self.shape.has_branch:
            versions += [f"{TABLE}.branch_{BRANCH}", f"{TABLE} VERSION AS OF '{BRANCH}'"]
        return query(self.chance, tables, TABLE, OTHER, versions)


def _left(clauses: int) -> Iterable[int]:
    """Return of each clause how many come after it."""
    return reversed(range(clauses))


def _selecting(asking: Asking, wanted: Iterable[t.StructField]) -> str:
    """Return the SELECT of a value for each column."""
    values = (f"{asking.value(each.dataType)} AS {quoted(each.name)}" for each in wanted)
    return f"SELECT {', '.join(values)}"
