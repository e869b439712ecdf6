"""Two schemas made one, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.types import (
    IcebergType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    UnknownType,
)

from icetree.errors import InvalidInput
from icetree.spec.edit.promote import widens
from icetree.spec.schema.tree import by_name
from icetree.spec.schema.types import parse_type

if TYPE_CHECKING:
    from icetree.spec.edit.schema import SchemaEdit


def merge(edit: SchemaEdit, other: StructType, *, version: int) -> None:
    """Edit the schema so that rows of the other fit."""
    _struct(edit, (), other, version)


def _struct(edit: SchemaEdit, path: tuple[str, ...], other: StructType, version: int) -> None:
    have = by_name(edit.schema)
    for field in other.fields:
        here = (*path, field.name)
        found = have.get(".".join(here))
        if found is None:
            default = field.initial_default
            edit.add(
                here,
                field.field_type,
                doc=field.doc,
                required=field.required and default is not None,
                default=default,
            )
            continue
        _column(edit, here, parse_type(found.type), field.field_type, version)
        _loosen(edit, here, had=found.required, field=field)
        if field.doc is not None and field.doc != found.holder.get("doc"):
            edit.set_doc(here, field.doc)


def _loosen(edit: SchemaEdit, path: tuple[str, ...], *, had: bool, field: NestedField) -> None:
    if had and not field.required:
        edit.make_optional(path)


def _column(
    edit: SchemaEdit, path: tuple[str, ...], have: IcebergType, other: IcebergType, version: int
) -> None:
    match have, other:
        case StructType(), StructType():
            _struct(edit, path, other, version)
        case ListType(), ListType():
            inner = (*path, "element")
            _column(edit, inner, have.element_type, other.element_type, version)
            _loosen(edit, inner, had=have.element_required, field=other.element_field)
        case MapType(), MapType():
            key = (*path, "key")
            if not _holds(have.key_type, other.key_type, version):
                raise _cannot_meet(key, have.key_type, other.key_type)
            inner = (*path, "value")
            _column(edit, inner, have.value_type, other.value_type, version)
            _loosen(edit, inner, had=have.value_required, field=other.value_field)
        case _ if _holds(have, other, version):
            pass
        case PrimitiveType(), _ if widens(have, other, version=version):
            edit.widen(path, other)
        case _:
            raise _cannot_meet(path, have, other)


def _holds(have: IcebergType, other: IcebergType, version: int) -> bool:
    """Tell whether a column takes values of the other type as it is."""
    return have == other or isinstance(other, UnknownType) or widens(other, have, version=version)


def _cannot_meet(path: tuple[str, ...], have: IcebergType, other: IcebergType) -> InvalidInput:
    return InvalidInput(
        f"column {'.'.join(path)!r} is a {have} and cannot take values of type {other}"
    )
