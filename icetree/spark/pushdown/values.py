"""Columns and values of Spark's expressions, as ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import numpy as np
from pyiceberg import types as iceberg
from pyiceberg.expressions import literals as ice
from pyiceberg.expressions.literals import Literal
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform

from icetree.codec.variant.paths import read_path
from icetree.codec.variant.read import Path
from icetree.errors import InvalidInput
from icetree.spec.schema.types import VariantType, has_nans
from icetree.tree.prune import literals
from icetree.tree.prune.literals import Fit
from icetree.tree.prune.predicates import Extracted, Transformed

_EPOCH: Final = date(1970, 1, 1).toordinal()
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")


_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
#: Types of which Spark has another.
_OTHERWISE: Final = (iceberg.UUIDType, iceberg.TimestampNanoType, iceberg.TimestamptzNanoType)
#: Types that Spark takes out of variants as it finds them, so that order stays.
_EXTRACTED: Final[Mapping[str, iceberg.IcebergType]] = {
    "integer": iceberg.IntegerType(),
    "long": iceberg.LongType(),
    "double": iceberg.DoubleType(),
    "string": iceberg.StringType(),
    "date": iceberg.DateType(),
    "timestamp": iceberg.TimestamptzType(),
    "timestamp_ntz": iceberg.TimestampType(),
}


class Unsaid(Exception):
    """A part of a condition that our filters cannot say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A column, or a field within one."""

    path: tuple[str, ...]
    #: Spark's type of the values, as in its JSON.
    type: Any
    #: The partition transform of it that is meant, such as `bucket[16]`; none for its own values.
    transform: str | None = None
    #: Where a variant was looked into, and its type is that of what is there.
    within: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A literal; None as its text is null."""

    text: str | None
    type: Any
    #: Gives Spark's own value, where its text does not tell.
    value: Callable[[], Any]


def column_of(field: Field, schema: Schema) -> iceberg.NestedField:
    """Return the table's field; names are as Spark resolved them, in any case."""
    fields: Sequence[iceberg.NestedField] = schema.fields
    found = None
    for name in field.path:
        found = _named(name, fields)
        inner = found.field_type
        fields = inner.fields if isinstance(inner, iceberg.StructType) else ()
    assert found is not None
    return found


def term_of(field: Field, schema: Schema) -> str | Transformed | Extracted:
    """Return a field, or a transform of it, whose values compare in Spark as they do here."""
    column = column_of(field, schema)
    name = schema.find_column_name(column.field_id)
    # Not so structs and lists, nor text with a collation.
    if name is None or not isinstance(field.type, str) or "collate" in field.type:
        raise Unsaid
    if field.within is not None and field.transform is not None:
        raise Unsaid
    if field.within is not None:
        return Extracted(name, _path(field.within), type_of(field, schema))
    if field.transform is None:
        return name
    transform = parse_transform(field.transform)
    # A UUID is text to Spark and a nanosecond a number, of which the format knows nothing.
    if isinstance(column.field_type, _OTHERWISE) or not transform.can_transform(column.field_type):
        raise Unsaid
    return Transformed(transform, name)


def type_of(field: Field, schema: Schema) -> iceberg.IcebergType:
    """Return the type of a field's values, or of what a transform makes of them."""
    type = column_of(field, schema).field_type
    if field.within is not None:
        return _extracted_type(type, field.type)
    if field.transform is None:
        return type
    return parse_transform(field.transform).result_type(type)


def _extracted_type(column: iceberg.IcebergType, type: Any) -> iceberg.IcebergType:
    """Return the type of what is taken out of a variant, as Spark calls it."""
    decimal = _DECIMAL.fullmatch(type) if isinstance(type, str) else None
    if not isinstance(column, VariantType) or (decimal is None and type not in _EXTRACTED):
        raise Unsaid
    return iceberg.DecimalType(*map(int, decimal.groups())) if decimal else _EXTRACTED[type]


def _path(text: str) -> Path:
    try:
        return read_path(text)
    except InvalidInput:
        raise Unsaid from None


def literal_of(constant: Constant, field: Field, schema: Schema) -> Literal[Any] | None:
    """Return a value as a literal that is exactly one of the column's; None for NaN."""
    if constant.type != field.type:
        raise Unsaid
    type = type_of(field, schema)
    make = _LITERALS.get(type.__class__)
    if make is None or constant.text is None:
        raise Unsaid
    if constant.text == "NaN" and has_nans(type):
        return None
    literal = make(constant.text, constant)
    try:
        _, fit = literals.fit(literal, type, field.path[-1])
    except InvalidInput:
        raise Unsaid from None
    if fit is not Fit.EXACT:
        raise Unsaid
    return literal


def day_of(days: str) -> str:
    """Return a date given as days, which is how Spark holds it, as text."""
    try:
        return date.fromordinal(int(days) + _EPOCH).isoformat()
    except (ValueError, OverflowError):
        raise Unsaid from None


def _named(name: str, fields: Sequence[iceberg.NestedField]) -> iceberg.NestedField:
    for found in (
        [field for field in fields if field.name == name],
        [field for field in fields if field.name.lower() == name.lower()],
    ):
        if len(found) == 1:
            return found[0]
    raise Unsaid


def _date(text: str, _: Constant) -> Literal[Any]:
    if not _DAY.fullmatch(text) or text.startswith("0000"):
        raise Unsaid
    return ice.DateLiteral(date.fromisoformat(text).toordinal() - _EPOCH)


def _timestamp(_: str, constant: Constant) -> Literal[Any]:
    # As text it is in the session's zone, in which an hour may come twice a year.
    return ice.TimestampLiteral(int(constant.value()))


def _uuid(text: str, _: Constant) -> Literal[Any]:
    try:
        canonical = str(UUID(text))
    except ValueError:
        raise Unsaid from None
    # Spark compares text, so what is spelt otherwise equals none.
    if canonical != text:
        raise Unsaid
    return ice.StringLiteral(text)


def _binary(_: str, constant: Constant) -> Literal[Any]:
    return ice.BinaryLiteral(bytes(constant.value()))


_LITERALS: Final[Mapping[type[iceberg.IcebergType], Callable[[str, Constant], Literal[Any]]]] = {
    iceberg.BooleanType: lambda text, _: ice.BooleanLiteral(text == "true"),
    iceberg.IntegerType: lambda text, _: ice.LongLiteral(int(text)),
    iceberg.LongType: lambda text, _: ice.LongLiteral(int(text)),
    iceberg.FloatType: lambda text, _: ice.DoubleLiteral(float(np.float32(text))),
    iceberg.DoubleType: lambda text, _: ice.DoubleLiteral(float(text)),
    iceberg.DecimalType: lambda text, _: ice.DecimalLiteral(Decimal(text)),
    iceberg.DateType: _date,
    iceberg.TimestampType: _timestamp,
    iceberg.TimestamptzType: _timestamp,
    # To Spark they are numbers of nanoseconds.
    iceberg.TimestampNanoType: lambda text, _: ice.LongLiteral(int(text)),
    iceberg.TimestamptzNanoType: lambda text, _: ice.LongLiteral(int(text)),
    iceberg.StringType: lambda text, _: ice.StringLiteral(text),
    iceberg.UUIDType: _uuid,
    iceberg.BinaryType: _binary,
    iceberg.FixedType: _binary,
}
