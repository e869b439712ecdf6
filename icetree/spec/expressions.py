"""Partition expressions: transforms of columns, in one id space with the columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyiceberg.transforms import (
    IdentityTransform,
    Transform,
    UnknownTransform,
    VoidTransform,
    parse_transform,
)
from pyiceberg.types import IcebergType


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A transform over one or more columns, with stats of its own under `expr_id`."""

    expr_id: int
    source_ids: tuple[int, ...]
    transform: str
    name: str
    partition_field_id: int | None = None
    #: JSON fields this version does not know: kept, written back.
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def source_id(self) -> int | None:
        """The one column of a single-argument expression, else None."""
        return self.source_ids[0] if len(self.source_ids) == 1 else None

    @property
    def is_identity(self) -> bool:
        """Identity expressions have no stats of their own: they are those of their column."""
        return self.source_id is not None and self.transform == "identity"

    @property
    def stats_field(self) -> int:
        """The field id under which the expression's stats stand."""
        return self.source_ids[0] if self.is_identity else self.expr_id


def transform_of(expression: Expression) -> Transform[Any, Any]:
    """Return the transform's functions; unknown or multi-argument ones prune nothing."""
    if expression.source_id is None:
        return UnknownTransform(transform=expression.transform)
    parsed: Transform[Any, Any] = parse_transform(expression.transform)
    return parsed


def result_type(expression: Expression, source: IcebergType) -> IcebergType | None:
    """Return the type of the expression's values over a column of type `source`.

    None where it is not known or has no values (void), so that no stats are kept.
    """
    transform = transform_of(expression)
    if isinstance(transform, IdentityTransform):
        return source
    if isinstance(transform, UnknownTransform | VoidTransform):
        return None
    return transform.result_type(source)
