"""Schemas that follow each other: columns, and parts of nested ones, come, go, widen and change names."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from random import Random

from tests.foreign.columns import WIDER, Field, Plain, Struct, plain
from tests.foreign.layout import Layout, Schema

#: Columns that stay, since commits are told by them.
_STAY = ("id", "name", "n", "note", "flag", "at")
_DEFAULTS = {"long": 3, "string": "bob", "date": dt.date(2024, 2, 29), "boolean": True}


def evolved(layout: Layout, rng: Random) -> Layout:
    """Return a layout whose schema has changed in one way, or not at all where that one cannot."""
    change = rng.choice((_renamed, _renamed, _swapped, _dropped, _widened, _added, _grown))
    found = change(layout, rng)
    if found is None:
        return layout
    columns, taken = found
    schema = Schema(len(layout.schemas), columns)
    free = tuple(id for id in layout.free if id not in taken)
    return replace(layout, schemas=(*layout.schemas, schema), free=free)


_Changed = tuple[tuple[Field, ...], set[int]] | None


def _each(layout: Layout, id: int, change: Callable[[Field], Field | None]) -> tuple[Field, ...]:
    """Return the columns with one field changed, however deep, or taken away."""

    def within(field: Field) -> Field | None:
        if field.id == id:
            return change(field)
        parts = tuple(part for each in field.parts() if (part := within(each)) is not None)
        return field.with_parts(parts)

    return tuple(column for each in layout.columns if (column := within(each)) is not None)


def _renamed(layout: Layout, rng: Random) -> _Changed:
    inside = [m for f in layout.schema.fields() if isinstance(f.type, Struct) for m in f.parts()]
    field = rng.choice([*layout.columns, *inside])
    name = f"{field.key.partition('#')[0]}_{len(layout.schemas)}"
    return _each(layout, field.id, lambda each: replace(each, name=name)), set()


def _swapped(layout: Layout, rng: Random) -> _Changed:
    """Give two columns each other's names."""
    one, other = rng.sample(layout.columns, 2)
    names = {one.id: other.name, other.id: one.name}
    columns = tuple(replace(each, name=names.get(each.id, each.name)) for each in layout.columns)
    return columns, set()


def _dropped(layout: Layout, rng: Random) -> _Changed:
    sources = {id for each in layout.partitions.values() for id in each.source_ids}
    inside = [
        member
        for each in layout.schema.fields()
        if isinstance(each.type, Struct) and len(each.type.members) > 1
        for member in each.type.members
    ]
    top = [each for each in layout.columns if each.key not in _STAY]
    may_go = [e for e in (*top, *inside) if not sources & {part.id for part in e.walk()}]
    if not may_go:
        return None
    return _each(layout, rng.choice(may_go).id, lambda _: None), set()


def _widened(layout: Layout, rng: Random) -> _Changed:
    narrow = [
        each
        for each in layout.schema.fields()
        if isinstance(each.type, Plain) and each.type.name in WIDER
    ]
    if not narrow:
        return None
    field = rng.choice(narrow)
    assert isinstance(field.type, Plain)
    wider = plain(WIDER[field.type.name])
    return _each(layout, field.id, lambda each: replace(each, type=wider)), set()


def _added(layout: Layout, rng: Random) -> _Changed:
    """Add a column, perhaps under the name of one that has gone."""
    id = layout.free[-1]
    there = {each.name for each in layout.columns}
    once = {each.name for schema in layout.schemas for each in schema.columns} - there
    name = rng.choice([f"new_{id}", *sorted(once)])
    type = rng.choice(sorted(_DEFAULTS))
    default = _DEFAULTS[type] if rng.random() < 0.5 else None
    made = Field(id=id, key=f"{name}#{id}", name=name, type=plain(type), default=default)
    return (*layout.columns, made), {id}


def _grown(layout: Layout, rng: Random) -> _Changed:
    """Add a member to a struct, wherever it is."""
    structs = [each for each in layout.schema.fields() if isinstance(each.type, Struct)]
    if not structs:
        return None
    id = layout.free[-1]
    made = Field(id=id, key=f"new#{id}", name=f"new_{id}", type=plain("long"))

    def grow(field: Field) -> Field:
        assert isinstance(field.type, Struct)
        return replace(field, type=Struct((*field.type.members, made)))

    return _each(layout, rng.choice(structs).id, grow), {id}
