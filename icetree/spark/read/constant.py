"""Columns with one value in each file: identity partitions, whose values the tree tells.

Spark takes them for partition columns of its own. It does not read them from files, and in a join
with few rows of another table it leaves out, by itself, the files that have none of their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa
from pyiceberg.types import NestedField

from icetree.errors import CorruptTable
from icetree.rows.read.partition_values import stat_values
from icetree.spark.pushdown.exact import COMPARED_ALIKE
from icetree.spec.entry.entry import Entries
from icetree.spec.schema.shape import Shape
from icetree.tree.partitions import spans


def constant_fields(
    fields: Iterable[NestedField], shape: Shape, live: Callable[[], frozenset[int]]
) -> list[NestedField]:
    """Return the columns that every file is partitioned by as they are.

    `live` tells the specs that files have. It is asked only where the table has had a spec without
    one of these columns, and has one with it.
    """
    able = [each for each in fields if isinstance(each.field_type, COMPARED_ALIKE)]
    by = {
        spec_id: {
            shape.expressions[id].source_ids[0] for id in ids if shape.expressions[id].is_identity
        }
        for spec_id, ids in shape.specs.items()
    }
    if not by:
        return []
    everywhere = frozenset.intersection(*map(frozenset, by.values()))
    if any(each.field_id in frozenset().union(*by.values()) - everywhere for each in able):
        used = live() & by.keys()
        if used:
            everywhere = frozenset.intersection(*(frozenset(by[each]) for each in used))
    return [each for each in able if each.field_id in everywhere]


def constant_values(files: Entries, field: NestedField, shape: Shape) -> pa.Array:
    """Return the value that a column has in each file."""
    unclear = spans(files, field.field_id)
    for location in files["location"].filter(unclear)[:1]:
        said = f"its stats do not tell its partition: {field.name} must have equal bounds, or be all null"
        raise CorruptTable(location.as_py(), said)
    type = shape.bounds_type(field.field_id)
    assert type is not None  # each of `_KINDS` has bounds
    return stat_values(files, field.field_id, "lower", type)
