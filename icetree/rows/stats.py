"""Stats of rows, computed from the rows themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isnan
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import (
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

from icetree.spec.metrics import Mode, truncate_lower, truncate_upper
from icetree.spec.stats import column
from icetree.spec.types import bounds_type, has_nans, is_variable_length

#: Stats of one file: by the name of the stats column, typed as that column is.
FileStats: TypeAlias = "dict[str, pa.Scalar]"


def stats_of(
    rows: pa.Table, fields: tuple[NestedField, ...], modes: Mapping[int, Mode]
) -> FileStats:
    """Return the stats of rows in the table's own columns, as much as the modes ask for."""
    found: FileStats = {}
    for field, name in zip(fields, rows.column_names, strict=True):
        for leaf, values in _leaves(field, rows[name]):
            mode = modes.get(leaf.field_id)
            if mode is not None and mode.kind != "none":
                found |= _stats(leaf.field_id, leaf.field_type, values, mode)
    return found


def _leaves(
    field: NestedField, values: pa.ChunkedArray
) -> Iterator[tuple[NestedField, pa.ChunkedArray]]:
    """Yield the fields within structs; null where a struct around them is."""
    match field.field_type:
        case StructType():
            for at, child in enumerate(field.field_type.fields):
                yield from _leaves(child, pc.struct_field(values, [at]))
        case ListType() | MapType():
            pass
        case _:
            yield field, _plain(values)


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if not isinstance(values.type, pa.BaseExtensionType):
        return values
    return pa.chunked_array([each.storage for each in values.chunks], values.type.storage_type)


def _stats(field_id: int, type: IcebergType, values: pa.ChunkedArray, mode: Mode) -> FileStats:
    def count(number: int) -> pa.Scalar:
        return pa.scalar(number, pa.int64())

    found = {"values": count(len(values)), "nulls": count(values.null_count)}
    if has_nans(type):
        is_nan = pc.is_nan(values)
        nans = pc.sum(is_nan).as_py() or 0
        found["nans"] = count(nans)
        if nans:
            values = values.filter(pc.fill_null(pc.invert(is_nan), False))
    if is_variable_length(type) and values.null_count < len(values):
        sizes = pc.binary_length(values)
        found["avg_size"] = pa.scalar(round(pc.mean(sizes).as_py()), pa.int32())
        found["max_size"] = pc.max(sizes).cast(pa.int32())
    # Bounds of geo columns are boxes, which nothing here can tell from their bytes.
    if mode.has_bounds and not isinstance(type, GeometryType | GeographyType):
        found |= _bounds(type, values, mode)
    return {column(field_id, stat): value for stat, value in found.items()}


def _bounds(type: IcebergType, values: pa.ChunkedArray, mode: Mode) -> FileStats:
    want = bounds_type(type)
    if want is None or values.null_count == len(values):
        return {}
    is_fixed = pa.types.is_fixed_size_binary(values.type)
    # Not every version orders fixed-size binary; plain binary has the same, bytewise order.
    ordered = values.cast(pa.binary()) if is_fixed else values
    ends = pc.min_max(ordered)
    lower, upper = ends["min"], ends["max"]
    if pa.types.is_floating(values.type):
        lower, upper = _zero(lower, values, least=True), _zero(upper, values, least=False)
    if mode.kind != "truncate" or is_fixed or not _has_length(values.type):
        return {
            "lower": lower.cast(want),
            "upper": upper.cast(want),
            "tight": pa.scalar(True),
        }
    assert mode.length is not None
    least, most = lower.as_py(), upper.as_py()
    short, high = truncate_lower(least, mode.length), truncate_upper(most, mode.length)
    found = {"lower": pa.scalar(short, want), "tight": pa.scalar(short == least and high == most)}
    if high is not None:
        found["upper"] = pa.scalar(high, want)
    return found


def _has_length(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_binary(type))


def _zero(bound: pa.Scalar, values: pa.ChunkedArray, *, least: bool) -> pa.Scalar:
    """Return the bound with the sign its zero must have: -0.0 comes before +0.0."""
    if bound.as_py() != 0:
        return bound
    numbers = values.to_numpy()
    signs = np.signbit(numbers[numbers == 0])
    negative = bool(signs.any()) if least else bool(signs.all())
    return pa.scalar(-0.0 if negative else 0.0, bound.type)


def partition_stats(field_id: int, value: pa.Scalar, rows: int) -> FileStats:
    """Return the stats of a field that has one value for all rows of a file."""
    is_nan = pa.types.is_floating(value.type) and value.is_valid and isnan(value.as_py())
    counts = {"values": rows, "nulls": 0 if value.is_valid else rows}
    if pa.types.is_floating(value.type):
        counts["nans"] = rows if is_nan else 0
    found = {stat: pa.scalar(count, pa.int64()) for stat, count in counts.items()}
    if value.is_valid and not is_nan:
        found |= {"lower": value, "upper": value, "tight": pa.scalar(True)}
    return {column(field_id, stat): each for stat, each in found.items()}
