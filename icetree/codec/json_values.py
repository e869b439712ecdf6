"""Columns of values as JSON texts: Iceberg's JSON single-value serialization, a column at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import IcebergType, UUIDType

from icetree.spec.arrays import one_chunk

_NULL: Final = "null"
#: Characters that stand for something else within quotes.
_ESCAPED: Final = r'["\\\x00-\x1f]'
_UNITS: Final = {"us": (86_400 * 10**6, 6), "ns": (86_400 * 10**9, 9)}
_FOUR_DIGITS: Final = (-719_528, 2_932_896)  # days of the first and last date of four digits


def json_values(values: pa.Array | pa.ChunkedArray, type: IcebergType) -> pa.Array:
    """Return the JSON text of each value, as Arrow holds bounds of the type; `null` for null.

    Numbers that are not finite have no text in JSON: they are `null` too.
    """
    values = one_chunk(values)
    if pa.types.is_string(values.type):
        return json_texts(values)
    # What partitions and literals hold is mostly the same few values.
    encoded = pc.dictionary_encode(values)
    texts = _texts(encoded.dictionary, type)
    return pc.fill_null(texts.take(encoded.indices), _NULL)


def json_texts(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return strings in quotes, `null` for null."""
    values = one_chunk(values)
    if pc.any(pc.match_substring_regex(values, _ESCAPED)).as_py():
        return pa.array([msgspec.json.encode(each).decode() for each in values.to_pylist()])
    return pc.fill_null(_joined('"', values, '"'), _NULL)


def _texts(values: pa.Array, type: IcebergType) -> pa.Array:
    """Return the texts of values none of which is null."""
    kind = values.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return values.cast(pa.string())
    if pa.types.is_floating(kind):
        return _floats(values)
    if pa.types.is_date32(kind):
        return _quoted(_dates(values.cast(pa.int32()).cast(pa.int64()).to_numpy()))
    if pa.types.is_time64(kind):
        return _quoted(_times(values.cast(pa.int64()).to_numpy(), 6))
    if pa.types.is_timestamp(kind):
        return _quoted(_timestamps(values))
    if pa.types.is_decimal(kind):
        return _each(values, lambda value: f'"{value:f}"')
    if isinstance(type, UUIDType):
        return _each(values, lambda value: f'"{UUID(bytes=value)}"')
    return _each(values, lambda value: f'"{value.hex().upper()}"')


def _floats(values: pa.Array) -> pa.Array:
    texts = values.cast(pa.string())
    # A number without a point or an exponent is read as a whole one, of another type.
    whole = pc.match_substring_regex(texts, r"^-?\d+$")
    texts = pc.if_else(whole, _joined("", texts, ".0"), texts)
    return pc.if_else(pc.is_finite(values), texts, _NULL)


def _dates(days: npt.NDArray[np.int64]) -> pa.Array:
    first, last = _FOUR_DIGITS
    usual = np.clip(days, first, last).astype("datetime64[D]").astype(str)
    texts = pa.array(usual, pa.string())
    for at in np.flatnonzero((days < first) | (days > last)).tolist():
        beyond = pa.array([_far_date(int(days[at]))])
        texts = pa.concat_arrays([texts[:at], beyond, texts[at + 1 :]])
    return texts


def _far_date(day: int) -> str:
    """Return a date whose year has a sign, since it does not have four digits."""
    year, month, of_month = str(np.datetime64(day, "D")).rsplit("-", 2)
    return f"{'-' if year.startswith('-') else '+'}{year.lstrip('+-'):0>4}-{month}-{of_month}"


def _times(times: npt.NDArray[np.int64], digits: int) -> pa.Array:
    """Return times of a day, in units of so many digits of a second."""
    seconds, part = np.divmod(times, 10**digits)
    stamps = seconds.astype("datetime64[s]").astype(str)
    clock = pc.utf8_slice_codeunits(pa.array(stamps, pa.string()), 11)
    parts = pc.utf8_lpad(pa.array(part).cast(pa.string()), digits, "0")
    return pc.binary_join_element_wise(clock, parts, ".")


def _timestamps(values: pa.Array) -> pa.Array:
    in_a_day, digits = _UNITS[values.type.unit]
    days, times = np.divmod(values.cast(pa.int64()).to_numpy(), in_a_day)
    texts = pc.binary_join_element_wise(_dates(days), _times(times, digits), "T")
    return _joined("", texts, "+00:00") if values.type.tz else texts


def _each(values: pa.Array, text: Callable[[Any], str]) -> pa.Array:
    return pa.array([text(value) for value in values.to_pylist()], pa.string())


def _quoted(texts: pa.Array) -> pa.Array:
    return _joined('"', texts, '"')


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")
