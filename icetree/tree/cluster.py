"""The order in which entries go to leaves, so that the bounds of each leaf are tight."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec import stats
from icetree.spec.entry import Entries
from icetree.spec.shape import Shape


def clustered(entries: Entries, shape: Shape) -> Entries:
    """Return the entries by spec, then partition values, then sort order; otherwise stable."""
    keys = cluster_keys(entries, shape)
    if entries.num_rows < 2 or not keys:
        return entries
    names = [f"k{i}" for i in range(len(keys))]
    # The last key keeps equal entries in the order they came, so that a draft is repeatable.
    ordinal = pa.array(range(entries.num_rows), pa.int64())
    table = pa.table([*(key for key, _ in keys), ordinal], names=[*names, "ordinal"])
    order = [(name, way) for name, (_, way) in zip(names, keys, strict=True)]
    return entries.take(pc.sort_indices(table, sort_keys=[*order, ("ordinal", "ascending")]))


def cluster_keys(entries: Entries, shape: Shape) -> list[tuple[pa.Array, str]]:
    """Return the columns to sort by, with their direction; those that order nothing left out."""
    have = set(entries.schema.names)
    wanted = [("partition_spec_id", "ascending")]
    for spec_id in sorted(shape.specs):
        wanted += [
            (stats.column(id, "lower"), "ascending") for id in shape.partition_fields(spec_id)
        ]
    for key in shape.sort_order:
        way = "descending" if key.descending else "ascending"
        wanted.append((stats.column(key.source_id, "lower"), way))
    found = [(_sortable(entries[name]), way) for name, way in dict(wanted).items() if name in have]
    return [(values, way) for values, way in found if values is not None]


def _sortable(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    type = column.type
    if pa.types.is_struct(type) or pa.types.is_null(type) or column.null_count == len(column):
        return None
    return column.cast(pa.binary()) if pa.types.is_fixed_size_binary(type) else column
