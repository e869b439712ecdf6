"""The order in which entries go to leaves, so that the bounds of each leaf are tight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.entry import stats
from icetree.spec.entry.entry import Entries
from icetree.spec.schema.shape import Shape

#: Columns of entries to sort by, each with its direction.
Order: TypeAlias = Mapping[str, str]

Ranks: TypeAlias = npt.NDArray[np.int64]


def order_of(shape: Shape) -> Order:
    """Return the order of a table's own: by spec, then partition values, then sort order."""
    wanted = {"partition_spec_id": "ascending"}
    for spec_id in sorted(shape.specs):
        wanted |= order_by(shape.partition_fields(spec_id))
    for key in shape.sort_order:
        wanted[stats.column(key.source_id, "lower")] = (
            "descending" if key.descending else "ascending"
        )
    return wanted


def order_by(fields: Iterable[int]) -> Order:
    """Return the order by the least values of fields."""
    return {stats.column(id, "lower"): "ascending" for id in fields}


def clustered(entries: Entries, shape: Shape) -> Entries:
    """Return the entries in the table's order; otherwise stable."""
    keys = _keys(entries, order_of(shape))
    if entries.num_rows < 2 or not keys:
        return entries
    return entries.take(_sorted(keys))


def ranks(entries: Entries, order: Order) -> Ranks:
    """Return where each entry comes in an order; equal ones have the same rank."""
    found: Ranks = np.zeros(entries.num_rows, np.int64)
    keys = _keys(entries, order)
    if entries.num_rows < 2 or not keys:
        return found
    at = _sorted(keys)
    steps = np.zeros(entries.num_rows, np.bool_)
    for key, _ in keys:
        steps[1:] |= _differ(key.take(at).combine_chunks())
    found[at.to_numpy()] = np.cumsum(steps)
    return found


def _differ(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Tell which values differ from the one before; nulls are alike."""
    one, next_one = values.slice(0, len(values) - 1), values.slice(1)
    other = pc.xor(pc.is_null(one), pc.is_null(next_one))
    found: npt.NDArray[np.bool_] = pc.or_(
        other, pc.fill_null(pc.not_equal(one, next_one), False)
    ).to_numpy(zero_copy_only=False)
    return found


def _sorted(keys: list[tuple[pa.ChunkedArray, str]]) -> pa.Array:
    names = [f"k{i}" for i in range(len(keys))]
    # The last key keeps equal entries in the order they came, so that a draft is repeatable.
    ordinal = pa.array(np.arange(len(keys[0][0])))
    table = pa.table([*(key for key, _ in keys), ordinal], names=[*names, "ordinal"])
    order = [(name, way) for name, (_, way) in zip(names, keys, strict=True)]
    return pc.sort_indices(table, sort_keys=[*order, ("ordinal", "ascending")])


def _keys(entries: Entries, order: Order) -> list[tuple[pa.ChunkedArray, str]]:
    """Return the columns to sort by, with their direction; those that order nothing left out."""
    have = set(entries.schema.names)
    found = [(_sortable(entries[name]), way) for name, way in order.items() if name in have]
    return [(values, way) for values, way in found if values is not None]


def _sortable(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    type = column.type
    if pa.types.is_struct(type) or pa.types.is_null(type) or column.null_count == len(column):
        return None
    return column.cast(pa.binary()) if pa.types.is_fixed_size_binary(type) else column
