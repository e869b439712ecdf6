"""Columns as the bytes that Iceberg serializes single values to, without a Python value in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_is = pa.types
#: Width of a decimal in Arrow, and the most bytes that Iceberg needs for one.
_DECIMAL: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Serialized:
    """Byte strings, each a range of the content."""

    content: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]


def can_be_serialized(type: pa.DataType) -> bool:
    """Tell whether a column's values are single ones: neither nested nor of a kind of their own."""
    if isinstance(type, pa.BaseExtensionType):
        type = type.storage_type
    return not (_is.is_nested(type) or _is.is_null(type) or _is.is_dictionary(type))


def serialized(values: pa.Array) -> Serialized:
    """Return the bytes of the values that are not null: little endian, but decimals."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    values = values.drop_null()
    type = values.type
    if _is.is_boolean(type):
        return _even(values.cast(pa.uint8()))
    if _is.is_decimal(type):
        return _decimals(values.cast(pa.decimal128(38, type.scale)))
    if _is.is_fixed_size_binary(type) or _is.is_primitive(type):
        return _even(values)
    return _uneven(values.cast(pa.large_binary()))


def _even(values: pa.Array) -> Serialized:
    width = values.type.byte_width
    content = np.frombuffer(values.buffers()[1] or b"", np.uint8)
    starts = (np.arange(len(values), dtype=np.int64) + values.offset) * width
    return Serialized(content=content, starts=starts, lengths=np.full(len(values), width))


def _uneven(values: pa.Array) -> Serialized:
    _, offsets, content = values.buffers()
    ends = np.frombuffer(offsets, np.int64, len(values) + 1, values.offset * 8)
    return Serialized(
        content=np.frombuffer(content or b"", np.uint8), starts=ends[:-1], lengths=np.diff(ends)
    )


def _decimals(values: pa.Array) -> Serialized:
    """Return unscaled values in as few bytes as hold them, the greatest first."""
    little = np.frombuffer(values.buffers()[1] or b"", np.uint8)
    little = little.reshape(-1, _DECIMAL)[values.offset : values.offset + len(values)]
    big = np.ascontiguousarray(little[:, ::-1])
    sign = np.where(big[:, :1] & 0x80, 0xFF, 0).astype(np.uint8)
    # A byte says nothing where it is all sign, and the next one starts with it.
    is_idle = (big[:, :-1] == sign) & ((big[:, 1:] ^ sign) < 0x80)
    idle = np.cumprod(is_idle, axis=1).sum(axis=1).astype(np.int64)
    starts = np.arange(len(big), dtype=np.int64) * _DECIMAL + idle
    return Serialized(content=big.reshape(-1), starts=starts, lengths=_DECIMAL - idle)


def distinct(values: pa.Array) -> pa.Array:
    """Return each value of a column of texts or bytes once: to hash them takes longer."""
    wide = _is.is_string(values.type) or _is.is_binary(values.type)
    return pc.unique(values) if wide else values
