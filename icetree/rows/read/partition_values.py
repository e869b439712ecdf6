"""The partition that each file is in, rebuilt from stats, as a struct with a field for each expression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icetree.rows.read.files import DataFile, ReadRules
from icetree.rows.schema import arrow_type
from icetree.spec.entry import stats
from icetree.spec.entry.entry import Entries
from icetree.spec.entry.partition_stats import told
from icetree.spec.schema.metadata_columns import partition_type
from icetree.spec.schema.shape import Shape


def partition_column(entries: Entries, shape: Shape) -> pa.StructArray:
    """Return the partition of each file, with the fields of every spec; others' are null.

    Entries have the stats of those fields: a plan has them where it was asked for stats.
    """
    arrays, fields = [], []
    for name, array in partition_values(entries, shape):
        arrays.append(array)
        fields.append(pa.field(name, array.type))
    return struct_of(arrays, fields, entries.num_rows)


def partition_values(entries: Entries, shape: Shape) -> list[tuple[str, pa.Array]]:
    """Return the name and the values of each partition field."""
    specs = entries["partition_spec_id"]
    found = []
    for field in partition_type(shape).fields:
        expression = shape.expressions[field.field_id]
        type = shape.bounds_type(expression.stats_field)
        if type is None:
            continue
        owners = [spec for spec, ids in shape.specs.items() if field.field_id in ids]
        owned = pc.is_in(specs, value_set=pa.array(owners, pa.int32())).combine_chunks()
        value = stat_values(entries, expression.stats_field, "lower", type)
        found.append((field.name, pc.if_else(owned, value, pa.scalar(None, type))))
    return found


def stat_values(entries: Entries, field_id: int, stat: str, type: pa.DataType) -> pa.Array:
    """Return a stat of each file, null where it is not known."""
    name = stats.column(field_id, stat)
    if name not in entries.column_names:
        return pa.nulls(entries.num_rows, type)
    found = entries[name].combine_chunks()
    return found if found.type == type else found.cast(type)


def struct_of(arrays: Sequence[pa.Array], fields: Sequence[pa.Field], size: int) -> pa.StructArray:
    """Return a struct column of so many rows, also where it has no member."""
    if not arrays:
        return pa.StructArray.from_buffers(pa.struct([]), size, [None])
    return pa.StructArray.from_arrays(list(arrays), fields=list(fields))


def partition_constants(
    tasks: pa.Table, task: Mapping[str, Any], file: DataFile, shape: Shape
) -> dict[int, pa.Scalar]:
    """Return the values of identity partitions that the file, as those from Hive, does not hold.

    `tasks` is of this one file, with its stats.
    """
    found: dict[int, pa.Scalar] = {}
    rules = ReadRules(location=task["location"])
    for expression in shape.spec(task["partition_spec_id"]):
        id = expression.stats_field
        bounds = shape.bounds_type(id)
        if not expression.is_identity or id not in shape.columns or bounds is None:
            continue
        if file.has_below(id):
            continue
        type = shape.columns[id].field_type
        lower, upper = (stat_values(tasks, id, stat, bounds) for stat in ("lower", "upper"))
        counts = [stat_values(tasks, id, stat, pa.int64()) for stat in ("values", "nulls", "nans")]
        [is_told], [is_nan] = told(lower, upper, *counts)
        if is_nan.as_py():
            found[id] = pa.scalar(float("nan"), arrow_type(type))
        elif is_told.as_py():
            found[id] = rules.convert(lower, type, expression.name)[0]
    return found
