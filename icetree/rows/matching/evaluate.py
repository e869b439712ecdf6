"""Expressions over columns, worked out for a batch of rows.

Nulls are SQL's: what is applied to one is null, and a condition that is null does not hold. Numbers
never wrap around: what leaves its type is refused. NaNs compare as they do in filters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import reduce
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import InvalidInput
from icetree.filters.expression import Call, Cast, Column, Constant, Expression
from icetree.rows.schema import arrow_type, plain

#: Values of rows: one each, or one for all.
Values: TypeAlias = "pa.Array | pa.Scalar"
#: Gives the values of a column.
ColumnOf = Callable[[Column], pa.Array]

_is = pa.types
_INT32: Final = range(-(2**31), 2**31)
_INT64: Final = range(-(2**63), 2**63)


def evaluate(expression: Expression, column: ColumnOf, size: int) -> pa.Array:
    """Return the values of an expression for `size` rows; InvalidInput where there are none."""
    found = _value(expression, column)
    return repeated(found, size) if isinstance(found, pa.Scalar) else found


def repeated(value: pa.Scalar, size: int) -> pa.Array:
    """Return a value as often as asked for."""
    return pa.repeat(value, size) if size else pa.nulls(0, value.type)


def truth(found: pa.Array) -> pa.BooleanArray:
    """Tell of which rows the values of a condition are true; never null."""
    if _is.is_null(found.type):
        return pa.repeat(pa.scalar(False), len(found))
    if not _is.is_boolean(found.type):
        raise InvalidInput(f"a condition is true or false, not {found.type}: compare it with one")
    return pc.fill_null(found, False) if found.null_count else found


def constant(value: Any) -> pa.Scalar:
    """Return a Python value as SQL would type a literal of it."""
    if isinstance(value, bool) or value is None:
        return pa.scalar(value)
    if isinstance(value, int):
        if value in _INT64:
            return pa.scalar(value, pa.int32() if value in _INT32 else pa.int64())
        return _scalar(Decimal(value))
    if isinstance(value, datetime):
        return pa.scalar(value, pa.timestamp("us", tz=None if value.tzinfo is None else "UTC"))
    return _scalar(value)


def _scalar(value: Any) -> pa.Scalar:
    try:
        return pa.scalar(value)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise InvalidInput(f"{value!r} is no value of a column: {error}") from None


def _value(expression: Expression, column: ColumnOf) -> Values:
    match expression:
        case Column():
            return plain(column(expression))
        case Constant(value=value):
            return constant(value)
        case Cast(value=inner, type=type):
            return _cast(_value(inner, column), arrow_type(type), str(type))
        case Call(function=name, arguments=parts):
            values = [_value(part, column) for part in parts]
            literal = [isinstance(part, Constant) for part in parts]
            return _applied(name, values, literal)


def _applied(name: str, values: Sequence[Values], literal: Sequence[bool]) -> Values:
    try:
        return _FUNCTIONS[name](*_alike(name, values, literal))
    except (pa.ArrowException, TypeError) as error:
        types = " and ".join(str(each.type) for each in values)
        told = str(error).partition("\n")[0]
        raise InvalidInput(f"{name} of {types}: {told}") from None


def _cast(value: Values, to: pa.DataType, name: str) -> Values:
    """Return a value in another type: fractions are cut off, what does not fit is refused."""
    try:
        if isinstance(to, pa.BaseExtensionType):
            to = to.storage_type
        whole = _is.is_integer(to)
        if whole and (_is.is_floating(value.type) or _is.is_decimal(value.type)):
            value = pc.trunc(value)
        if _is.is_decimal(to) and _is.is_floating(value.type):
            return pc.round(value, to.scale).cast(to)
        if _is.is_decimal(to) and _is.is_decimal(value.type) and value.type.scale > to.scale:
            value = pc.round(value, to.scale)
        if _is.is_floating(to):
            return pc.cast(value, to, safe=False)
        return value.cast(to)
    except pa.ArrowException as error:
        told = str(error).partition("\n")[0]
        raise InvalidInput(f"cast of {value.type} to {name}: {told}") from None


# --- types that meet -----------------------------------------------------------------------------

_COMPARING: Final = frozenset({"=", "!=", "<", "<=", ">", ">=", "in", "not in", "+", "-", "*", "/"})
_JOINING: Final = frozenset({"coalesce", "greatest", "least", "nullif", "%"})


def _alike(name: str, values: Sequence[Values], literal: Sequence[bool]) -> Sequence[Values]:
    """Return values in types that can meet: literals are what the column beside them is."""
    if name == "case":
        return _alike_cases(values, literal)
    if name in ("and", "or", "not"):
        return [_truth(each) for each in values]
    if name not in _COMPARING | _JOINING:
        return values
    told = [each.type for each, is_literal in zip(values, literal, strict=True) if not is_literal]
    return [
        _met(each, told) if is_literal else each
        for each, is_literal in zip(_no_mixtures(values, literal), literal, strict=True)
    ]


def _alike_cases(values: Sequence[Values], literal: Sequence[bool]) -> Sequence[Values]:
    """Return conditions as they are, and the values that they choose in types that can meet."""
    chosen = [at for at in range(len(values)) if at % 2 or at == len(values) - 1]
    made = _alike("coalesce", [values[at] for at in chosen], [literal[at] for at in chosen])
    found = [_truth(each) for each in values]
    for at, each in zip(chosen, made, strict=True):
        found[at] = each
    return found


def _truth(value: Values) -> Values:
    return value.cast(pa.bool_()) if _is.is_null(value.type) else value


def _met(value: pa.Scalar, types: Sequence[pa.DataType]) -> pa.Scalar:
    """Return a literal as a value of a column's type, where it is written as one of another."""
    for type in types:
        if _is.is_null(value.type):
            return value.cast(type)
        if _is.is_string(value.type) and _is_written(type):
            return value.cast(type)
        if _is.is_decimal(value.type) and _is.is_floating(type):
            return pa.scalar(float(value.as_py()), type)
        if _is.is_integer(value.type) and _is.is_floating(type):
            return pa.scalar(value.as_py(), pa.float64()).cast(type, safe=False)
    return value


