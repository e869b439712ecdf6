"""Partition tuples as JSON, and of which files a client must not take them at their word."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import index_by_id

from icetree.codec.json_values import json_values
from icetree.errors import Unsupported
from icetree.rows.read.partition_values import stat_values
from icetree.serve.plan.json_columns import Texts, joined
from icetree.spec.entry import stats
from icetree.spec.entry.entry import Entries
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape
from icetree.tree.partitions import STATS


def tuple_stats(shape: Shape) -> frozenset[str]:
    """Return the stats columns that tell the partition of a file of any spec."""
    fields = {id for spec in shape.specs for id in shape.partition_fields(spec)}
    return frozenset(stats.column(id, stat) for id in fields for stat in STATS)


def tuples(entries: Entries, shape: Shape, *, nulls: bool = True) -> Texts:
    """Return the partition of each file as a list with a value for each field of its spec.

    `shape` is the table's as it is now: clients read values by the types that columns have now. A
    value that JSON cannot tell, and one of a column that is gone, is null. Without `nulls` a list
    that has one is empty.
    """
    specs = entries["partition_spec_id"]
    found: Texts = pa.repeat("[]", entries.num_rows)
    for spec_id in specs.unique().to_pylist():
        values = [_texts(entries, each, shape) for each in shape.spec(spec_id)]
        if values:
            mine = pc.equal(specs, pa.scalar(spec_id, pa.int32())).combine_chunks()
            if not nulls:
                mine = pc.and_not(mine, _any_null(values))
            found = pc.if_else(mine, joined("[", joined(*values, by=","), "]"), found)
    return found


def require_told(files: Entries, shape: Shape) -> None:
    """Refuse files whose rows would be read with null for a value that JSON cannot tell.

    By the tuple alone a client knows a column that files are partitioned by as it is. Unsupported.
    """
    for expression, name, mask in _untold(files, shape):
        if expression.transform == "identity" and pc.any(mask).as_py():
            raise Unsupported(
                f"files are partitioned by values of {name!r} that no plan can tell, such as NaN: "
                "read the table without scan planning on the server"
            )


def untold(entries: Entries, shape: Shape) -> Iterator[tuple[str, pa.BooleanArray]]:
    """Yield columns of the table whose partition value is none that JSON tells, and of which files.

    A client takes such a value for null, and must not rule rows out by that.
    """
    for _, name, mask in _untold(entries, shape):
        yield name, mask


def _untold(entries: Entries, shape: Shape) -> Iterator[tuple[Expression, str, pa.BooleanArray]]:
    columns = index_by_id(shape.schema)
    for expression in shape.expressions.values():
        source, field_id = expression.source_id, expression.stats_field
        type = shape.bounds_type(field_id)
        if source not in columns or type is None or expression.transform == "void":
            continue
        owners = [spec for spec, ids in shape.specs.items() if expression.expr_id in ids]
        owned = pc.is_in(entries["partition_spec_id"], pa.array(owners, pa.int32()))
        value = _value(entries, field_id, type)
        known = pc.is_valid(value)
        if pa.types.is_floating(type):
            known = pc.and_(known, pc.fill_null(pc.is_finite(value), False))
        nulls = stat_values(entries, field_id, "nulls", pa.int64())
        known = pc.or_(known, pc.fill_null(pc.greater(nulls, 0), False))
        found = pc.and_not(owned.combine_chunks(), known)
        if pc.any(found).as_py():
            name = shape.schema.find_column_name(source)
            assert name is not None
            yield expression, name, found


def _any_null(values: list[Texts]) -> pa.BooleanArray:
    first, *others = (pc.equal(each, "null") for each in values)
    for other in others:
        first = pc.or_(first, other)
    return first


def _texts(entries: Entries, expression: Expression, shape: Shape) -> Texts:
    type = shape.bounds_type(expression.stats_field)
    is_gone = expression.source_id not in index_by_id(shape.schema)
    if type is None or is_gone or expression.transform == "void":
        return pa.repeat("null", entries.num_rows)
    values = _value(entries, expression.stats_field, type)
    return json_values(values, shape.types[expression.stats_field])


def _value(entries: Entries, field_id: int, type: pa.DataType) -> pa.Array:
    name = stats.column(field_id, "lower")
    if name not in entries.column_names:
        return pa.nulls(entries.num_rows, type)
    found = entries[name].combine_chunks()
    return found if found.type == type else stats.widened(found, type)


def codes_of(masks: list[pa.BooleanArray], size: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return a number for each row: which of the masks have it."""
    found = np.zeros(size, np.int64)
    for at, mask in enumerate(masks):
        found |= mask.to_numpy(zero_copy_only=False).astype(np.int64) << at
    return found
