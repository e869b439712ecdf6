"""Values and conditions as callers give them, bound to the columns that there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero

from icetree.errors import InvalidInput
from icetree.filters.expression import Column, Constant, Expression, columns_of
from icetree.filters.expression_parser import parse_expression
from icetree.rows.matching import evaluate
from icetree.rows.project import leaf_of
from icetree.spec.texts import did_you_mean

#: A column of a side, by the names of both.
Name: TypeAlias = tuple[str, str]
#: The columns of rows at hand.
Columns: TypeAlias = Mapping[Name, pa.Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The table, or a source beside it: what expressions call it, and its columns."""

    name: str
    schema: pa.Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A value or a condition that is bound."""

    #: The columns that it looks at.
    needs: frozenset[Name]
    values: Callable[[Columns, int], pa.Array]
    #: What it is for every row, where that is known.
    constant: Constant | None = None

    def holds(self, columns: Columns, size: int) -> pa.BooleanArray:
        """Tell of which rows it is true; never null."""
        return evaluate.truth(self.values(columns, size))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The sides that an expression may speak of."""

    sides: tuple[Side, ...]
    #: Sides that are there, but have no row where the expression applies.
    absent: tuple[Side, ...] = ()

    def term(self, given: Any) -> Term:
        """Return a text or an Arrow expression over columns, or any other value, bound."""
        if isinstance(given, pc.Expression):
            return self._of_arrow(given)
        found = parse_expression(given) if isinstance(given, str) else Constant(value=given)
        return self.bind(found)

    def condition(self, given: Any) -> Term:
        """Return a condition, bound."""
        if not isinstance(given, str | pc.Expression):
            raise InvalidInput(f"{given!r} is no condition: give text or an Arrow expression")
        return self.term(given)

    def bind(self, expression: Expression) -> Term:
        """Return an expression, bound; a column that there is not is `InvalidInput`."""
        places = {column: self._locate(column) for column in columns_of(expression)}

        def values(columns: Columns, size: int) -> pa.Array:
            def of(column: Column) -> pa.Array:
                name, path = places[column]
                return leaf_of(columns[name], path)

            return evaluate.evaluate(expression, of, size)

        return Term(
            needs=frozenset(name for name, _ in places.values()),
            values=values,
            constant=expression if isinstance(expression, Constant) else None,
        )

    def _locate(self, column: Column) -> tuple[Name, tuple[str, ...]]:
        first, *rest = column.names
        for side in self.sides:
            if side.name == first and rest:
                return self._within(side, rest, column)
        for side in self.absent:
            if side.name == first and rest:
                raise self._missing(column, side)
        having = [side for side in self.sides if first in side.schema.names]
        if len(having) > 1:
            either = " or ".join(f"{side.name}.{column}" for side in having)
            raise InvalidInput(f"both sides have a column {first!r}: say {either}")
        if not having:
            for side in self.absent:
                if first in side.schema.names:
                    raise self._missing(column, side)
            return self._within(self.sides[0], column.names, column)
        return self._within(having[0], column.names, column)

    def _missing(self, column: Column, side: Side) -> InvalidInput:
        use = " or ".join(each.name for each in self.sides)
        return InvalidInput(
            f"{column} is not known in a clause for rows that {side.name} lacks: "
            f"use columns of {use}"
        )

    def _within(
        self, side: Side, names: list[str] | tuple[str, ...], column: Column
    ) -> tuple[Name, tuple[str, ...]]:
        name, *path = names
        known = [each for one in self.sides for each in one.schema.names]
        if name not in side.schema.names:
            hint = did_you_mean(name, known)
            raise InvalidInput(
                f"there is no column {str(column)!r}: there are {', '.join(known)}{hint}"
            )
        type = side.schema.field(name).type
        for each in path:
            if not pa.types.is_struct(type) or type.get_field_index(each) < 0:
                raise InvalidInput(f"{column}: {type} has no field {each!r}")
            type = type.field(each).type
        return (side.name, name), tuple(path)

    def _of_arrow(self, expression: pc.Expression) -> Term:
        needs = [(side.name, name) for side in self.sides for name in side.schema.names]

        def values(columns: Columns, size: int) -> pa.Array:  # noqa: ARG001
            sides = {
                side.name: pa.StructArray.from_arrays(
                    [columns[side.name, name] for name in side.schema.names],
                    names=side.schema.names,
                )
                for side in self.sides
            }
            [first, *others] = sides.values()
            rows = pa.table(sides) if others else pa.Table.from_struct_array(first)
            return _worked_out(expression, rows)

        return Term(needs=frozenset(needs), values=values)


def _worked_out(expression: pc.Expression, rows: pa.Table) -> pa.Array:
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(rows))
    project = acero.Declaration("project", acero.ProjectNodeOptions([expression], ["it"]))
    try:
        found = acero.Declaration.from_sequence([source, project]).to_table(use_threads=False)
    except (pa.ArrowException, TypeError) as error:
        told = str(error).partition("\n")[0]
        raise InvalidInput(f"{expression} cannot be worked out: {told}") from None
    return found["it"].combine_chunks()
