"""Typed column statistics: ids, in-memory column names, and values at the edges.

In memory each stat of each field is one flat Arrow column named `<field id>:<stat>`, for
example `3:lower`. On disk it is a member of the field's struct inside `content_stats`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.fields import (
    LAST_STATS_FIELD,
    LINEAGE_STATS,
    STAT_BY_OFFSET,
    STAT_OFFSETS,
    STATS_START,
)
from icetree.spec.fields import STATS_STRIDE as STRIDE

STATS = tuple(STAT_OFFSETS)
#: How far a time may be from 1970, on either side, and how many times there are in a day.
FARTHEST: Final = 2**63 - 1
TIMES_IN_A_DAY: Final = {"us": 86_400 * 10**6, "ns": 86_400 * 10**9}
_FIELD_OF_LINEAGE = {start: field_id for field_id, start in LINEAGE_STATS.items()}

_TYPES: dict[str, pa.DataType] = {
    "tight": pa.bool_(),
    "values": pa.int64(),
    "nulls": pa.int64(),
    "nans": pa.int64(),
    "avg_size": pa.int32(),
    "max_size": pa.int32(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldStats:
    """Stats of one field of one file, as a Python value; None means not known."""

    lower: Any = None
    upper: Any = None
    tight: bool | None = None
    values: int | None = None
    nulls: int | None = None
    nans: int | None = None
    avg_size: int | None = None
    max_size: int | None = None


def column(field_id: int, stat: str) -> str:
    """Return the in-memory column name of a field's stat."""
    return f"{field_id}:{stat}"


@lru_cache(maxsize=4096)
def parse_column(name: str) -> tuple[int, str] | None:
    """Return (field id, stat) of a stats column's name, None for any other column."""
    field_id, colon, stat = name.partition(":")
    return (int(field_id), stat) if colon else None


def stat_type(stat: str, bounds: pa.DataType) -> pa.DataType:
    """Return the Arrow type of a stat of a field whose bounds have type `bounds`."""
    return _TYPES.get(stat, bounds)


def can_be_stored(field_id: int) -> bool:
    """Tell whether a field can have stats on disk: its ids there must be within 32 bits."""
    return field_id <= LAST_STATS_FIELD or field_id in LINEAGE_STATS


def base_id(field_id: int) -> int:
    """Return the id of the struct in `content_stats` of a field that can have one."""
    return LINEAGE_STATS.get(field_id, STATS_START + STRIDE * field_id)


def stat_id(field_id: int, stat: str) -> int:
    """Return the id of a field's stat on disk."""
    return base_id(field_id) + STAT_OFFSETS[stat][0]


def field_of(base: int) -> int | None:
    """Return the field whose struct has id `base`, None when no field can have it."""
    if base in _FIELD_OF_LINEAGE:
        return _FIELD_OF_LINEAGE[base]
    field_id, rest = divmod(base - STATS_START, STRIDE)
    return field_id if rest == 0 and field_id > 0 else None


def stat_of(field_id: int, id: int) -> str | None:
    """Return which stat of the field has the id, None for one this version does not know."""
    return STAT_BY_OFFSET.get(id - base_id(field_id))


def widened(bounds: pa.Array | pa.ChunkedArray, type: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Return bounds in the wider type that their column has now.

    Of all that a column can be widened to, only times have ends that days go beyond: 1677 and 2262
    for nanoseconds. Such a bound becomes the end itself: so it bounds what it did, and a table with
    a row that cannot be read as the new type still has all the others.
    """
    if not (pa.types.is_date(bounds.type) and pa.types.is_timestamp(type)):
        return bounds.cast(type)
    days, in_a_day = bounds.cast(pa.int32()).cast(pa.int64()), TIMES_IN_A_DAY[type.unit]
    last = FARTHEST // in_a_day
    times = pc.multiply(pc.min_element_wise(pc.max_element_wise(days, -last), last), in_a_day)
    times = pc.if_else(pc.greater(days, last), FARTHEST, times)
    return pc.if_else(pc.less(days, -last), -FARTHEST, times).cast(type)


def storable(table: pa.Table) -> pa.Table:
    """Return entries without the stats of fields that can have none on disk."""
    lost = [
        name
        for name in table.schema.names
        if (parsed := parse_column(name)) is not None and not can_be_stored(parsed[0])
    ]
    return table.drop_columns(lost) if lost else table


def fields_in(table: pa.Table) -> list[int]:
    """Return the fields that have any stats column in an entries table, in order."""
    parsed = (parse_column(name) for name in table.schema.names)
    return list(dict.fromkeys(each[0] for each in parsed if each is not None))
