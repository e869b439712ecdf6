"""What is known of the rows for which a predicate of Spark's is true, or false.

Each answer is a filter that keeps at least those rows. Spark has a NaN equal to itself and above
all numbers, where our filters have it in no comparison but `!=`. A predicate that is null is
neither true nor false.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pyiceberg import expressions as ice
from pyiceberg.schema import Schema
from pyiceberg.types import StringType, UUIDType

from icetree.spark.pushdown.values import (
    Constant,
    Field,
    Unsaid,
    column_of,
    literal_of,
    term_of,
    type_of,
)
from icetree.spec.geo import Box
from icetree.spec.schema.types import has_nans
from icetree.tree.prune.predicates import Extracted, Intersects, Transformed

#: What a comparison is with its sides swapped, and what it is where it does not hold.
SWAPPED: Final = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_NEGATED: Final = {"=": "!=", "!=": "=", "<": ">=", ">": "<=", "<=": ">", ">=": "<"}

_MAKE: Final[Mapping[str, Any]] = {
    "=": ice.EqualTo,
    "!=": ice.NotEqualTo,
    "<": ice.LessThan,
    "<=": ice.LessThanOrEqual,
    ">": ice.GreaterThan,
    ">=": ice.GreaterThanOrEqual,
    "in": ice.In,
    "not in": ice.NotIn,
    "starts": ice.StartsWith,
    "not starts": ice.NotStartsWith,
    "null": ice.IsNull,
    "not null": ice.NotNull,
    "nan": ice.IsNaN,
    "not nan": ice.NotNaN,
}

_TRUE: Final = ice.AlwaysTrue()
_FALSE: Final = ice.AlwaysFalse()


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Several parts of which all, or any, hold; flat, however deep the condition nests."""

    kind: type[Any]
    parts: tuple[Part, ...]


Part: TypeAlias = "ice.BooleanExpression | Joined"


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """Filters: one for the rows where a predicate is true, one for those where it is false."""

    true: Part
    false: Part

    def negated(self) -> Truth:
        """Return the truth of the opposite."""
        return Truth(true=self.false, false=self.true)


UNKNOWN: Final = Truth(true=_TRUE, false=_TRUE)
NEVER: Final = Truth(true=_FALSE, false=_FALSE)


def both(left: Truth, right: Truth) -> Truth:
    """Return the truth of a conjunction."""
    return Truth(
        true=_joined(ice.And, left.true, right.true),
        false=_joined(ice.Or, left.false, right.false),
    )


def either(left: Truth, right: Truth) -> Truth:
    """Return the truth of a disjunction."""
    return both(left.negated(), right.negated()).negated()


def constant_truth(constant: Constant) -> Truth:
    """Return the truth of a literal."""
    if constant.text is None:
        return NEVER
    always = Truth(true=_TRUE, false=_FALSE)
    return always if constant.text == "true" else always.negated()


def flag(field: Field, schema: Schema) -> Truth:
    """Return the truth of a boolean column by itself."""
    name = term_of(field, schema)
    return Truth(true=_made("=", name, True), false=_made("=", name, False))


def is_null(field: Field, schema: Schema) -> Truth:
    """Return the truth of `IS NULL`."""
    name = term_of(field, schema)
    return Truth(true=_made("null", name), false=_made("not null", name))


def is_not_a_number(field: Field, schema: Schema) -> Truth:
    """Return the truth of `isnan`, which is false for a null."""
    name = term_of(field, schema)
    return Truth(true=_made("nan", name), false=_made("not nan", name))


def compared(field: Field, op: str, constant: Constant, schema: Schema) -> Truth:
    """Return the truth of a comparison; with a null it is never true nor false."""
    if constant.text is None:
        return NEVER
    return Truth(
        true=_comparison(field, op, constant, schema),
        false=_comparison(field, _NEGATED[op], constant, schema),
    )


def same(field: Field, constant: Constant, schema: Schema) -> Truth:
    """Return the truth of `<=>`, which knows of nulls."""
    null = is_null(field, schema)
    if constant.text is None:
        return null
    equal = compared(field, "=", constant, schema)
    return Truth(true=equal.true, false=_joined(ice.Or, equal.false, null.true))


def starts(field: Field, constant: Constant, schema: Schema) -> Truth:
    """Return the truth of `LIKE 'x%'`."""
    if constant.text is None:
        return NEVER
    name = term_of(field, schema)
    if field.transform is not None or not isinstance(type_of(field, schema), StringType):
        raise Unsaid
    prefix = literal_of(constant, field, schema)
    if prefix is None or not prefix.value:
        return Truth(true=_made("not null", name), false=_FALSE)
    return Truth(true=_made("starts", name, prefix), false=_made("not starts", name, prefix))


def in_box(field: Field, box: Box, schema: Schema) -> Truth:
    """Return the truth of `st_intersects`."""
    name = schema.find_column_name(column_of(field, schema).field_id)
    if name is None:
        raise Unsaid
    inside = Intersects(name, box)
    return Truth(true=inside, false=~inside)


def among(field: Field, members: Iterable[Constant], schema: Schema) -> Truth:
    """Return the truth of `IN`."""
    name = term_of(field, schema)
    members = list(members)
    found = [literal_of(each, field, schema) for each in members if each.text is not None]
    listed = {literal for literal in found if literal is not None}
    inside: Part = _made("in", name, listed) if listed else _FALSE
    if None in found:
        inside = _joined(ice.Or, inside, _made("nan", name))
    if len(found) < len(members):
        # What is not in the list may still be the null.
        return Truth(true=inside, false=_FALSE)
    floating = has_nans(type_of(field, schema))
    # Whether the two zeros are one depends on how long Spark finds the list.
    outside = _made("not in", name, listed) if listed and not floating else _made("not null", name)
    return Truth(true=inside, false=outside)


def built(part: Part) -> ice.BooleanExpression:
    """Return a filter that is done."""
    if not isinstance(part, Joined):
        return part
    make: Any = part.kind
    made: ice.BooleanExpression = make(*(built(each) for each in part.parts))
    return made


def _comparison(field: Field, op: str, constant: Constant, schema: Schema) -> Part:
    """Return where a comparison holds; nowhere that the column is null."""
    name, literal = term_of(field, schema), literal_of(constant, field, schema)
    type = type_of(field, schema)
    if isinstance(type, UUIDType) and op not in ("=", "!="):
        raise Unsaid
    if literal is None:
        return _beside_nan(op, name)
    found = _made(op, name, literal)
    nan_too = op in (">", ">=") and has_nans(type)
    return _joined(ice.Or, found, _made("nan", name)) if nan_too else found


def _beside_nan(op: str, name: str | Transformed | Extracted) -> Part:
    if op in ("=", ">="):
        return _made("nan", name)
    if op == ">":
        return _FALSE
    if op == "<=":
        return _made("not null", name)
    return _joined(ice.And, _made("not nan", name), _made("not null", name))


def _made(kind: str, *args: object) -> ice.BooleanExpression:
    made: ice.BooleanExpression = _MAKE[kind](*args)
    return made


def _joined(kind: type[Any], *given: Part) -> Part:
    settled, idle = (_FALSE, _TRUE) if kind is ice.And else (_TRUE, _FALSE)
    parts: list[Part] = []
    for part in given:
        if part == settled:
            return settled
        if isinstance(part, Joined) and part.kind is kind:
            parts += part.parts
        elif part != idle:
            parts.append(part)
    if len(parts) < 2:
        return parts[0] if parts else idle
    return Joined(kind=kind, parts=tuple(parts))