def _is_written(type: pa.DataType) -> bool:
    """Tell whether literals of a type are written as strings."""
    return bool(_is.is_temporal(type))


def _no_mixtures(values: Sequence[Values], literal: Sequence[bool]) -> Sequence[Values]:
    """Return decimals as floats where one of the columns is of floats."""
    columns = [each for each, is_literal in zip(values, literal, strict=True) if not is_literal]
    if not any(_is.is_floating(each.type) for each in columns):
        return values
    return [
        pc.cast(each, pa.float64(), safe=False)
        if not is_literal and _is.is_decimal(each.type)
        else each
        for each, is_literal in zip(values, literal, strict=True)
    ]


# --- functions -----------------------------------------------------------------------------------


def _divided(left: Values, right: Values) -> Values:
    if _is.is_integer(left.type) and _is.is_integer(right.type):
        left, right = (pc.cast(each, pa.float64(), safe=False) for each in (left, right))
    _require_no_zero(right)
    return pc.divide_checked(left, right)


def _remainder(left: Values, right: Values) -> Values:
    """Return what is left of a division; as in SQL it has the sign of what is divided."""
    _require_no_zero(right)
    if _is.is_integer(left.type) and _is.is_integer(right.type):
        return pc.subtract(left, pc.multiply(pc.divide(left, right), right))
    if _is.is_decimal(left.type) or _is.is_decimal(right.type):
        raise TypeError("decimals have no remainder here: cast them first")
    quotient = pc.trunc(pc.divide(left, right))
    return pc.subtract(left, pc.multiply(quotient, right))


def _require_no_zero(divisor: Values) -> None:
    zero = pa.scalar(0, divisor.type) if not _is.is_decimal(divisor.type) else 0
    found = pc.equal(divisor, zero)
    if (found.as_py() if isinstance(found, pa.Scalar) else pc.any(found).as_py()) is True:
        raise InvalidInput("division by zero: leave such rows out, or divide by nullif(x, 0)")


def _among(value: Values, *listed: Values) -> Values:
    return reduce(pc.or_kleene, [pc.equal(value, each) for each in listed])


def _joined(*values: Values) -> Values:
    texts = [each if _is.is_string(each.type) else pc.cast(each, pa.string()) for each in values]
    return pc.binary_join_element_wise(*texts, pa.scalar("", pa.string()))


