"""Literals of a predicate as values of a column's type, and how well they fit it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import ROUND_FLOOR, Context, Decimal
from enum import Enum
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyiceberg.expressions.literals import (
    AboveMax,
    BelowMin,
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
    DateType,
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
    TimeType,
)
from pyiceberg.utils.datetime import timestamp_to_nanos, timestamptz_to_nanos

from icetree.errors import InvalidInput
from icetree.spec.schema.types import bounds_type

_DAY_MICROS: Final = 86_400_000_000
_ZONED: Final = (TimestamptzType, TimestamptzNanoType)
_TIMES: Final = (TimestampType, TimestampNanoType, *_ZONED)
_NUMBERS: Final = (LongLiteral, DecimalLiteral, DoubleLiteral, FloatLiteral, StringLiteral)
_TIME: Final = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)"
    r"(?:[T ](?P<minute>\d\d:\d\d)(?P<second>:\d\d(?:\.\d{1,9})?)?(?P<zone>Z|[+-]\d\d:\d\d)?)?"
)
#: The exponents of doubles stay within it.
_REACH: Final = 400
_NUMERIC: Final = (IntegerType, LongType, DecimalType, FloatType, DoubleType)
_TOO_FINE: Final = re.compile(r"[.,]\d{7}")


class Fit(Enum):
    """How a literal sits among the values of a column's type."""

    EXACT = 0
    #: Rounded to a float: whether the value it was rounded to compares as equal depends on the engine.
    ROUNDED = 1
    #: Above the greatest value of the type, which stands for it.
    ABOVE = 2
    #: Below the least value of the type, which stands for it.
    BELOW = 3
    #: Between two values of the type, the lesser of which stands for it.
    BETWEEN = 4


def fit(literal: Literal[Any], type_: IcebergType, name: str) -> tuple[Any, Fit]:
    """Return the literal as a value of the type; `name` is told where it cannot be one."""
    given = literal.value
    try:
        if isinstance(literal, StringLiteral):
            literal.value.encode()  # half a character, which no text on disk has, raises
        _require_reach(literal, type_, name)
        if isinstance(type_, IntegerType | LongType) and not _is_whole(literal):
            # PyIceberg would round it, so that `n < 2.5` lost the twos.
            raise InvalidInput(
                f"{name!r} is {type_}: compare it with a whole number, not {literal.value}"
            )
        if isinstance(type_, DecimalType) and isinstance(literal, _NUMBERS):
            return _decimal(literal.value, type_)
        if isinstance(type_, DateType) and isinstance(literal, TimestampLiteral):
            days, rest = divmod(int(literal.value), _DAY_MICROS)
            return days, Fit.BETWEEN if rest else Fit.EXACT
        if isinstance(type_, FloatType):
            return _float(literal)
        literal = _respelt(literal, type_)
        if isinstance(type_, TimestampNanoType | TimestamptzNanoType):
            return _nanos(literal, zoned=isinstance(type_, TimestamptzNanoType)), Fit.EXACT
        found: Literal[Any] = literal.to(type_)
    except (TypeError, ValueError, ArithmeticError):
        raise InvalidInput(f"{name!r} is {type_}: it cannot be compared with {given!r}") from None
    match found:
        case AboveMax():
            return found.value, Fit.ABOVE
        case BelowMin():
            return found.value, Fit.BELOW
    return found.value, Fit.EXACT if _is_same(literal, found) else Fit.ROUNDED


def _require_reach(literal: Literal[Any], type_: IcebergType, name: str) -> None:
    """Refuse what no column holds anything near to: as a whole number it may have any length."""
    if not isinstance(type_, _NUMERIC) or not isinstance(literal, DecimalLiteral | StringLiteral):
        return
    number = Decimal(literal.value)
    if number.is_finite() and abs(number.adjusted()) > _REACH:
        raise InvalidInput(f"{name!r} is {type_}: {number} is beyond any number it can hold")


def _is_whole(literal: Literal[Any]) -> bool:
    if not isinstance(literal, DecimalLiteral | StringLiteral):
        return True
    number = Decimal(literal.value)
    return number == number.to_integral_value()


def _decimal(value: Decimal | float | str, type_: DecimalType) -> tuple[Decimal, Fit]:
    # A float means the shortest decimal that reads as it: 1.99, not 1.9899999….
    exact = Decimal(repr(value) if isinstance(value, float) else value)
    least, most = (Decimal((sign, (9,) * type_.precision, -type_.scale)) for sign in (1, 0))
    if exact > most:
        return most, Fit.ABOVE
    if exact < least:
        return least, Fit.BELOW
    # The default context has 28 digits, fewer than a column may have.
    wide = Context(prec=type_.precision + 1)
    floor = exact.quantize(Decimal((0, (1,), -type_.scale)), ROUND_FLOOR, wide)
    return floor, Fit.EXACT if floor == exact else Fit.BETWEEN


def _respelt(given: Literal[Any], type_: IcebergType) -> Literal[Any]:
    """Return text that is a time as PyIceberg wants it spelt for the type.

    A day is its first moment, and a time without a zone is UTC where the column has one.
    """
    if isinstance(given, StringLiteral) and isinstance(type_, TimeType):
        # Python drops what is finer than a microsecond.
        if _TOO_FINE.search(given.value):
            raise ValueError(given.value)
        return given
    if isinstance(given, StringLiteral) and isinstance(type_, _TIMES):
        match = _TIME.fullmatch(given.value)
        if match:
            zone = (match["zone"] or "").replace("Z", "+00:00")
            if isinstance(type_, _ZONED):
                zone = zone or "+00:00"
            return StringLiteral(
                f"{match['day']}T{match['minute'] or '00:00'}{match['second'] or ':00'}{zone}"
            )
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
