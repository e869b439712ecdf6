"""Stats of data files as older metadata has them: maps by column id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.rows.partition_values import stat_values
from icetree.serve.plan.json_columns import Texts, joined, listed
from icetree.spec import stats

_COUNTS: Final = {
    "values": "value-counts",
    "nulls": "null-value-counts",
    "nans": "nan-value-counts",
}
_NONE: Final = pa.scalar(None, pa.string())


def metric_stats(fields: Sequence[int]) -> frozenset[str]:
    """Return the stats columns that metrics of these fields are told by."""
    return frozenset(stats.column(id, stat) for id in fields for stat in _COUNTS)


def metrics(tasks: pa.Table, fields: Sequence[int]) -> dict[str, Texts | str]:
    """Return the maps of each file; nothing where no field is asked for."""
    if not fields:
        return {}
    found: dict[str, Texts | str] = {}
    for stat, name in _COUNTS.items():
        columns = {id: stat_values(tasks, id, stat, pa.int64()) for id in fields}
        found[name] = _maps({id: each.cast(pa.string()) for id, each in columns.items()})
    return found


def _maps(columns: dict[int, Texts]) -> Texts:
    """Return `{"keys":[…],"values":[…]}` of the fields that are known, null where none is."""
    keys = listed([pc.if_else(pc.is_valid(each), str(id), _NONE) for id, each in columns.items()])
    values = listed(list(columns.values()))
    found = joined('{"keys":[', keys, '],"values":[', values, "]}")
    return pc.if_else(pc.equal(keys, ""), _NONE, found)
