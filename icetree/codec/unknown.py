"""Values of transforms that are not known, as text: equal, and in order, where the values are."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

#: All numbers have as many digits, and none has a sign.
_DIGITS: Final = 20
_LEAST: Final = 2**63


def texts_of_unknown(values: pa.Array) -> pa.Array:
    """Return values as text; those of a type whose order no text keeps are null: nothing is told."""
    type = values.type
    if pa.types.is_string(type):
        return values
    if pa.types.is_null(type):
        return pa.nulls(len(values), pa.string())
    if pa.types.is_binary(type) or pa.types.is_fixed_size_binary(type):
        return _each(values, lambda value: value.hex())
    if pa.types.is_boolean(type):
        return values.cast(pa.string())
    if pa.types.is_integer(type) or pa.types.is_temporal(type):
        if not pa.types.is_integer(type):
            values = values.view(pa.int32() if type.bit_width == 32 else pa.int64())
        return _each(values, lambda value: f"{value + _LEAST:0{_DIGITS}d}")
    return pa.nulls(len(values), pa.string())


def _each(values: pa.Array, text: Any) -> pa.Array:
    encoded = values.dictionary_encode()
    known = [text(value) for value in encoded.dictionary.to_pylist()]
    return pc.take(pa.array(known, pa.string()), encoded.indices)
