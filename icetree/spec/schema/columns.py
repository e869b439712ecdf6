"""Schemas as table metadata holds them: JSON objects, so that what is not known survives.

They are parsed into PyIceberg's `Schema` on demand, once per distinct schema and process,
for parsing one costs more than a whole commit may.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
from pyiceberg.schema import Schema, index_by_id
from pyiceberg.types import IcebergType, NestedField, StructType

from icetree.errors import InvalidInput
from icetree.spec.fields import MAX_ID
from icetree.spec.schema.types import parse_field, parse_schema, parse_type
from icetree.spec.texts import json_bytes

#: How deep the columns of a data file may nest; lists and maps take two levels each. Readers
#: follow them by recursion.
DEEPEST: Final = 100
#: New columns have ids up to here, so that there are some left for columns and expressions to come.
_HIGHEST: Final = MAX_ID - 1_000_000


def parsed(schema: Mapping[str, Any]) -> Schema:
    """Return the schema with its types; InvalidInput when it is none."""
    return _parsed(json_bytes(schema))


def column_ids(schema: Mapping[str, Any]) -> frozenset[int]:
    """Return the id of every column, nested ones too; InvalidInput for a malformed schema."""
    require_shallow(schema)
    return frozenset(_columns(json_bytes(schema)))


def require_room(ids: Iterable[int]) -> None:
    """Refuse ids of new columns after which a table would have none left to give."""
    highest = max(ids, default=0)
    if highest > _HIGHEST:
        raise InvalidInput(f"column id {highest} is too large: give ids up to {_HIGHEST}")


def ids_in(schemas: Iterable[Mapping[str, Any]]) -> frozenset[int]:
    """Return the id of every column that any of the schemas has."""
    return frozenset[int]().union(*map(column_ids, schemas))


def former(schemas: Sequence[Mapping[str, Any]], current: Schema) -> dict[int, NestedField]:
    """Return the columns that only other schemas have, as the newest of those has them."""
    have = set(index_by_id(current))
    found: dict[int, NestedField] = {}
    newest_first = sorted(schemas, key=lambda each: each.get("schema-id", 0), reverse=True)
    for schema in newest_first:
        for id, column in _columns(json_bytes(schema)).items():
            if id not in have:
                have.add(id)
                found[id] = parse_field(column)
    return found


def require_shallow(schema: Mapping[str, Any]) -> None:
    """Refuse columns that nest deeper than data files are read: rows in them would be lost."""
    waiting: list[tuple[Any, int]] = [(schema, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > DEEPEST:
            raise InvalidInput(f"its columns nest deeper than the {DEEPEST} levels of a data file")
        match node:
            case {"fields": [*fields]}:
                waiting += [(f.get("type"), depth + 1) for f in fields if isinstance(f, dict)]
            case {"type": "list" | "map"}:
                # In a data file, what repeats has a level of its own.
                waiting += [(node.get(part), depth + 2) for part in ("element", "key", "value")]


@lru_cache(maxsize=64)
def _parsed(schema: bytes) -> Schema:
    try:
        return parse_schema(msgspec.json.decode(schema))
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"not a schema: {error}") from None


@lru_cache(maxsize=512)
def _primitive(name: str) -> IcebergType:
    return parse_type(name)


@lru_cache(maxsize=512)
def _columns(schema: bytes) -> dict[int, Mapping[str, Any]]:
    found: dict[int, Mapping[str, Any]] = {}
    for id, column in _struct(msgspec.json.decode(schema), "schema"):
        if id in found:
            raise InvalidInput(f"two columns have id {id}")
        found[id] = column
    return found


def _struct(struct: Mapping[str, Any], where: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    match struct:
        case {"fields": [*fields]}:
            for field in fields:
                match field:
                    case {"id": int(id), "name": str(), "required": bool(), "type": type} if _is_id(
                        id
                    ):
                        yield id, field
                        yield from _nested(type, f"{where}.{field['name']}")
                    case _:
                        raise InvalidInput(
                            f"a field of {where} lacks its id (1 or more), name, type or required"
                        )
        case _:
            raise InvalidInput(f"{where} has no list of fields")


def _is_id(id: int) -> bool:
    return id > 0 and not isinstance(id, bool)


def _nested(type: Any, where: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    match type:
        case str():
            _primitive(type)
        case {"type": "struct"}:
            yield from _struct(type, where)
        case {"type": "list", "element-id": int(), "element": _, "element-required": bool()}:
            yield from _part(type, "element", where, required=type["element-required"])
        case {"type": "map", "key-id": int(), "key": _, "value-id": int(), "value": _}:
            yield from _part(type, "key", where, required=True)
            yield from _part(type, "value", where, required=bool(type.get("value-required")))
        case _:
            raise InvalidInput(f"{where} has no type that Iceberg knows")


def _part(
    type: Mapping[str, Any], name: str, where: str, *, required: bool
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    id = type[f"{name}-id"]
    yield id, {"id": id, "name": name, "required": required, "type": type[name]}
    yield from _nested(type[name], f"{where}.{name}")


def holders(columns: Sequence[NestedField], field_ids: Collection[int]) -> list[NestedField]:
    """Return the columns that are some fields, or have them within structs."""
    return [each for each in columns if any(field_path(each, id) is not None for id in field_ids)]


def field_path(field: NestedField, field_id: int) -> tuple[str, ...] | None:
    """Return the path from a column down to the field with the id, through structs alone."""
    if field.field_id == field_id:
        return ()
    if isinstance(field.field_type, StructType):
        for child in field.field_type.fields:
            below = field_path(child, field_id)
            if below is not None:
                return (child.name, *below)
    return None


def identifier_paths(schema: Schema) -> list[tuple[NestedField, tuple[str, ...]]]:
    """Return where a schema's identifier fields are: a column, and the way down from it."""
    return field_paths(schema, schema.identifier_field_ids)


def field_paths(schema: Schema, ids: Collection[int]) -> list[tuple[NestedField, tuple[str, ...]]]:
    """Return where fields are, through structs alone: a column, and the way down from it."""
    found = ((field, field_path(field, id)) for field in schema.fields for id in ids)
    return [(field, path) for field, path in found if path is not None]


def identifier_names(schema: Schema) -> list[str]:
    """Return the full names of the fields that tell rows apart."""
    return [schema.find_column_name(id) or "" for id in schema.identifier_field_ids]


def required_identifiers(schema: Schema, *, of: object, otherwise: str = "") -> list[str]:
    """Return the names of the fields that tell rows apart; InvalidInput where there are none."""
    names = identifier_names(schema)
    if not names:
        raise InvalidInput(
            f"table {of} has no identifier fields, by which a row would be known: set some with "
            f"table.edit_schema(){otherwise}"
        )
    return names
