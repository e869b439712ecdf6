"""How a table's rows are laid out: partition specs and sort orders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from icetree.spec.noun import Int, Noun
from icetree.spec.schema.expressions import Expression

#: Ids of partition fields start here, by Iceberg's convention.
FIRST_PARTITION_ID = 1000


class PartitionField(Noun, frozen=True, kw_only=True):
    """A field of a v1, v2 or v3 partition spec."""

    source_id: Int | None = None
    source_ids: tuple[Int, ...] | None = None
    field_id: Int
    name: str
    transform: str

    @property
    def sources(self) -> tuple[int, ...]:
        """The columns the transform takes, in order."""
        return sources_of(self.source_id, self.source_ids)


class ExprField(Noun, frozen=True, kw_only=True):
    """A field of a v4 partition spec: an expression of the table."""

    expr_id: Int


if TYPE_CHECKING:
    _Fields: TypeAlias = tuple[PartitionField, ...] | tuple[ExprField, ...]
else:
    # msgspec cannot tell the two apart; the codec does.
    _Fields = tuple


class PartitionSpec(Noun, frozen=True, kw_only=True):
    """How files are partitioned: expressions in v4, fields with transforms before."""

    spec_id: Int
    fields: _Fields

    @property
    def expr_ids(self) -> tuple[int, ...]:
        """The expressions of a v4 spec, in order."""
        return tuple(field.expr_id for field in self.fields if isinstance(field, ExprField))


class SortField(Noun, frozen=True, kw_only=True):
    """One key of a sort order, as metadata has it."""

    transform: str
    source_id: Int | None = None
    source_ids: tuple[Int, ...] | None = None
    direction: str
    null_order: str

    @property
    def sources(self) -> tuple[int, ...]:
        """The columns the transform takes, in order."""
        return sources_of(self.source_id, self.source_ids)


class SortOrder(Noun, frozen=True, kw_only=True):
    """How rows within a file are sorted; order 0 is unsorted."""

    order_id: Int
    fields: tuple[SortField, ...]


UNSORTED = SortOrder(order_id=0, fields=())
UNPARTITIONED = PartitionSpec(spec_id=0, fields=())


def sources_of(one: int | None, many: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the columns that a source-id or source-ids name: if there are both, the longer list."""
    return many or (() if one is None else (one,))


def sources_differ(one: int | None, many: tuple[int, ...] | None) -> bool:
    """Tell whether a source-id is another column than source-ids begin with."""
    return bool(many) and one is not None and many[:1] != (one,)  # type: ignore[index]


def expressions_for(
    specs: Iterable[PartitionSpec], last_column_id: int
) -> tuple[tuple[Expression, ...], tuple[PartitionSpec, ...], int]:
    """Return (expressions, the specs in terms of them, the last id given out).

    Fields are taken by spec id, then in order, and ids follow `last_column_id`, so the same
    specs always give the same ids. Fields that agree in sources, transform and partition field
    id share one expression, under the newest name. In a sound table the same transform of the
    same column always has the same field id; old v1 writers numbered each spec on its own, and
    there expressions stay apart, for old manifests name their values by field id.
    """
    expressions: dict[tuple[tuple[int, ...], str, int], Expression] = {}
    rewritten = []
    for spec in sorted(specs, key=lambda spec: spec.spec_id):
        fields = []
        for field in spec.fields:
            if isinstance(field, ExprField):
                fields.append(field)
                continue
            key = (field.sources, field.transform, field.field_id)
            if key in expressions:
                found = expressions[key]
                extra = found.extra.get("expr", {}) | field.extra
            else:
                last_column_id += 1
                extra = field.extra
                found = Expression(
                    expr_id=last_column_id,
                    source_ids=field.sources,
                    transform=field.transform,
                    name=field.name,
                    partition_field_id=field.field_id,
                )
            # What is not known of a field describes its transform: the inner object.
            kept = {"expr": extra} if extra else {}
            expressions[key] = replace(found, name=field.name, extra=kept)
            fields.append(ExprField(expr_id=found.expr_id))
        rewritten.append(
            PartitionSpec(spec_id=spec.spec_id, fields=tuple(fields), extra=spec.extra)
        )
    return tuple(expressions.values()), tuple(rewritten), last_column_id
