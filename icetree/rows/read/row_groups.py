"""Which row groups of a Parquet file are worth reading, by its own statistics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa
from pyiceberg.expressions import BooleanExpression

from icetree.rows.formats.parquet import ParquetReader
from icetree.rows.project import Node
from icetree.rows.read.files import DataFile, Group
from icetree.spec.entry.stats import column, parse_column
from icetree.spec.schema.shape import Shape
from icetree.tree.prune.bind import bind
from icetree.tree.prune.prune import columns_needed, may_match


def groups_that_may_match(
    file: DataFile, predicate: BooleanExpression, shape: Shape, case_sensitive: bool
) -> tuple[Group, ...]:
    """Return the row groups that may hold a matching row, by the rule that prunes files too."""
    if not isinstance(file.reader, ParquetReader) or not file.groups:
        return file.groups
    bound = bind(predicate, shape, case_sensitive=case_sensitive)
    leaves = dict(flat_leaves(file.nodes))
    columns: dict[str, pa.Array] = {
        "record_count": pa.array([group.rows for group in file.groups], pa.int64())
    }
    needed = {parsed[0] for parsed in map(parse_column, columns_needed(bound)) if parsed}
    for field_id in sorted(needed & leaves.keys()):
        columns |= group_stats(file, field_id, leaves[field_id], shape)
    may = may_match(pa.table(columns), bound)
    return tuple(group for group, keep in zip(file.groups, may.to_pylist(), strict=True) if keep)


def flat_leaves(nodes: tuple[Node, ...]) -> Iterator[tuple[int, int]]:
    """Yield (field id, leaf) of the fields within structs alone: others have no stats of rows."""
    for node in nodes:
        if pa.types.is_struct(node.type):
            yield from flat_leaves(node.children)
        elif not node.children and node.id is not None:
            yield node.id, node.first_leaf


def group_stats(file: DataFile, field_id: int, leaf: int, shape: Shape) -> dict[str, pa.Array]:
    """Return what a Parquet file says of a column in each row group, as stats of entries."""
    type = shape.bounds_type(field_id)
    if type is None or pa.types.is_struct(type):
        return {}
    stats = [file.reader.statistics(group.ordinal, leaf) for group in file.groups]
    nulls = [one.null_count if one is not None and one.has_null_count else None for one in stats]
    made = {
        column(field_id, "values"): pa.array([group.rows for group in file.groups], pa.int64()),
        column(field_id, "nulls"): pa.array(nulls, pa.int64()),
    }
    bounded = [one if one is not None and one.has_min_max else None for one in stats]
    # Statistics that are not of the column's type tell nothing: the rows will.
    with suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
        made |= {
            column(field_id, "lower"): pa.array([one and one.min for one in bounded], type),
            column(field_id, "upper"): pa.array([one and one.max for one in bounded], type),
        }
    return made
