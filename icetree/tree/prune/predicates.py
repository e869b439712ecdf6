"""Predicates as tests of stats columns, and the one term that PyIceberg has no class for.

Rows are judged as Iceberg judges them: a null or NaN satisfies no comparison, both satisfy
`!=`, `not in` and `not starts with`, and a `not` is first pushed down to the comparisons. SQL
engines agree except that a null satisfies nothing but `is null`; `prune` is safe either way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyiceberg import expressions as ice
from pyiceberg.schema import Schema
from pyiceberg.transforms import BoundTransform, Transform, parse_transform
from pyiceberg.typedef import StructProtocol
from pyiceberg.types import IcebergType

from icetree.codec.variant.paths import normalized
from icetree.codec.variant.read import Path
from icetree.errors import InvalidInput
from icetree.spec.entry.stats import column
from icetree.spec.geo import Box
from icetree.spec.texts import did_you_mean


class Op(Enum):
    """What a test asks of a column's values."""

    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    EQ = "="
    NE = "!="
    IN = "in"
    NOT_IN = "not in"
    STARTS = "starts with"
    NOT_STARTS = "not starts with"
    IS_NULL = "is null"
    NOT_NULL = "is not null"
    IS_NAN = "is nan"
    NOT_NAN = "is not nan"


UNARY: Final = frozenset({Op.IS_NULL, Op.NOT_NULL, Op.IS_NAN, Op.NOT_NAN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """What variants hold at a path, as values of a type."""

    #: Normalized, as bounds have it.
    path: str
    type: IcebergType


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """One question about the values of one field, answerable from its stats."""

    __test__ = False  # not a test case of pytest's

    field_id: int
    op: Op
    #: The literals, ascending, of the field's bounds type; empty for a unary test.
    values: pa.Array
    #: Whether the field's values can be NaN.
    floating: bool
    #: The test tells nothing where a value may satisfy one of these, comparisons of the same field.
    unless: tuple[Test, ...] = ()
    #: Of a variant: which of its fields is asked about.
    within: Within | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The stats columns that answer it."""
        bounds = () if self.op in UNARY else ("lower", "upper")
        nans = ("nans",) if self.floating else ()
        return tuple(column(self.field_id, stat) for stat in (*bounds, "values", "nulls", *nans))


@dataclass(frozen=True, slots=True, kw_only=True)
class Atom:
    """A predicate on one column, as tests of the column and of the expressions over it.

    No row satisfies it where any test of `may` is satisfied by no row; every row satisfies it
    where any test of `must` is satisfied by every row.
    """

    may: tuple[Test, ...]
    must: tuple[Test, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """True or false whatever the row."""

    value: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """All parts hold."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Some:
    """At least one part holds."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The box of a field's value and another share a place."""

    field_id: int
    box: Box
    #: Whether boxes are on the earth, where they may cross the antimeridian.
    earth: bool
    #: Whether it holds where they do not.
    negated: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The stats columns that answer it."""
        return tuple(column(self.field_id, stat) for stat in ("lower", "upper", "values", "nulls"))


Node: TypeAlias = Atom | Placed | Fixed | Every | Some


@dataclass(frozen=True, slots=True, kw_only=True)
class Conjunct:
    """One of the parts that a row must all satisfy: as the caller wrote it, and bound."""

    expression: ice.BooleanExpression
    node: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """A bound predicate: all its conjuncts hold. None at all is always true."""

    conjuncts: tuple[Conjunct, ...] = ()
    columns: frozenset[str] = field(default_factory=frozenset)


def operands(
    expression: ice.BooleanExpression, kind: type[ice.And | ice.Or]
) -> Iterator[ice.BooleanExpression]:
    """Yield the operands of nested ands (or ors), left to right, however deep they nest."""
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        if isinstance(part, kind):
            waiting += [part.right, part.left]
        else:
            yield part


class Transformed(ice.UnboundTerm):
    """A transform of a column as the left side of a predicate: `bucket[16](id) = 3`."""

    def __init__(self, transform: Transform[Any, Any] | str, name: str) -> None:
        self.transform: Transform[Any, Any] = parse_transform(transform)
        self.name = name

    def bind(self, schema: Schema, case_sensitive: bool = True) -> BoundTransform:
        """Return the term bound to the schema's column."""
        return BoundTransformed(
            ice.Reference(self.name).bind(schema, case_sensitive), self.transform
        )

    @property
    def as_bound(self) -> type[BoundTransform]:
        """The class of the bound term."""
        return BoundTransformed

    def __repr__(self) -> str:
        return f"Transformed({self.transform}, {self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transformed) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class Extracted(ice.UnboundTerm):
    """What a variant holds at a path, as a value of a type: `variant_get(v, '$.a', 'long') > 3`.

    It is null where there is nothing at the path, or something that is no value of the type.
    """

    def __init__(self, name: str, path: Path, type: IcebergType) -> None:
        self.name = name
        self.path = path
        self.type = type

    def bind(self, schema: Schema, case_sensitive: bool = True) -> BoundExtracted:
        """Return the term bound to the schema's column."""
        column = ice.Reference(self.name).bind(schema, case_sensitive)
        return BoundExtracted(column, self.path, self.type)

    @property
    def as_bound(self) -> type[ice.BoundTerm]:
        """The class of the bound term."""
        return BoundExtracted

    def __repr__(self) -> str:
        return f"variant_get({self.name}, {normalized(self.path)!r}, {str(self.type)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Extracted) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class BoundExtracted(ice.BoundTerm):
    """An extracted value whose column is known."""

    def __init__(self, column: ice.BoundReference, path: Path, type: IcebergType) -> None:
        self.column = column
        self.path = path
        self.type = type

    def ref(self) -> ice.BoundReference:
        """Return the column."""
        return self.column

    def eval(self, struct: StructProtocol) -> Any:  # noqa: ARG002
        """There is none: rows are looked at a column at a time."""
        raise TypeError("variants are looked into a column at a time")


class Unsure(ice.UnboundPredicate):
    """A predicate that someone else judges rows by: it rules no file out and vouches for none."""

    def __init__(self) -> None:
        super().__init__(ice.Reference("unsure"))

    @property
    def as_bound(self) -> type[ice.BoundPredicate]:
        """There is none: it names no column."""
        raise TypeError("nobody can bind what is left to another's judgement")

    def bind(self, schema: Schema, case_sensitive: bool = True) -> ice.BooleanExpression:  # noqa: ARG002
        """Return itself."""
        return self

    def __invert__(self) -> Unsure:
        return self

    def __repr__(self) -> str:
        return "Unsure()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unsure)

    def __hash__(self) -> int:
        return hash(Unsure)


class Intersects(ice.UnboundPredicate):
    """The box around a geometry and another share a place: `st_intersects(g, box(0, 0, 1, 1))`.

    What is null or no geometry neither does nor does not; an empty one does not.
    """

    box: Box
    negated: bool

    def __init__(self, name: str, box: Box, *, negated: bool = False) -> None:
        super().__init__(ice.Reference(name), box=box, negated=negated)

    @property
    def name(self) -> str:
        """The column."""
        assert isinstance(self.term, ice.Reference)
        return self.term.name

    @property
    def as_bound(self) -> type[ice.BoundPredicate]:
        """There is none: PyIceberg knows of no boxes."""
        raise TypeError("a box is bound here alone")

    def bind(self, schema: Schema, case_sensitive: bool = True) -> ice.BooleanExpression:  # noqa: ARG002
        """Return itself."""
        return self

    def __invert__(self) -> Intersects:
        return Intersects(self.name, self.box, negated=not self.negated)

    def __repr__(self) -> str:
        return f"{'Not' if self.negated else ''}Intersects({self.name!r}, {self.box})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Intersects) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def no_column(term: ice.UnboundTerm, schema: Schema) -> InvalidInput:
    """Return the refusal of a term that names no column which filters can look at."""
    name = getattr(term, "name", repr(term))
    if name in schema.column_names:
        return InvalidInput(f"{name!r} is within a list or map, which filters cannot look into")
    known = ", ".join(schema.column_names)
    return InvalidInput(
        f"no column {name!r} to filter on; there are: {known}{did_you_mean(name, schema.column_names)}"
    )


class BoundTransformed(BoundTransform):
    """PyIceberg's term lacks these two, without which it cannot be made."""

    def ref(self) -> ice.BoundReference:
        return self.term.ref()

    def eval(self, struct: StructProtocol) -> Any:
        source = self.ref()
        return self.transform.transform(source.field.field_type)(source.eval(struct))
