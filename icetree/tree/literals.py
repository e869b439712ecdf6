"""Literals of a predicate as values of a column's type, and how well they fit it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from enum import Enum
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyiceberg.expressions.literals import (
    AboveMax,
    BelowMin,
    DateLiteral,
    DecimalLiteral,
    DoubleLiteral,
    FloatLiteral,
    Literal,
    LongLiteral,
    StringLiteral,
    TimestampLiteral,
    literal,
)
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)
from pyiceberg.utils.datetime import timestamp_to_nanos, timestamptz_to_nanos

from icetree.errors import InvalidInput
from icetree.spec.types import bounds_type

_DAY_MICROS: Final = 86_400_000_000
_ZONED: Final = (TimestamptzType, TimestamptzNanoType)
_TIMES: Final = (TimestampType, TimestampNanoType, *_ZONED)
_TIME: Final = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)"
    r"(?:[T ](?P<minute>\d\d:\d\d)(?P<second>:\d\d(?:\.\d{1,9})?)?(?P<zone>Z|[+-]\d\d:\d\d)?)?"
)


class Fit(Enum):
    """How a literal sits among the values of a column's type."""

    EXACT = 0
    #: Rounded: whether the value it was rounded to compares as equal depends on the engine.
    ROUNDED = 1
    #: Above the greatest value of the type, which stands for it.
    ABOVE = 2
    #: Below the least value of the type, which stands for it.
    BELOW = 3


def fit(literal: Literal[Any], type_: IcebergType, name: str) -> tuple[Any, Fit]:
    """Return the literal as a value of the type; `name` is told where it cannot be one."""
    if (
        isinstance(literal, DecimalLiteral)
        and isinstance(type_, IntegerType | LongType)
        and literal.value != literal.value.to_integral_value()
    ):
        # PyIceberg would round it, so that `n < 2.5` lost the twos.
        raise InvalidInput(
            f"{name!r} is {type_}: compare it with a whole number, not {literal.value}"
        )
    try:
        literal = _respelt(literal, type_)
        if isinstance(type_, FloatType):
            return _float(literal)
        if isinstance(type_, TimestampNanoType | TimestamptzNanoType):
            return _nanos(literal, zoned=isinstance(type_, TimestamptzNanoType)), Fit.EXACT
        found: Literal[Any] = literal.to(type_)
    except (TypeError, ValueError, ArithmeticError):
        raise InvalidInput(f"{name!r} is {type_}: it cannot be compared with {literal!r}") from None
    match found:
        case AboveMax():
            return found.value, Fit.ABOVE
        case BelowMin():
            return found.value, Fit.BELOW
    return found.value, Fit.EXACT if _is_same(literal, found) else Fit.ROUNDED


def _respelt(given: Literal[Any], type_: IcebergType) -> Literal[Any]:
    """Return text that is a time, or a decimal, as PyIceberg wants it spelt for the type.

    A day is its first moment, and a time without a zone is UTC where the column has one.
    """
    if isinstance(given, StringLiteral) and isinstance(type_, _TIMES):
        match = _TIME.fullmatch(given.value)
        if match:
            zone = (match["zone"] or "").replace("Z", "+00:00")
            if isinstance(type_, _ZONED):
                zone = zone or "+00:00"
            return StringLiteral(
                f"{match['day']}T{match['minute'] or '00:00'}{match['second'] or ':00'}{zone}"
            )
    if isinstance(given, DecimalLiteral) and isinstance(type_, DecimalType):
        rescaled = given.value.quantize(Decimal(1).scaleb(-type_.scale))
        return DecimalLiteral(rescaled) if rescaled == given.value else given
    return given


def literal_of(value: Any, type_: IcebergType) -> Literal[Any]:
    """Return PyIceberg's literal for a value that `fit` gave."""
    if isinstance(type_, TimestampNanoType | TimestamptzNanoType):
        return LongLiteral(value)
    found: Literal[Any] = literal(value).to(type_)
    return found


def array(values: Iterable[Any], type_: IcebergType) -> pa.Array | None:
    """Return values, ascending, as Arrow holds the type's bounds; None where it cannot."""
    ascending = sorted(values)
    arrow = bounds_type(type_)
    if arrow is None or pa.types.is_struct(arrow):
        return None if ascending else pa.nulls(0)
    try:
        return pa.array(ascending, arrow)
    except (pa.ArrowException, OverflowError):
        return None


def _is_same(given: Literal[Any], found: Literal[Any]) -> bool:
    match given, found:
        case TimestampLiteral(), DateLiteral():
            return int(given.value) % _DAY_MICROS == 0
        case StringLiteral(), LongLiteral():
            return Decimal(given.value) == found.value
        case ((LongLiteral() | DoubleLiteral() | FloatLiteral() | DecimalLiteral()), _):
            return bool(given.value == found.value)
    return True


def _float(literal: Literal[Any]) -> tuple[float, Fit]:
    wide = literal.to(DoubleType())
    with np.errstate(over="ignore"):
        value = float(np.float32(wide.value))
    same = value == wide.value and _is_same(literal, wide)
    return value, Fit.EXACT if same else Fit.ROUNDED


def _nanos(literal: Literal[Any], *, zoned: bool) -> int:
    match literal:
        case LongLiteral():
            return int(literal.value)
        case TimestampLiteral():
            return int(literal.value) * 1000
        case StringLiteral() if zoned:
            return timestamptz_to_nanos(literal.value)
        case StringLiteral():
            return timestamp_to_nanos(literal.value)
    raise TypeError(literal)
