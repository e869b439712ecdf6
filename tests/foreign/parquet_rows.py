"""Parquet files of rows: any type of Parquet's that means what a column's type does."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa

from tests.foreign.columns import Field, Row, arrow_field, named
from tests.foreign.dress import Dress
from tests.foreign.parquet import Column, write
from tests.foreign.transforms import unscaled_bytes


def rows_file(rows: list[Row], columns: list[Field], dress: Dress) -> bytes:
    """Return a file of columns of the rows."""
    rng = dress.aside("rows")
    more = _more(columns, rng)
    made, decimals = [], {}
    for each in columns:
        values = [named(each.type, row.get(each.key)) for row in rows]
        own = arrow_field(each)
        # A duration is a matter of manifests: their numbers are the format's.
        worn = own if own.type == pa.int64() else own.with_type(dress.nested(own.type))
        column = Column(own, pa.array(values, own.type), worn)
        if rng is not None and rng.random() < 0.3:
            column, digits = _otherwise(column, values, rng)
            if digits is not None:
                decimals[own.name] = digits
        made.append(column)
    return write(made, dress, decimals=decimals, **more)


def _more(columns: list[Field], rng: Random | None) -> dict[str, Any]:
    """Return options that only files of rows have."""
    if rng is None:
        return {}
    found: dict[str, Any] = rng.choice(
        ({}, {}, {"use_deprecated_int96_timestamps": True}, {"coerce_timestamps": "ms"})
    )
    numbers = [each.name for each in columns if each.key in ("id", "name", "n")]
    if rng.random() < 0.3:
        found = found | {"bloom_filter_options": {name: {"ndv": 8} for name in numbers}}
    return found


_NARROW = (pa.int8(), pa.int16(), pa.uint8(), pa.uint16())


def _otherwise(
    column: Column, values: list[Any], rng: Random
) -> tuple[Column, tuple[int, int] | None]:
    """Return a column as a type that means the same; with digits, where it is decimals as bytes."""
    type, digits = column.field.type, None
    present = [each for each in values if each is not None]
    other = type
    if type in (pa.int32(), pa.int64()):
        narrow = rng.choice(_NARROW if type == pa.int32() else (pa.int32(), pa.uint32(), *_NARROW))
        low = -(1 << narrow.bit_width - 1) if pa.types.is_signed_integer(narrow) else 0
        if all(low <= each < 1 << narrow.bit_width - 1 for each in present):
            other = narrow
    elif pa.types.is_decimal(type):
        other, digits = pa.binary(), (type.precision, type.scale)
        values = [None if each is None else unscaled_bytes(each) for each in values]
    elif pa.types.is_list(type) and all(None not in each for each in present):
        other = pa.list_(type.value_field.with_nullable(False))
    if other is type:
        return column, None
    own = column.field.with_type(other)
    return Column(own, pa.array(values, other), own, usual=type), digits
