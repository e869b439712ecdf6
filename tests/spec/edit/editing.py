"""A table's metadata to edit, and what edits make of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from icetree.errors import InvalidInput
from icetree.spec.apply.apply import apply
from icetree.spec.edit.create import table_metadata
from icetree.spec.edit.schema import SchemaEdit
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.schema.tree import walk

COLUMNS = (
    "id int not null, name string, price decimal(9, 2), day date, ratio float, "
    "address struct<zip: int, city: string>, tags list<struct<x: int, y: float>>, "
    "prices map<struct<k: int>, struct<net: int>>, nothing unknown"
)


def table(columns: Any = COLUMNS, **more: Any) -> TableMetadata:
    return table_metadata(columns, location="s3://b/t", uuid="u", at_ms=1, **more)


def edited(*edits: Callable[[SchemaEdit], Any], on: TableMetadata | None = None) -> TableMetadata:
    metadata = table() if on is None else on
    edit = SchemaEdit(metadata)
    for one in edits:
        one(edit)
    return apply(metadata, edit.updates(), at_ms=2)


def refused(one: Callable[[SchemaEdit], Any], on: TableMetadata | None = None) -> str:
    edit = SchemaEdit(table() if on is None else on)
    before = edit.schema
    with pytest.raises(InvalidInput) as caught:
        one(edit)
    assert edit.schema == before
    return str(caught.value)


def column(metadata: TableMetadata, name: str) -> dict[str, Any]:
    return next(place.holder for place in walk(metadata.schema_json()) if place.name == name)


def ids(metadata: TableMetadata) -> dict[str, int]:
    return {place.name: place.id for place in walk(metadata.schema_json())}
