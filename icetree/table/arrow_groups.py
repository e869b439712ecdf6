"""Which row groups of a Parquet file are worth reading, by its own statistics."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyiceberg.expressions import BooleanExpression

from icetree.spec.shape import Shape
from icetree.spec.stats import column, parse_column
from icetree.table.arrow_files import DataFile, Group, ParquetReader
from icetree.table.arrow_project import Node
from icetree.tree.bind import bind
from icetree.tree.prune import columns_needed, may_match


def groups_that_may_match(
    file: DataFile, predicate: BooleanExpression, shape: Shape, case_sensitive: bool
) -> tuple[Group, ...]:
    """Return the row groups that may hold a matching row, by the rule that prunes files too."""
    if not isinstance(file.reader, ParquetReader) or not file.groups:
        return file.groups
    bound = bind(predicate, shape, case_sensitive=case_sensitive)
    leaves = dict(_leaves(file.nodes))
    columns: dict[str, pa.Array] = {
        "record_count": pa.array([group.rows for group in file.groups], pa.int64())
    }
    needed = {parsed[0] for parsed in map(parse_column, columns_needed(bound)) if parsed}
    for field_id in sorted(needed & leaves.keys()):
        columns |= _stats(file, field_id, leaves[field_id], shape)
    may = may_match(pa.table(columns), bound)
    return tuple(group for group, keep in zip(file.groups, may.to_pylist(), strict=True) if keep)


def _leaves(nodes: tuple[Node, ...]) -> Any:
    """Yield (field id, leaf) of the fields within structs alone: others have no stats of rows."""
    for node in nodes:
        if pa.types.is_struct(node.type):
            yield from _leaves(node.children)
        elif not node.children and node.id is not None:
            yield node.id, node.first_leaf


def _stats(file: DataFile, field_id: int, leaf: int, shape: Shape) -> dict[str, pa.Array]:
    type = shape.bounds_type(field_id)
    if type is None or pa.types.is_struct(type):
        return {}
    footer = file.reader.file.metadata
    found: dict[str, list[Any]] = {"lower": [], "upper": [], "nulls": []}
    for group in file.groups:
        stats = footer.row_group(group.ordinal).column(leaf).statistics
        bounded = stats is not None and stats.has_min_max
        found["lower"].append(stats.min if bounded else None)
        found["upper"].append(stats.max if bounded else None)
        counted = stats is not None and stats.has_null_count
        found["nulls"].append(stats.null_count if counted else None)
    made = {
        column(field_id, "values"): pa.array([group.rows for group in file.groups], pa.int64()),
        column(field_id, "nulls"): pa.array(found["nulls"], pa.int64()),
    }
    try:
        for stat in ("lower", "upper"):
            made[column(field_id, stat)] = pa.array(found[stat], type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # Statistics that are not of the column's type tell nothing: the rows will.
        made.pop(column(field_id, "lower"), None)
    return made
