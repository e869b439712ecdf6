"""Conditions and expressions over columns, drawn by their types."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import types as t

from campaigns.statements.values import NUMBERS, OTHER_TYPES, POOLS, is_number, is_single, literal

#: Names that SQL has a use for itself.
_WORDS: Final = ("order",)
_COMPARED: Final = ("=", "=", "<>", "!=", "<", "<=", ">", ">=", "<=>", "<=>")
_PATTERNS: Final = (
    "'a%'",
    "'%a'",
    "'%'",
    "'_'",
    "'a_b'",
    "'%b%'",
    "'abcdefghijklmnop%'",
    "''",
    "'ü%'",
    "'A%'",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A column, or a field of one, as a statement may say it."""

    text: str
    type: t.DataType

    @property
    def said(self) -> str:
        return self.type.simpleString()


def quoted(name: str) -> str:
    """Return a name as SQL takes it, whatever is in it."""
    return name if name.isascii() and name.isidentifier() and name not in _WORDS else f"`{name}`"


def places(columns: t.StructType, of: str = "") -> list[Place]:
    """Return all columns with the fields of structs, as they are said of a table."""
    found = []
    for each in columns.fields:
        text = f"{of}{quoted(each.name)}"
        found.append(Place(text=text, type=each.dataType))
        if isinstance(each.dataType, t.StructType):
            found += places(each.dataType, f"{text}.")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Draws conditions on places; `others` are tables that subqueries may read, with their columns."""

    chance: random.Random
    places: Sequence[Place]
    others: Sequence[tuple[str, t.StructType]] = field(default=())

    def condition(self, depth: int = 2) -> str:
        """Return a condition of any form."""
        chance = self.chance
        if depth and chance.random() < 0.45:
            one, other = self.condition(depth - 1), self.condition(depth - 1)
            return chance.choice(
                (
                    f"({one} AND {other})",
                    f"({one} OR {other})",
                    f"NOT ({one})",
                    f"({one}) IS NOT TRUE",
                )
            )
        if chance.random() < 0.04:
            return chance.choice(("true", "false", "1 = 1", "NULL", "1 > 2"))
        if self.others and chance.random() < 0.15:
            return self._subquery()
        return self._of(chance.choice(self.places))

    def _of(self, place: Place) -> str:
        chance, text = self.chance, place.text
        if chance.random() < 0.12:
            return f"{text} IS {chance.choice(('', 'NOT '))}NULL"
        if isinstance(place.type, t.ArrayType):
            value = literal(chance, place.type.elementType, 0)
            some = [
                f"size({text}) > 1",
                f"get({text}, 0) IS NULL",
                f"try_element_at({text}, 1) IS NOT NULL",
            ]
            return chance.choice([*some, f"array_contains({text}, {value})"])
        if isinstance(place.type, t.MapType):
            key = literal(chance, place.type.keyType, 0)
            return chance.choice((f"{text}[{key}] IS NOT NULL", f"size({text}) = 1"))
        if isinstance(place.type, t.StructType):
            return f"{text} {chance.choice(('=', '<=>'))} {literal(chance, place.type, 0)}"
        return self._single(place)

    def _single(self, place: Place) -> str:
        chance, text = self.chance, place.text

        def value(nulls: float = 0.05) -> str:
            return literal(chance, place.type, nulls)

        compared = chance.choice(_COMPARED)
        no = chance.choice(("", "", "NOT "))
        forms = [f"{text} {compared} {value()}"] * 4
        forms += [f"{value()} {compared} {text}"]
        forms += [
            f"{text} {no}IN ({', '.join(value() for _ in range(chance.randrange(1, 5)))})"
        ] * 2
        forms += [f"{text} {no}BETWEEN {value()} AND {value()}"] * 2
        alike = [each.text for each in self.places if each.said == place.said]
        forms += [f"{text} {compared} {chance.choice(alike)}"]
        forms += [f"coalesce({text}, {value(0)}) {compared} {value()}"]
        forms += [f"CASE WHEN {text} IS NULL THEN {value()} ELSE {text} END {compared} {value()}"]
        forms += [
            f"CAST({text} AS STRING) {chance.choice(('=', '<', '>='))} {chance.choice(_STRINGS)}"
        ]
        if place.said == "string":
            forms += [f"{text} {no}LIKE {chance.choice(_PATTERNS)}"] * 3
            forms += [f"startswith({text}, {value()})", f"length({text}) {compared} 1"]
            forms += [f"upper({text}) = 'A'", f"system.truncate(2, {text}) = 'ab'"]
            forms += [f"try_cast({text} AS INT) {compared} 10", f"{text} RLIKE '^a'"]
        elif place.said == "boolean":
            forms += [text, f"NOT {text}", f"{text} IS {no}TRUE"]
        elif is_number(place.said):
            forms += [self._number(place, compared)] * 3
        elif place.said in ("date", "timestamp", "timestamp_ntz"):
            forms += [self._time(place, compared)] * 3
        if place.said not in ("boolean", "float", "double"):
            forms += [f"system.bucket(4, {text}) {compared} {chance.randrange(4)}"]
        return chance.choice(forms)

    def _number(self, place: Place, compared: str) -> str:
        chance, text = self.chance, place.text
        other = chance.choice(
            ("1", "1.5", "0.0D", "-0.0D", "3L", "1.5F", "2147483648", "'1'", "1e0")
        )
        forms = [f"{text} {compared} {other}", f"try_cast({text} AS INT) {compared} 1"]
        forms += [f"CAST({text} AS DOUBLE) {compared} {other}", f"{text} IN (1, 1.5, NULL)"]
        forms += [f"{text} BETWEEN 0 AND {other}", f"try_add({text}, {text}) {compared} 2"]
        if place.said in ("float", "double"):
            forms += [f"isnan({text})", f"nanvl({text}, 1) = 1", f"NOT isnan({text})"]
        if place.said not in ("float", "double"):
            forms += [f"system.truncate(10, {text}) {compared} 0"]
        return chance.choice(forms)

    def _time(self, place: Place, compared: str) -> str:
        chance, text = self.chance, place.text
        unit = chance.choice(("years", "months", "days"))
        bound = {"days": "DATE'1970-01-01'"}.get(unit, "0")
        forms = [f"year({text}) {compared} 2024", f"system.{unit}({text}) {compared} {bound}"]
        forms += [f"CAST({text} AS DATE) {compared} DATE'2024-02-29'"]
        forms += [f"{text} {compared} DATE'1970-01-01'", f"{text} {compared} '1970-01-01'"]
        forms += [f"{text} {compared} TIMESTAMP'1969-12-31 23:59:59.999999'"]
        forms += [f"date_trunc('MONTH', {text}) {compared} TIMESTAMP'2024-02-01 00:00:00'"]
        return chance.choice(forms)

    def _subquery(self) -> str:
        chance = self.chance
        name, columns = chance.choice(self.others)
        inner = places(columns, "q.")
        pairs = [
            (place.text, each.text)
            for place in self.places
            for each in inner
            if place.said == each.said and is_single(place.said)
        ]
        if not pairs:
            return "true"
        mine, theirs = chance.choice(pairs)
        where = (
            f" WHERE {Asking(chance=chance, places=inner).condition(1)}"
            if chance.random() < 0.5
            else ""
        )
        met = where.replace(" WHERE ", " AND ", 1)
        no = chance.choice(("", "NOT "))
        return chance.choice(
            (
                f"{mine} {no}IN (SELECT {theirs} FROM {name} q{where})",
                f"{no}EXISTS (SELECT 1 FROM {name} q WHERE {theirs} = {mine}{met})",
                f"{mine} {chance.choice(_COMPARED)} (SELECT {chance.choice(('max', 'min'))}({theirs}) FROM {name} q{where})",
            )
        )

    def value(self, type: t.DataType, depth: int = 1) -> str:
        """Return an expression of a type, of places where some have it."""
        chance, said = self.chance, type.simpleString()
        alike = [each.text for each in self.places if each.said == said]
        forms = [literal(chance, type)] * 2 + alike * 2
        if depth:
            one, other = self.value(type, depth - 1), self.value(type, depth - 1)
            forms += [f"CASE WHEN {self.condition(1)} THEN {one} ELSE {other} END"]
            forms += [f"coalesce({one}, {other})"]
        if said in NUMBERS:
            others = [each.text for each in self.places if is_number(each.said)]
            forms += [f"try_add({each}, {chance.choice(('1', '-1'))})" for each in alike]
            forms += [f"try_cast({each} AS {said})" for each in others] + others[:1]
        if said == "string":
            forms += [f"concat({each}, 'x')" for each in alike]
            forms += [
                f"CAST({each.text} AS STRING)"
                for each in self.places
                if is_single(each.said) and each.said != "binary"
            ]
        if self.chance.random() < 0.08 and said in OTHER_TYPES:
            # What SQL casts on its own where it assigns, or refuses to.
            return chance.choice(POOLS[chance.choice(OTHER_TYPES[said])])
        if isinstance(type, t.StructType) and depth:
            parts = (f"'{each.name}', {self.value(each.dataType, 0)}" for each in type.fields)
            forms += [f"named_struct({', '.join(parts)})"] * 2
        return chance.choice(forms)


_STRINGS: Final = ("'1'", "'a'", "'NaN'", "'0.0'", "'true'", "'1970-01-01'", "'1.50'", "'0'")
