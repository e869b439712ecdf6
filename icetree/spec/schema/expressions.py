"""Partition expressions: transforms of columns, in one id space with the columns."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from pyiceberg.exceptions import ValidationError
from pyiceberg.transforms import (
    IdentityTransform,
    Transform,
    UnknownTransform,
    VoidTransform,
    parse_transform,
)
from pyiceberg.types import IcebergType, IntegerType, StringType

#: Arguments of transforms are 32-bit numbers.
_MOST: Final = 2**31 - 1
_BUCKET: Final = re.compile(r"bucket\[(\d+)\]")


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
    def buckets(self) -> int | None:
        """How many buckets an expression over several columns has; None where it is none such."""
        found = _BUCKET.fullmatch(self.transform) if len(self.source_ids) > 1 else None
        return None if found is None else int(found[1])

    @property
    def is_unknown(self) -> bool:
        """Tell whether nobody here knows what the transform does: its values are kept as text."""
        return self.buckets is None and isinstance(transform_of(self), UnknownTransform)

    @property
    def stats_field(self) -> int:
        """The field id under which the expression's stats stand."""
        return self.source_ids[0] if self.is_identity else self.expr_id


@lru_cache(maxsize=256)
def is_malformed(transform: str) -> bool:
    """Tell whether a transform's text is none: one that is only unknown is all right."""
    try:
        parsed: Any = parse_transform(transform)
    except (ValidationError, ValueError):
        return True
    argument = getattr(parsed, "num_buckets", getattr(parsed, "width", 1))
    return not 0 < argument <= _MOST


def transform_of(expression: Expression) -> Transform[Any, Any]:
    """Return the transform's functions; those of several columns have none, as unknown ones."""
    if expression.source_id is None:
        return UnknownTransform(transform=expression.transform)
    parsed: Transform[Any, Any] = parse_transform(expression.transform)
    return parsed


def result_type(expression: Expression, source: IcebergType) -> IcebergType | None:
    """Return the type of the expression's values over a column of type `source`.

    None where it has no values (void), so that no stats are kept. What a transform that is not known
    gave is kept as text, which is equal where the values are.
    """
    if expression.buckets is not None:
        return IntegerType()
    transform = transform_of(expression)
    if isinstance(transform, IdentityTransform):
        return source
    if isinstance(transform, VoidTransform):
        return None
    if isinstance(transform, UnknownTransform):
        return StringType()
    return transform.result_type(source)
