"""Single values of variants as values of Iceberg's types."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Context, Decimal, InvalidOperation
from typing import Any, Final

from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
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

from icetree.codec.variant.read import Primitive

_LIMITS: Final = {IntegerType: 2**31, LongType: 2**63}
_SAME: Final[Mapping[type[IcebergType], str]] = {
    StringType: "string",
    BooleanType: "boolean",
    DateType: "date",
    TimeType: "time",
    BinaryType: "binary",
    UUIDType: "uuid",
}
#: Kinds of times that a type takes, and how many of its units one of theirs is.
_TIMES: Final[Mapping[type[IcebergType], Mapping[str, tuple[int, int]]]] = {
    TimestampType: {"timestamp": (1, 1), "timestamp_ns": (1, 1000)},
    TimestamptzType: {"timestamptz": (1, 1), "timestamptz_ns": (1, 1000)},
    TimestampNanoType: {"timestamp": (1000, 1), "timestamp_ns": (1, 1)},
    TimestamptzNanoType: {"timestamptz": (1000, 1), "timestamptz_ns": (1, 1)},
}


def can_be_asked_for(type: IcebergType) -> bool:
    """Tell whether variants have values of a type."""
    numbers = (IntegerType, LongType, FloatType, DoubleType, DecimalType)
    return isinstance(type, numbers) or type.__class__ in {**_SAME, **_TIMES}


def coerced(single: Primitive, type: IcebergType) -> Any:
    """Return a single value as one of a type; None where it is none without loss, but for floats."""
    kind, value = single.kind, single.value
    match type:
        case IntegerType() | LongType() if kind == "exact":
            whole = int(value)
            limit = _LIMITS[type.__class__]
            return whole if whole == value and -limit <= whole < limit else None
        case FloatType() | DoubleType() if kind in ("exact", "double"):
            return float(value)
        case DecimalType() if kind == "exact":
            return _decimal(value, type)
    if kind == _SAME.get(type.__class__):
        return value
    times = _TIMES.get(type.__class__, {}).get(kind)
    if times is None:
        return None
    found, rest = divmod(value * times[0], times[1])
    return found if not rest and abs(found) < 2**63 else None


def _decimal(value: int | Decimal, type: DecimalType) -> Decimal | None:
    wide = Context(prec=type.precision)
    try:
        found = Decimal(value).quantize(Decimal((0, (1,), -type.scale)), context=wide)
    except InvalidOperation:
        return None
    return found if found == value else None
