"""Columns of one shape as columns of another: by field id, however deep they nest.

Reading asks for the table's columns of a file that may be older than the table's schema;
writing asks for the table's columns of whatever the caller hands in. Both are this one walk;
they differ in how ids are found, in which types may become which, and in what they say when
something does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from icetree.rows.schema import arrow_field, arrow_type, null_array, plain, without_nulls
from icetree.rows.variant import as_pair, is_pair
from icetree.spec.arrays import with_values
from icetree.spec.schema.types import VariantType


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A field of the columns at hand, with the id it was found to have."""

    id: int | None
    name: str
    type: pa.DataType
    #: Members of a struct, the element of a list, key and value of a map.
    children: tuple[Node, ...] = ()
    #: The first of its leaves among all leaves of the file, and how many it has.
    first_leaf: int = 0
    leaves: int = 1


#: Gives a field its id, told the path to it.
IdOf = Callable[[tuple[str, ...], pa.Field], int | None]


def nodes(schema: pa.Schema, id_of: IdOf) -> tuple[Node, ...]:
    """Return the fields of a schema with their ids and leaves."""
    found, first = [], 0
    for field in schema:
        node = _node(field, (field.name,), id_of, first)
        first += node.leaves
        found.append(node)
    return tuple(found)


def _node(field: pa.Field, path: tuple[str, ...], id_of: IdOf, first: int) -> Node:
    children: list[Node] = []
    at = first
    for name, child in _members(field.type):
        children.append(_node(child, (*path, name), id_of, at))
        at += children[-1].leaves
    return Node(
        id=id_of(path, field),
        name=field.name,
        type=field.type,
        children=tuple(children),
        first_leaf=first,
        leaves=max(1, at - first),
    )


def _members(type: pa.DataType) -> Iterator[tuple[str, pa.Field]]:
    """Yield (name in a path, field): lists and maps have Iceberg's names for theirs."""
    if pa.types.is_struct(type):
        for field in type:
            yield field.name, field
    elif pa.types.is_map(type):
        yield "key", type.key_field
        yield "value", type.item_field
    elif _is_list(type):
        yield "element", type.value_field


def _is_list(type: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(type) or pa.types.is_large_list(type) or pa.types.is_fixed_size_list(type)
    )


def leaves_of(node: Node, type: IcebergType) -> Iterator[int]:
    """Yield the leaves to read for a column of the type: the least that also tells what is null."""
    match type:
        case StructType():
            there = _by_id(node.children)
            wanted = [field for field in type.fields if field.field_id in there]
            if not wanted:
                yield node.first_leaf
            for field in wanted:
                yield from leaves_of(there[field.field_id], field.field_type)
        case ListType() if node.children:
            yield from leaves_of(node.children[0], type.element_type)
        case MapType() if len(node.children) == 2:
            yield from leaves_of(node.children[0], type.key_type)
            yield from leaves_of(node.children[1], type.value_type)
        case _:
            yield from range(node.first_leaf, node.first_leaf + node.leaves)


def _by_id(nodes: Iterable[Node]) -> dict[int, Node]:
    return {node.id: node for node in nodes if node.id is not None}


class Rules(Protocol):
    """What reading and writing decide differently."""

    def convert(self, array: pa.Array, type: IcebergType, where: str) -> pa.Array:
        """Return values of a column that is not nested as the type has them, or raise."""

    def missing(self, field: NestedField, size: int, where: str) -> pa.Array:
        """Return the values of a column that is not there, or raise."""

    def misfit(self, where: str, have: pa.DataType, want: IcebergType) -> Exception:
        """Return what to raise where a type cannot become another."""

    def null_in_required(self, where: str) -> Exception:
        """Return what to raise where a required column has a null."""

    def broken(self, where: str, want: IcebergType, why: str) -> Exception:
        """Return what to raise where bytes are no value of a type."""