def _only_text(value: Values) -> Values:
    if not (
        _is.is_string(value.type) or _is.is_large_string(value.type) or _is.is_null(value.type)
    ):
        raise TypeError("it takes text: cast it first")
    return value.cast(pa.string())


def _constant_text(value: Values) -> str:
    if not isinstance(value, pa.StringScalar) or value.as_py() is None:
        raise TypeError("a pattern is a text in single quotes")
    return str(value.as_py())


def _like(value: Values, pattern: Values) -> Values:
    return pc.match_like(_only_text(value), _constant_text(pattern))


def _starts(value: Values, prefix: Values) -> Values:
    return pc.starts_with(_only_text(value), _constant_text(prefix))


def _nan(value: Values) -> Values:
    if not _is.is_floating(value.type):
        return pc.and_(pc.is_valid(value), pa.scalar(False))
    return pc.fill_null(pc.is_nan(value), False)


def _nullif(value: Values, other: Values) -> Values:
    same = pc.fill_null(pc.equal(value, other), False)
    return pc.if_else(same, pa.scalar(None, value.type), value)


def _substring(value: Values, start: Values, length: Values | None = None) -> Values:
    first, count = _number(start), None if length is None else max(0, _number(length))
    begin = first - 1 if first > 0 else first
    if count is None:
        return pc.utf8_slice_codeunits(_only_text(value), start=begin)
    if begin < 0 and begin + count >= 0:
        return pc.utf8_slice_codeunits(_only_text(value), start=begin)
    return pc.utf8_slice_codeunits(_only_text(value), start=begin, stop=begin + count)


def _round(value: Values, digits: Values | None = None) -> Values:
    if _is.is_integer(value.type):
        return value
    places = 0 if digits is None else _number(digits)
    return pc.round(value, ndigits=places, round_mode="half_towards_infinity")


def _number(value: Values) -> int:
    if not isinstance(value, pa.Scalar) or not _is.is_integer(value.type):
        raise TypeError("it takes a whole number")
    return int(value.as_py())


def _case(*parts: Values) -> Values:
    *pairs, otherwise = parts
    found = otherwise
    for condition, value in reversed(list(zip(pairs[::2], pairs[1::2], strict=True))):
        found = pc.if_else(pc.fill_null(condition, False), value, found)
    return found


def _each(take: Callable[..., Values], join: Callable[..., Values]) -> Callable[..., Values]:
    return lambda *values: join(*map(take, values))


def _not(test: Callable[..., Values]) -> Callable[..., Values]:
    return lambda *values: pc.invert(test(*values))


_FUNCTIONS: Final[Mapping[str, Callable[..., Values]]] = {
    "and": lambda *parts: reduce(pc.and_kleene, parts),
    "or": lambda *parts: reduce(pc.or_kleene, parts),
    "not": pc.invert,
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "in": _among,
    "not in": _not(_among),
    "is null": pc.is_null,
    "is not null": pc.is_valid,
    "is nan": _nan,
    "is not nan": _not(_nan),
    "like": _like,
    "not like": _not(_like),
    "starts_with": _starts,
    "not starts_with": _not(_starts),
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "/": _divided,
    "%": _remainder,
    "negate": pc.negate_checked,
    "||": _joined,
    "case": _case,
    "abs": pc.abs_checked,
    "ceil": pc.ceil,
    "coalesce": pc.coalesce,
    "concat": _joined,
    "floor": pc.floor,
    "greatest": lambda *values: pc.max_element_wise(*values, skip_nulls=True),
    "least": lambda *values: pc.min_element_wise(*values, skip_nulls=True),
    "length": lambda value: pc.utf8_length(_only_text(value)),
    "lower": lambda value: pc.utf8_lower(_only_text(value)),
    "nullif": _nullif,
    "replace": lambda value, old, new: pc.replace_substring(
        _only_text(value), _constant_text(old), _constant_text(new)
    ),
    "round": _round,
    "substring": _substring,
    "trim": lambda value: pc.utf8_trim_whitespace(_only_text(value)),
    "upper": lambda value: pc.utf8_upper(_only_text(value)),
}
