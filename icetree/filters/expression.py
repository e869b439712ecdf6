"""Expressions over columns: what a value or a condition is made of, before any row is there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyiceberg.types import IcebergType


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column, or a field inside one, by the names down to it."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A value that is the same for every row."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """A value as another type has it."""

    value: Expression
    type: IcebergType


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """An operator or a function, by its name, and what it is applied to."""

    function: str
    arguments: tuple[Expression, ...]


Expression: TypeAlias = "Column | Constant | Cast | Call"

#: What is true of the same values when a comparison is not, NaNs and nulls aside.
_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_OPPOSITE |= {"is null": "is not null", "is not null": "is null"}
_OPPOSITE |= {"is nan": "is not nan", "is not nan": "is nan"}
_OPPOSITE |= {"in": "not in", "not in": "in", "like": "not like", "not like": "like"}
_OPPOSITE |= {"starts_with": "not starts_with", "not starts_with": "starts_with"}


def negated(expression: Expression) -> Expression:
    """Return the opposite, with `not` moved to the comparisons, as filters have it."""
    match expression:
        case Call(function="and" | "or" as word, arguments=parts):
            other = "or" if word == "and" else "and"
            return Call(function=other, arguments=tuple(map(negated, parts)))
        case Call(function="not", arguments=(inner,)):
            return inner
        case Call(function=name, arguments=parts) if name in _OPPOSITE:
            return Call(function=_OPPOSITE[name], arguments=parts)
    return Call(function="not", arguments=(expression,))


def conjuncts(expression: Expression) -> Iterator[Expression]:
    """Yield the conditions that must all hold."""
    match expression:
        case Call(function="and", arguments=parts):
            for part in parts:
                yield from conjuncts(part)
        case _:
            yield expression


def columns_of(expression: Expression) -> Iterator[Column]:
    """Yield the columns that an expression looks at."""
    match expression:
        case Column():
            yield expression
        case Cast(value=inner):
            yield from columns_of(inner)
        case Call(arguments=parts):
            for part in parts:
                yield from columns_of(part)