def project(
    columns: Mapping[str, pa.Array],
    file: tuple[Node, ...],
    wanted: Iterable[NestedField],
    size: int,
    rules: Rules,
) -> list[pa.Array]:
    """Return the wanted columns, `size` values each; `columns` are those at hand, by name."""
    by_id = _by_id(file)
    found = []
    for field in wanted:
        node = by_id.get(field.field_id)
        if node is None:
            array = rules.missing(field, size, field.name)
        else:
            array = _convert(columns[node.name], node, field.field_type, field.name, rules)
        if field.required and array.null_count:
            raise rules.null_in_required(field.name)
        found.append(array)
    return found


def _convert(array: pa.Array, node: Node, type: IcebergType, where: str, rules: Rules) -> pa.Array:
    have = node.type
    if pa.types.is_null(have):
        return null_array(type, len(array))
    for kind, holds, convert in _NESTED:
        if isinstance(type, kind):
            if not holds(have):
                raise rules.misfit(where, have, type)
            return convert(array, node, type, where, rules)
    if node.children:
        raise rules.misfit(where, have, type)
    return rules.convert(array, type, where)


def _struct(
    array: pa.StructArray, node: Node, type: StructType, where: str, rules: Rules
) -> pa.Array:
    there = _by_id(node.children)
    # Without members only the mask tells how many structs there are.
    mask = array.is_null() if array.null_count or not type.fields else None
    members = []
    for field in type.fields:
        at = f"{where}.{field.name}"
        child = there.get(field.field_id)
        if child is None:
            member = rules.missing(field, len(array), at)
        else:
            member = _convert(array.field(child.name), child, field.field_type, at, rules)
        if field.required and member.null_count:
            # Below a null struct there is nothing, which is no value but no null either.
            if mask is None or pc.and_not(member.is_null(), mask).true_count:
                raise rules.null_in_required(at)
            member = without_nulls(member)
        members.append(member)
    return pa.StructArray.from_arrays(
        members, fields=[arrow_field(field) for field in type.fields], mask=mask
    )


def _list(array: pa.Array, node: Node, type: ListType, where: str, rules: Rules) -> pa.Array:
    element = node.children[0]
    if not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    made, at = pa.list_(arrow_field(type.element_field)), f"{where}.element"
    values = _convert(array.values, element, type.element_type, at, rules)
    if type.element_required and values.null_count:
        if pc.list_flatten(with_values(array, made, values)).null_count:
            raise rules.null_in_required(at)
        values = without_nulls(values)
    return with_values(array, made, values)


def _map(array: pa.MapArray, node: Node, type: MapType, where: str, rules: Rules) -> pa.Array:
    key, value = node.children
    keys = _convert(array.keys, key, type.key_type, f"{where}.key", rules)
    # Asked for in any case: Arrow ends the process over keys whose nulls nobody has counted.
    if keys.null_count:
        raise rules.null_in_required(f"{where}.key")
    values = _convert(array.items, value, type.value_type, f"{where}.value", rules)
    if type.value_required and values.null_count:
        raise rules.null_in_required(f"{where}.value")
    made = arrow_type(type)
    entries = pa.StructArray.from_arrays([keys, values], fields=[made.key_field, made.item_field])
    return with_values(array, made, entries)


def _variant(array: pa.Array, _: Node, type: VariantType, where: str, rules: Rules) -> pa.Array:
    try:
        return as_pair(plain(array))
    except (ValueError, pa.ArrowException) as error:
        raise rules.broken(where, type, str(error)) from None


def _holds_variants(type: pa.DataType) -> bool:
    return is_pair(type.storage_type if isinstance(type, pa.BaseExtensionType) else type)


#: Types that are made of others: which Arrow types hold them, and how these become theirs.
_NESTED: Final[tuple[tuple[type[IcebergType], Callable[[pa.DataType], bool], Any], ...]] = (
    (StructType, pa.types.is_struct, _struct),
    (ListType, _is_list, _list),
    (MapType, pa.types.is_map, _map),
    (VariantType, _holds_variants, _variant),
)


def leaf_of(array: pa.Array, path: Iterable[str]) -> pa.Array:
    """Return a field inside structs; it is null wherever one of them is."""
    for name in path:
        array = pc.struct_field(array, name)
    return array
