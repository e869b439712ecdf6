"""What one must know of a table to make sense of its entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
from pyiceberg.schema import Schema, index_by_id
from pyiceberg.types import IcebergType, LongType, NestedField

from icetree.errors import NotFound
from icetree.spec.fields import LAST_UPDATED_SEQUENCE_NUMBER_FIELD, ROW_ID_FIELD
from icetree.spec.schema.expressions import Expression, result_type
from icetree.spec.schema.types import bounds_type

_LINEAGE: dict[int, tuple[str, IcebergType]] = {
    ROW_ID_FIELD: ("_row_id", LongType()),
    LAST_UPDATED_SEQUENCE_NUMBER_FIELD: ("_last_updated_sequence_number", LongType()),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SortKey:
    """One key of a sort order."""

    source_id: int
    transform: str = "identity"
    descending: bool = False
    nulls_first: bool = True
    #: More columns, of a transform of several.
    others: tuple[int, ...] = ()

    @property
    def source_ids(self) -> tuple[int, ...]:
        """The columns that it is by."""
        return (self.source_id, *self.others)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A table's columns, expressions, specs and sort order, as of one schema."""

    schema: Schema
    expressions: Mapping[int, Expression] = field(default_factory=dict)
    #: Partition spec id -> ids of its expressions, in order. Spec 0 is unpartitioned by default.
    specs: Mapping[int, tuple[int, ...]] = field(default_factory=lambda: {0: ()})
    default_spec_id: int = 0
    sort_order: tuple[SortKey, ...] = ()
    sort_order_id: int = 0
    #: Columns of older schemas, which old specs and old files may still speak of.
    former: Mapping[int, NestedField] = field(default_factory=dict)
    #: Fields whose stats are written, in order; None for every column that has any.
    tracked: tuple[int, ...] | None = None

    @cached_property
    def columns(self) -> Mapping[int, NestedField]:
        """Every column that ever was, by id; the current schema wins."""
        return {**self.former, **index_by_id(self.schema)}

    @cached_property
    def types(self) -> Mapping[int, IcebergType]:
        """The Iceberg type of every column, expression and lineage field, by field id."""
        found = {id: column.field_type for id, column in self.columns.items()}
        for id, expression in self.expressions.items():
            source = found.get(expression.source_ids[0])
            result = result_type(expression, source) if source is not None else None
            if result is not None:
                found[id] = result
        return found | {id: type for id, (_, type) in _LINEAGE.items()}

    def bounds_type(self, field_id: int) -> pa.DataType | None:
        """Return the Arrow type of a field's bounds; None where it has none or is unknown."""
        type = self.types.get(field_id)
        return None if type is None else bounds_type(type)

    @cached_property
    def names(self) -> Mapping[int, str]:
        """The full name of every column, expression and lineage field, by field id.

        No two are alike, for files name stats by them: where a former column, an expression or a
        lineage field has the name of a column, its id is appended.
        """
        now = {id: self.schema.find_column_name(id) or str(id) for id in index_by_id(self.schema)}
        then = {id: column.name for id, column in self.former.items()}
        then |= {id: expression.name for id, expression in self.expressions.items()}
        then |= {id: name for id, (name, _) in _LINEAGE.items()}
        found = dict(now)
        taken = set(found.values())
        # Stats of an identity are those of its column, so its own name is never written.
        found |= {id: each.name for id, each in self.expressions.items() if each.is_identity}
        for id in sorted(then, reverse=True):
            if id not in found:
                found[id] = f"{then[id]}#{id}" if then[id] in taken else then[id]
                taken.add(found[id])
        return found

    @cached_property
    def meaning(self) -> str:
        """What entries read by this shape depend on, as text: equal where they read alike.

        A schema's id is not enough: before an upgrade the ids of expressions move when a column
        is added, columns of other schemas widen, and what nobody committed has no id of its own.
        """
        return repr((self.names, self.types, self.expressions, self.specs))

    def spec(self, spec_id: int) -> tuple[Expression, ...]:
        """Return the expressions of a partition spec, in order."""
        try:
            return tuple(self.expressions[id] for id in self.specs[spec_id])
        except KeyError as missing:
            raise NotFound(f"partition spec {spec_id}: {missing} is not in the metadata") from None

    def is_unpartitioned(self, spec_id: int) -> bool:
        """Tell whether the spec gives every file the same, empty partition."""
        return all(expression.transform == "void" for expression in self.spec(spec_id))

    def partition_fields(self, spec_id: int) -> tuple[int, ...]:
        """Return the field ids whose stats hold the partition tuple of the spec's files."""
        return tuple(e.stats_field for e in self.spec(spec_id) if e.transform != "void")

    def expressions_on(self, source_id: int) -> tuple[Expression, ...]:
        """Return the single-argument expressions over a column, identity left out."""
        return tuple(
            expression
            for expression in self.expressions.values()
            if expression.source_id == source_id and not expression.is_identity
        )
