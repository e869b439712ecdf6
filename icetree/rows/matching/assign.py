"""New values for columns: fitted to the column's type without loss, put where they belong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, time
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, NestedField, StructType

from icetree.errors import InvalidInput
from icetree.filters.expression import Constant
from icetree.rows.matching.evaluate import constant, repeated
from icetree.rows.matching.terms import Columns, Scope, Term
from icetree.rows.schema import arrow_type, null_array
from icetree.spec.texts import did_you_mean, text

_is = pa.types


class Assignment:
    """What to set to what; columns may be named down to a field inside a struct."""

    def __init__(
        self, given: Mapping[str, Any], schema: Schema, scope: Scope, *, table: str
    ) -> None:
        if not isinstance(given, Mapping):
            raise InvalidInput(f"set={given!r}: give a mapping of columns to what they become")
        self._table = table
        #: A column -> what is set in it: where, of which type, to what.
        self._set: dict[str, list[tuple[tuple[str, ...], IcebergType, Term]]] = {}
        for name, value in given.items():
            text(name, what="set")
            column, path, type = _place(name, schema, table)
            before = self._set.setdefault(column.name, [])
            for other, _, _ in before:
                if other[: len(path)] == path or path[: len(other)] == other:
                    raise InvalidInput(f"table {table}: {name} is set twice")
            before.append((path, type, scope.term(value)))

    @property
    def whole(self) -> frozenset[str]:
        """The columns of which nothing old is left."""
        return frozenset(name for name, parts in self._set.items() if parts[0][0] == ())

    @property
    def terms(self) -> list[Term]:
        """What columns are set to."""
        return [term for parts in self._set.values() for _, _, term in parts]

    def values(
        self, columns: Columns, old: Mapping[str, pa.Array], size: int
    ) -> dict[str, pa.Array]:
        """Return the new values by column; `old` has those that are set in part."""
        made = {}
        for name, parts in self._set.items():
            array = old.get(name)
            for path, type, term in parts:
                where = ".".join((name, *path))
                new = self._fitted(term.values(columns, size), type, term.constant, where)
                array = new if array is None or not path else with_field(array, path, new)
            made[name] = array
        return made

    def _fitted(
        self, values: pa.Array, type: IcebergType, literal: Constant | None, where: str
    ) -> pa.Array:
        if literal is not None:
            one = self._literal(literal.value, type, where)
            if one is not None:
                return repeated(one, len(values))
        if _is.is_null(values.type):
            return null_array(type, len(values))
        want = arrow_type(type)
        if not (_is_exact(values.type) and (_is_exact(want) or _is.is_floating(want))):
            return values  # what else fits is told when it is written
        try:
            if literal is not None:
                # Also where there is no row yet.
                return repeated(constant(literal.value).cast(want), len(values))
            return values.cast(want)
        except pa.ArrowException as error:
            raise self._misfit(where, type, str(error).partition("\n")[0]) from None

    def _literal(self, value: Any, type: IcebergType, where: str) -> pa.Scalar | None:
        """Return a literal as a value of the column; None where it must fit as it is."""
        want = arrow_type(type)
        try:
            if isinstance(value, dict | list | tuple):
                return pa.scalar(value, want)
            if isinstance(value, UUID) and isinstance(want, pa.BaseExtensionType):
                return pa.scalar(value.bytes, want)
            if isinstance(value, str) and _is.is_temporal(want):
                return _from_text(value, want)
            if isinstance(value, float) and _is.is_floating(want):
                return pa.scalar(value, want)
            if isinstance(value, bytes) and (_is.is_binary(want) or _is.is_fixed_size_binary(want)):
                return pa.scalar(value, want)
            if isinstance(value, datetime) and _is.is_timestamp(want):
                if (value.tzinfo is None) != (want.tz is None):
                    return None
                return constant(value).cast(want)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise self._misfit(where, type, str(error).partition("\n")[0]) from None
        return None

    def _misfit(self, where: str, type: IcebergType, told: str) -> InvalidInput:
        return InvalidInput(
            f"table {self._table}: not every new value of {where} is {type}: {told}"
        )


class AllColumns:
    """Every column set to the source's of the same name."""

    def __init__(self, names: Sequence[str]) -> None:
        self.whole = frozenset(names)
        self.terms: list[Term] = []

    def values(
        self,
        columns: Columns,
        old: Mapping[str, pa.Array],  # noqa: ARG002
        size: int,  # noqa: ARG002
    ) -> dict[str, pa.Array]:
        """Return the new values by column."""
        return {name: values for (side, name), values in columns.items() if self._is(side, name)}

    def _is(self, side: str, name: str) -> bool:
        return side == "source" and name in self.whole


def _from_text(value: str, want: pa.DataType) -> pa.Scalar:
    if _is.is_time(want):
        return pa.scalar(time.fromisoformat(value), want)
    return pa.scalar(value).cast(want)


def _is_exact(type: pa.DataType) -> bool:
    return bool(_is.is_integer(type) or _is.is_decimal(type))


def _place(
    name: str, schema: Schema, table: str
) -> tuple[NestedField, tuple[str, ...], IcebergType]:
    """Return the column that a name begins with, the way down from it, and the type there."""
    known = [field.name for field in schema.fields]
    for column in schema.fields:
        if column.name == name:
            return column, (), column.field_type
    for column in schema.fields:
        if name.startswith(f"{column.name}."):
            path, type = [], column.field_type
            rest = name[len(column.name) + 1 :]
            while rest and isinstance(type, StructType):
                field = next(
                    (f for f in type.fields if rest == f.name or rest.startswith(f"{f.name}.")),
                    None,
                )
                if field is None:
                    break
                path.append(field.name)
                rest, type = rest[len(field.name) + 1 :], field.field_type
            if not rest:
                return column, tuple(path), type
    raise InvalidInput(
        f"table {table} has no column {name!r} to set; there are: {', '.join(known)}"
        f"{did_you_mean(name, known)}"
    )


def with_field(array: pa.StructArray, path: tuple[str, ...], values: pa.Array) -> pa.StructArray:
    """Return structs with a field set; where one was null, it is made."""
    at = array.type.get_field_index(path[0])
    members = [pc.struct_field(array, number) for number in range(array.type.num_fields)]
    members[at] = values if len(path) == 1 else with_field(members[at], path[1:], values)
    names = [field.name for field in array.type]
    return pa.StructArray.from_arrays(members, names=names)
