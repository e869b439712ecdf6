"""Every primitive type with bounds: random values, and what order the format gives them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from icetree.spec.schema.types import bounds_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A type, its values as Arrow takes them, and a key that orders them as the format does."""

    type: IcebergType
    values: st.SearchStrategy[Any]
    order: Callable[[Any], Any] = lambda value: value

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type of the bounds."""
        found = bounds_type(self.type)
        assert found is not None
        return found

    @property
    def is_float(self) -> bool:
        """Whether values can be NaN."""
        return pa.types.is_floating(self.arrow)


def plain(scalar: pa.Scalar) -> Any:
    """Return a bound as the value it was made of: a number for what is a number inside."""
    return scalar.value if pa.types.is_temporal(scalar.type) else scalar.as_py()


def _by_bits(value: float) -> tuple[float, float]:
    return value, math.copysign(1, value)


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    # Made of its digits: arithmetic would round to the 28 digits of the usual context.
    return st.integers(-most, most).map(
        lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale))
    )


def _whole(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


_TEXT = st.text(st.characters(codec="utf-8"), max_size=5)
_DAY_US = 24 * 60 * 60 * 1_000_000

KINDS: dict[str, Kind] = {
    "boolean": Kind(type=BooleanType(), values=st.booleans()),
    "int": Kind(type=IntegerType(), values=_whole(32)),
    "long": Kind(type=LongType(), values=_whole(64)),
    "float": Kind(
        type=FloatType(),
        values=st.floats(width=32, allow_nan=False) | st.sampled_from([0.0, -0.0]),
        order=_by_bits,
    ),
    "double": Kind(
        type=DoubleType(),
        values=st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0]),
        order=_by_bits,
    ),
    "decimal(9, 2)": Kind(type=DecimalType(9, 2), values=_decimals(9, 2)),
    "decimal(38, 10)": Kind(type=DecimalType(38, 10), values=_decimals(38, 10)),
    "date": Kind(type=DateType(), values=_whole(32)),
    "time": Kind(type=TimeType(), values=st.integers(0, _DAY_US - 1)),
    "timestamp": Kind(type=TimestampType(), values=_whole(64)),
    "timestamptz": Kind(type=TimestamptzType(), values=_whole(64)),
    "timestamp_ns": Kind(type=TimestampNanoType(), values=_whole(64)),
    "timestamptz_ns": Kind(type=TimestamptzNanoType(), values=_whole(64)),
    "string": Kind(type=StringType(), values=_TEXT, order=lambda text: text.encode()),
    "uuid": Kind(type=UUIDType(), values=st.binary(min_size=16, max_size=16)),
    "fixed(7)": Kind(type=FixedType(7), values=st.binary(min_size=7, max_size=7)),
    "binary": Kind(type=BinaryType(), values=st.binary(max_size=5)),
}

_COORDINATE = st.floats(-90, 90) | st.sampled_from([0.0, -0.0])

#: Boxes of one corner; lower and upper come from two of them.
GEO_KINDS: dict[str, Kind] = {
    name: Kind(
        type=type,
        values=st.fixed_dictionaries(
            {"x": _COORDINATE, "y": _COORDINATE, "z": st.none() | _COORDINATE, "m": st.none()}
        ),
    )
    for name, type in (("geometry", GeometryType()), ("geography", GeographyType()))
}
