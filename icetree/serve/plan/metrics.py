"""Stats of data files as older metadata has them: maps by column id, bounds as bytes in hex."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.codec.single_value_bytes import encode_bounds
from icetree.rows.read.partition_values import stat_values
from icetree.serve.plan.json_columns import Texts, joined, listed
from icetree.spec.entry import stats
from icetree.spec.schema.shape import Shape

_COUNTS: Final = {
    "values": "value-counts",
    "nulls": "null-value-counts",
    "nans": "nan-value-counts",
}
_NONE: Final = pa.scalar(None, pa.string())
_BOUNDS: Final = {"lower": "lower-bounds", "upper": "upper-bounds"}


def metric_stats(fields: Sequence[int]) -> frozenset[str]:
    """Return the stats columns that metrics of these fields are told by."""
    return frozenset(
        stats.column(id, stat) for id in fields for stat in (*_COUNTS, *_BOUNDS, "tight")
    )


def metrics(tasks: pa.Table, fields: Sequence[int], shape: Shape) -> dict[str, Texts | str]:
    """Return the maps of each file; nothing where no field is asked for."""
    if not fields:
        return {}
    found: dict[str, Texts | str] = {}
    for stat, name in _COUNTS.items():
        columns = {id: stat_values(tasks, id, stat, pa.int64()) for id in fields}
        found[name] = _maps({id: each.cast(pa.string()) for id, each in columns.items()})
    for stat, name in _BOUNDS.items():
        texts = {}
        for id in fields:
            bound = shape.bounds_type(id)
            if bound is not None:
                texts[id] = _hex(encode_bounds(_bound(tasks, id, stat, bound), shape.types[id]))
        found[name] = _maps(texts) if texts else pa.nulls(tasks.num_rows, pa.string())
    return found


def _bound(tasks: pa.Table, field_id: int, stat: str, type: pa.DataType) -> pa.Array:
    name = stats.column(field_id, stat)
    if name not in tasks.column_names:
        return pa.nulls(tasks.num_rows, type)
    found = tasks[name].combine_chunks()
    found = found if found.type == type else stats.widened(found, type)
    # A client takes bounds for the least and the greatest value, and answers queries by them.
    tight = stat_values(tasks, field_id, "tight", pa.bool_())
    return pc.if_else(pc.fill_null(tight, True), found, pa.scalar(None, type))


def _hex(values: pa.Array) -> Texts:
    encoded = pc.dictionary_encode(values)
    texts = [f'"{value.hex().upper()}"' for value in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _maps(columns: dict[int, Texts]) -> Texts:
    """Return `{"keys":[…],"values":[…]}` of the fields that are known, null where none is."""
    keys = listed([pc.if_else(pc.is_valid(each), str(id), _NONE) for id, each in columns.items()])
    values = listed(list(columns.values()))
    found = joined('{"keys":[', keys, '],"values":[', values, "]}")
    return pc.if_else(pc.equal(keys, ""), _NONE, found)
