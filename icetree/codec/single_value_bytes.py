"""Typed Arrow arrays as the bytes that v1-v3 metadata stores for values: bounds, and summaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import DecimalType, GeographyType, GeometryType, IcebergType

from icetree.codec.cuts import cut, cut_by, masked
from icetree.spec.fields import GEO_AXES
from icetree.spec.schema.types import VariantType


def encode_bounds(values: pa.Array, type: IcebergType) -> pa.BinaryArray:
    """Return values in Iceberg's binary single-value serialization; null stays null.

    `values` are of the type's Arrow bounds.
    """
    if not len(values) or values.null_count == len(values):
        return pa.nulls(len(values), pa.binary())
    return masked(_encode(values, type), values)


def _encode(values: pa.Array, type: IcebergType) -> pa.BinaryArray:
    match type:
        case DecimalType():
            return shortest(decimal_bytes(values))
        case GeometryType() | GeographyType():
            return _points(values)
        case VariantType():
            return values.cast(pa.binary())
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        return values.cast(pa.binary())
    if pa.types.is_boolean(values.type):
        flags = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
        return cut(flags.astype(np.uint8), 1)
    return cut(raw_bytes(values).reshape(-1), values.type.bit_width // 8)


def raw_bytes(values: pa.Array) -> np.ndarray[Any, Any]:
    """Return values of one width as a matrix of their bytes, as they are in memory."""
    width = values.type.bit_width // 8
    content = np.frombuffer(values.buffers()[1], np.uint8)
    start = values.offset * width
    return content[start : start + len(values) * width].reshape(len(values), width)


def decimal_bytes(values: pa.Array) -> np.ndarray[Any, Any]:
    """Return unscaled decimals as a matrix of 16 bytes each, the highest first."""
    return raw_bytes(values)[:, ::-1]


def shortest(rows: np.ndarray[Any, Any]) -> pa.BinaryArray:
    """Return numbers, the highest byte first, without bytes that only repeat their sign."""
    # A byte says nothing where it and the next one's highest bit are all the sign.
    sign = np.where(rows[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
    idle = (rows[:, :-1] == sign) & ((rows[:, 1:] >= 0x80) == (sign > 0))
    lead = np.cumprod(idle, axis=1).sum(axis=1)
    width = rows.shape[1]
    kept = np.arange(width) >= lead[:, None]
    return cut_by(width - lead, rows[kept])


def _points(values: pa.Array) -> pa.BinaryArray:
    """Return corners of boxes: x and y, then z, and m after a z that may be NaN."""
    axes = [pc.struct_field(values, axis) for axis in GEO_AXES]
    plain = np.stack(
        [pc.fill_null(each, np.nan).to_numpy(zero_copy_only=False) for each in axes], 1
    )
    has_z, has_m = (pc.is_valid(each).to_numpy(zero_copy_only=False) for each in axes[2:])
    used = 2 + np.where(has_m, 2, np.where(has_z, 1, 0))
    kept = np.arange(4) < used[:, None]
    return cut_by(used * 8, np.ascontiguousarray(plain[kept].astype("<f8")))
