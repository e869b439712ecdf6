"""A shape with several specs, to match deletes of one with files of another."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, IntegerType, LongType, NestedField, StringType

from icetree.spec.entry.stats import FieldStats
from icetree.spec.schema.expressions import Expression, transform_of
from icetree.spec.schema.shape import Shape
from icetree.tree.plan.deletes import Pairs

ID, P, Q, V = 1, 2, 3, 4


SHAPE = Shape(
    schema=Schema(
        NestedField(ID, "id", LongType()),
        NestedField(P, "p", IntegerType()),
        NestedField(Q, "q", StringType()),
        NestedField(V, "v", DoubleType()),
    ),
    expressions={
        id: Expression(expr_id=id, source_ids=(source,), transform=transform, name=f"e{id}")
        for id, source, transform in (
            (101, ID, "bucket[4]"),
            (102, P, "identity"),
            (103, Q, "truncate[1]"),
            (104, P, "void"),
            (105, V, "identity"),
            (106, P, "zorder"),
        )
    },
    specs={0: (), 1: (102,), 2: (101, 103), 3: (104,), 4: (105,), 5: (106,)},
)


POOL: dict[int, list[Any]] = {
    ID: [None, 1, 2, 3, 900],
    P: [None, 0, 1],
    Q: [None, "aa", "ab", "b", ""],
    V: [None, 0.5, math.nan, 2.0],
}


#: Columns that a spec's partition fixes.
FIXED = {0: (), 1: (P,), 2: (ID, Q), 3: (), 4: (V,)}


@dataclass(frozen=True, kw_only=True)
class File:
    """A data or delete file as the model sees it."""

    name: str
    spec: int
    age: int
    rows: list[dict[int, Any]]
    stats: dict[int, FieldStats]
    ids: tuple[int, ...] = ()
    target: str | None = None
    path_bounds: tuple[str, str] | None = None

    @property
    def partition(self) -> tuple[Any, ...]:
        values = []
        for id in SHAPE.partition_fields(self.spec):
            source = SHAPE.expressions[id].source_ids[0] if id in SHAPE.expressions else id
            value = self.rows[0][source]
            if id in SHAPE.expressions:
                value = transform_of(SHAPE.expressions[id]).transform(SHAPE.types[source])(value)
            values.append("nan" if value != value else value)
        return tuple(values)


def _stats(values: list[Any], floating: bool) -> FieldStats:
    real = [value for value in values if value is not None and value == value]
    return FieldStats(
        lower=min(real, default=None),
        upper=max(real, default=None),
        values=len(values),
        nulls=values.count(None),
        nans=sum(value is not None and value != value for value in values) if floating else None,
    )


@st.composite
def made(draw: st.DrawFn, name: str, *, delete: bool) -> File:
    spec = draw(st.sampled_from(list(FIXED)))
    size = draw(st.integers(1 if delete else 0, 3))
    first = {id: draw(st.sampled_from(pool)) for id, pool in POOL.items()}
    rows = [
        {
            id: first[id] if id in FIXED[spec] else draw(st.sampled_from(pool))
            for id, pool in POOL.items()
        }
        for _ in range(size)
    ]
    ids = draw(st.lists(st.sampled_from(list(POOL)), min_size=1, max_size=2, unique=True))
    stats = {}
    for id in ids if delete else POOL:
        known = _stats([row[id] for row in rows], id == V)
        if id not in SHAPE.partition_fields(spec):
            gone = draw(st.sets(st.sampled_from(["lower", "upper", "values", "nulls", "nans"])))
            known = replace(known, **dict.fromkeys(gone if draw(st.booleans()) else ()))
        stats[id] = known
    for id in SHAPE.partition_fields(spec):
        source = SHAPE.expressions[id].source_ids[0] if id in SHAPE.expressions else id
        apply = (
            transform_of(SHAPE.expressions[id]).transform(SHAPE.types[source])
            if id in SHAPE.expressions
            else lambda value: value
        )
        stats[id] = _stats([apply(row[source]) for row in rows], source == V)
    return File(
        name=name,
        spec=spec,
        age=draw(st.integers(1, 4)),
        rows=rows,
        stats=stats,
        ids=tuple(ids) if delete else (),
    )


def _named(pairs: Pairs) -> set[tuple[int, int]]:
    found = list(zip(pairs.files.tolist(), pairs.deletes.tolist(), strict=True))
    assert found == sorted(set(found))
    return set(found)
