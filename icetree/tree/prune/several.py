"""Predicates that together say a value of each column of an expression over several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from math import prod
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyiceberg.types import IcebergType, IntegerType

from icetree.codec.bucket import buckets
from icetree.spec.schema.shape import Shape
from icetree.tree.prune import literals
from icetree.tree.prune.predicates import Op, Test

#: The values that a column can have, by field id; None is null.
Pinned: TypeAlias = "Mapping[int, tuple[Any, ...]]"

#: Of more combinations, nearly every bucket has one.
_MOST: Final = 1000


def tests_of_several(pinned: Pinned, shape: Shape) -> tuple[Test, ...]:
    """Return what must hold for expressions all of whose columns have known values."""
    found = []
    for expression in shape.expressions.values():
        count, ids = expression.buckets, expression.source_ids
        if count is None or not pinned.keys() >= set(ids):
            continue
        if prod(len(pinned[id]) for id in ids) > _MOST:
            continue
        numbers = _buckets([pinned[id] for id in ids], [shape.types[id] for id in ids], count)
        if numbers is not None:
            found.append(
                Test(field_id=expression.expr_id, op=Op.IN, values=numbers, floating=False)
            )
    return tuple(found)


def _buckets(
    given: Iterable[tuple[Any, ...]], types: list[IcebergType], count: int
) -> pa.Array | None:
    """Return the buckets of all combinations; None where one is of nulls, and so in none."""
    rows = list(product(*given))
    if any(all(value is None for value in row) for row in rows):
        return None
    columns = []
    for values, type in zip(zip(*rows, strict=True), types, strict=True):
        distinct = sorted({value for value in values if value is not None})
        known = literals.array(distinct, type)
        if known is None:
            return None
        places = {value: at for at, value in enumerate(distinct)}
        taken = known.take(pa.array([places.get(value) for value in values], pa.int64()))
        columns.append((taken, type))
    return literals.array(set(buckets(columns, count).to_pylist()), IntegerType())
