"""Columns that are new to a table: from whatever form they are given in to JSON with ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import (
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TimestampNanoType,
    TimestamptzNanoType,
    UnknownType,
)

from icetree.errors import InvalidInput
from icetree.spec.edit.arrow_types import from_arrow, struct_from_arrow
from icetree.spec.fields import MAX_ID
from icetree.spec.schema.default_values import default_json
from icetree.spec.schema.metadata_columns import NAMES, is_reserved
from icetree.spec.schema.text import read_columns, read_type
from icetree.spec.schema.types import VariantType, type_text

#: A type: PyIceberg's, Arrow's, or in words such as "decimal(10, 2)" and "list<string>".
TypeLike: TypeAlias = IcebergType | pa.DataType | str
#: Columns: a schema of PyIceberg's or Arrow's, names with types, or "id long not null, …".
SchemaLike: TypeAlias = (
    Schema | StructType | pa.Schema | str | Mapping[str, TypeLike] | Sequence[tuple[str, TypeLike]]
)

_SINCE_V3: Final = (
    UnknownType,
    VariantType,
    GeometryType,
    GeographyType,
    TimestampNanoType,
    TimestamptzNanoType,
)


def as_type(given: TypeLike) -> IcebergType:
    """Return the type that was meant; ids in it mean nothing."""
    match given:
        case IcebergType():
            return given
        case str():
            return read_type(given)
        case pa.DataType():
            return from_arrow(given)
    raise InvalidInput(f"{given!r} is no type: give PyIceberg's, Arrow's, or its name")


def as_struct(given: SchemaLike) -> StructType:
    """Return the columns that were meant; ids in them mean nothing."""
    try:
        return _as_struct(given)
    except RecursionError:
        raise InvalidInput("the columns nest too deep: no data file could hold them") from None


def _as_struct(given: SchemaLike) -> StructType:
    match given:
        case Schema():
            return given.as_struct()
        case StructType():
            return given
        case pa.Schema():
            return struct_from_arrow(given)
        case str():
            return read_columns(given)
        case Mapping():
            return _from_pairs(given.items())
        case _:
            return _from_pairs(given)


def _from_pairs(pairs: Iterable[tuple[str, TypeLike]]) -> StructType:
    try:
        columns = [(name, type) for name, type in map(_pair, pairs)]
    except (TypeError, ValueError):
        raise InvalidInput(
            f"{pairs!r} is no schema: give PyIceberg's, Arrow's, names with types, or a text"
        ) from None
    fields: list[NestedField] = []
    for name, type in columns:
        if not isinstance(name, str):
            raise InvalidInput(f"a column's name is a string, not {name!r}")
        required = False
        if isinstance(type, str) and type.lower().endswith(" not null"):
            type, required = type[: -len(" not null")], True
        fields.append(
            NestedField(field_id=0, name=name, field_type=as_type(type), required=required)
        )
    return StructType(*fields)


def _pair(pair: Any) -> tuple[Any, Any]:
    if isinstance(pair, str):
        raise TypeError("a string of two letters would unpack too")
    name, type = pair
    return name, type


@dataclass(slots=True)
class Ids:
    """Gives out ids above the last one given."""

    last: int
    #: The id that a column had where it came from -> the id it has here.
    renumbered: dict[int, int] = field(default_factory=dict)

    def next(self, former: int = 0) -> int:
        """Return an id that was never given before."""
        if self.last >= MAX_ID:
            raise InvalidInput("the table has no column ids left")
        self.last += 1
        self.renumbered[former] = self.last
        return self.last


def struct_json(struct: StructType, ids: Ids, *, where: str = "") -> dict[str, Any]:
    """Return a struct as JSON with fresh ids: its own fields first, then what is inside them."""
    names = [each.name for each in struct.fields]
    for at, name in enumerate(names):
        check_name(name, names[:at], where=where)
    given = [ids.next(each.field_id) for each in struct.fields]
    prefix = f"{where}." if where else ""
    fields = [
        field_json(each, id, ids, where=prefix + each.name)
        for each, id in zip(struct.fields, given, strict=True)
    ]
    return {"type": "struct", "fields": fields}


def field_json(column: NestedField, id: int, ids: Ids, *, where: str) -> dict[str, Any]:
    """Return a field of a struct as JSON, under the id."""
    found: dict[str, Any] = {
        "id": id,
        "name": column.name,
        "required": column.required,
        "type": type_json(column.field_type, ids, where=where),
    }
    if column.doc is not None:
        found["doc"] = column.doc
    defaults = {"initial-default": column.initial_default, "write-default": column.write_default}
    for name, value in defaults.items():
        if value is not None:
            found[name] = default_json(value, column.field_type, where=f"column {where!r}")
    return found


def type_json(type: IcebergType, ids: Ids, *, where: str) -> Any:
    """Return a type as JSON, with fresh ids for all that is inside."""
    match type:
        case StructType():
            if not type.fields:
                raise InvalidInput(
                    f"column {where!r} is a struct without fields, which data files cannot hold: "
                    "give it a field"
                )
            return struct_json(type, ids, where=where)
        case ListType():
            return {
                "type": "list",
                "element-id": ids.next(type.element_id),
                "element": type_json(type.element_type, ids, where=f"{where}.element"),
                "element-required": type.element_required,
            }
        case MapType():
            key, value = ids.next(type.key_id), ids.next(type.value_id)
            return {
                "type": "map",
                "key-id": key,
                "key": type_json(type.key_type, ids, where=f"{where}.key"),
                "value-id": value,
                "value": type_json(type.value_type, ids, where=f"{where}.value"),
                "value-required": type.value_required,
            }
        case _:
            return type_text(type)


def check_name(name: str, taken: Iterable[str], *, where: str = "") -> None:
    """Refuse a name that is empty or reserved, or that others in the same struct make ambiguous."""
    inside = f" in {where!r}" if where else ""
    if not name.strip():
        raise InvalidInput(f"a column{inside} has an empty name")
    if not where and is_reserved(name):
        raise InvalidInput(
            f"column {name!r} would have the name of a metadata column, which every table has "
            f"({', '.join(NAMES)}); choose another name"
        )
    for other in taken:
        if other == name:
            raise InvalidInput(f"there is a column {name!r}{inside} already")
        if other.casefold() == name.casefold():
            raise InvalidInput(
                f"{name!r} differs only in case from column {other!r}{inside}, and engines that "
                "ignore case could not tell them apart; choose another name"
            )


def require_version(type: IcebergType, version: int, *, where: str) -> None:
    """Refuse types, however deep inside, that a table of the format version cannot have."""
    if version < 3:
        for each in _parts(type):
            if isinstance(each, _SINCE_V3):
                raise InvalidInput(
                    f"{where}: type {each} needs format version 3, this table has {version}; "
                    "upgrade it first"
                )


def _parts(type: IcebergType) -> Iterator[IcebergType]:
    yield type
    match type:
        case StructType():
            inside: Sequence[IcebergType] = [each.field_type for each in type.fields]
        case ListType():
            inside = [type.element_type]
        case MapType():
            inside = [type.key_type, type.value_type]
        case _:
            inside = []
    for each in inside:
        yield from _parts(each)
