"""Columns whose meaning Arrow does not write into a Parquet file: variants and geometries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import pyarrow as pa
from pyiceberg.types import (
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

from icetree.codec.parquet.annotate import VARIANT, geography, geometry
from icetree.rows.variant import TYPED
from icetree.spec.fields import FIELD_ID_KEY
from icetree.spec.schema.types import CRS84, EDGES, VariantType


def logical_types(fields: Iterable[NestedField]) -> dict[int, bytes]:
    """Return the logical types that files of such columns are to be given, by field id."""
    return dict(_types(fields))


def _types(fields: Iterable[NestedField]) -> Iterator[tuple[int, bytes]]:
    for field in fields:
        match field.field_type:
            case StructType() as struct:
                yield from _types(struct.fields)
            case ListType() as list:
                yield from _types([list.element_field])
            case MapType() as map:
                yield from _types([map.key_field, map.value_field])
            case type if (found := _logical(type)) is not None:
                yield field.field_id, found


def _logical(type: IcebergType) -> bytes | None:
    match type:
        case VariantType():
            return VARIANT
        case GeometryType():
            return geometry(_crs(type.crs))
        case GeographyType():
            return geography(_crs(type.crs), EDGES.index(type.algorithm))
    return None


def _crs(name: str) -> str | None:
    return None if name == CRS84 else name


def ordered_columns(schema: pa.Schema, without: Collection[int]) -> list[str]:
    """Return the columns that have a least and a greatest value, as Parquet names them."""
    return [path for field in schema for path in _paths(field, field.name, without)]


def _paths(field: pa.Field, path: str, without: Collection[int]) -> Iterator[str]:
    type = field.type
    if int((field.metadata or {}).get(FIELD_ID_KEY, -1)) in without:
        # Of a variant, parts that are stored apart have values of one type.
        if pa.types.is_struct(type) and type.get_field_index(TYPED) >= 0:
            yield from _typed(type.field(TYPED), f"{path}.{TYPED}")
        return
    if pa.types.is_struct(type):
        for member in type:
            yield from _paths(member, f"{path}.{member.name}", without)
    elif pa.types.is_map(type):
        yield from _paths(type.key_field, f"{path}.key_value.key", without)
        yield from _paths(type.item_field, f"{path}.key_value.value", without)
    elif pa.types.is_list(type):
        yield from _paths(type.value_field, f"{path}.list.element", without)
    else:
        yield path


def _typed(field: pa.Field, path: str) -> Iterator[str]:
    if not pa.types.is_struct(field.type):
        yield path
        return
    for member in field.type:
        if member.type.get_field_index(TYPED) >= 0:
            yield from _typed(member.type.field(TYPED), f"{path}.{member.name}.{TYPED}")
