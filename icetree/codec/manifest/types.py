"""The types that columns of a Parquet manifest have, and the types that readers want."""

from __future__ import annotations

import pyarrow as pa

from icetree.codec.unknown import texts_of_unknown
from icetree.errors import CorruptTable
from icetree.spec.entry import stats
from icetree.spec.entry.entry import BASE_SCHEMA
from icetree.spec.fields import FIELD_ID_KEY, GEO_AXES, GEO_LOWER_START, GEO_UPPER_START
from icetree.spec.schema.shape import Shape
from icetree.spec.schema.types import VariantType


def promote(column: pa.Array, name: str, shape: Shape, file: str) -> pa.Array:
    """Return the column in the type it should have, widened where the format allows it."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if pa.types.is_string(column.type):
        # Parquet's reader takes any bytes for text.
        column.validate(full=True)
    expected = _expected_type(name, shape)
    if expected is None or column.type == expected:
        return column
    if _is_of_unknown(name, shape):
        return texts_of_unknown(column)
    if pa.types.is_struct(column.type) and pa.types.is_struct(expected):
        column = _corner(column, name, file)
    if not _widens(column.type, expected) and not _are_days(column.type, name, shape):
        raise CorruptTable(file, f"column {name} has type {column.type}, expected {expected}")
    return stats.widened(column, expected)


def _corner(column: pa.StructArray, name: str, file: str) -> pa.StructArray:
    """Return a geo bound with every axis, in order: found by id, null where the file lacks it."""
    field_id, stat = stats.parse_column(name) or (0, "")
    start = stats.base_id(field_id) + (GEO_LOWER_START if stat == "lower" else GEO_UPPER_START)
    found = {}
    for member, values in zip(column.type, column.flatten(), strict=True):
        id = int((member.metadata or {}).get(FIELD_ID_KEY, -1))
        if not pa.types.is_floating(member.type) and start <= id < start + len(GEO_AXES):
            raise CorruptTable(file, f"column {name} has type {column.type}")
        found[id] = values
    axes = [found.get(start + at) for at in range(len(GEO_AXES))]
    return pa.StructArray.from_arrays(
        [pa.nulls(len(column), pa.float64()) if axis is None else axis for axis in axes],
        names=list(GEO_AXES),
        mask=column.is_null() if column.null_count else None,
    )


def _expected_type(name: str, shape: Shape) -> pa.DataType | None:
    parsed = stats.parse_column(name)
    if parsed is None:
        return BASE_SCHEMA.field(name).type
    field_id, stat = parsed
    if stat in ("lower", "upper"):
        return shape.bounds_type(field_id)
    return stats.stat_type(stat, pa.null())


def _is_of_unknown(name: str, shape: Shape) -> bool:
    """Tell whether a column is a bound of a transform that is not known."""
    field_id, stat = stats.parse_column(name) or (None, "")
    expression = shape.expressions.get(field_id) if field_id is not None else None
    return stat in ("lower", "upper") and expression is not None and expression.is_unknown


def is_of_variant(name: str, shape: Shape) -> bool:
    """Tell whether a column has bounds of variants, of which there is no least and no greatest."""
    field_id, _ = stats.parse_column(name) or (None, "")
    return field_id is not None and isinstance(shape.types.get(field_id), VariantType)


def _are_days(have: pa.DataType, name: str, shape: Shape) -> bool:
    """Tell whether numbers stand for days: the spec has those of a transform so, writers as dates."""
    field_id, _ = stats.parse_column(name) or (None, "")
    expression = shape.expressions.get(field_id) if field_id is not None else None
    return pa.types.is_int32(have) and expression is not None and expression.transform == "day"


def _widens(have: pa.DataType, want: pa.DataType) -> bool:
    """Tell whether the format lets a reader take `have` for `want`."""
    t = pa.types
    if t.is_decimal(have) and t.is_decimal(want):
        return bool(have.scale == want.scale and have.precision <= want.precision)
    if t.is_list(have) and t.is_list(want):
        return bool(have.value_type == want.value_type) or _widens(have.value_type, want.value_type)
    if t.is_struct(have) and t.is_struct(want):
        return [field.name for field in have] == [field.name for field in want]
    return (
        t.is_null(have)
        or (t.is_int32(have) and t.is_int64(want))
        or (t.is_float32(have) and t.is_float64(want))
        or (t.is_binary(have) and t.is_large_binary(want))
        or (t.is_date(have) and t.is_timestamp(want) and want.tz is None)
    )
