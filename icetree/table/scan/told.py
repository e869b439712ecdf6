"""What metadata tells of rows that nobody reads: how many there are, their least and greatest values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from icetree.spec.arrays import every
from icetree.spec.entry.stats import FARTHEST, column
from icetree.table.scan.planning import planner
from icetree.table.scan.scan import Scan
from icetree.tree.plan.plan import Run
from icetree.tree.plan.tasks import Plan

#: Types whose bounds are values where they are tight, and compare the same everywhere.
EXACT: Final = (
    BooleanType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)
_END: Final = {"min": "lower", "max": "upper"}


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The least or the greatest value of a column, whose type is one of `EXACT`."""

    what: Literal["min", "max"]
    field_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How many rows match, and the ends that were asked for; null where no row has a value."""

    rows: int
    ends: dict[End, pa.Scalar]


_Found: TypeAlias = dict[End, list[pa.Scalar]]


def told(scan: Scan, ends: Sequence[End] = (), *, run: Run | None = None) -> Told | None:
    """Return what metadata tells exactly of the rows of a scan; None where it does not.

    It does where every file matches the filter as a whole or not at all, no delete is about to be
    matched by keys or positions, and, for ends, no row is deleted and bounds are values. The table is
    planned once, in parts, with the stats that are asked for alone; the first part that is not
    enough is the last. A limit does not count.
    """
    stats = frozenset(
        column(end.field_id, stat)
        for end in ends
        for stat in ("values", "nulls", "tight", _END[end.what])
    )
    parts = planner(
        scan.files,
        scan.metadata,
        scan.snapshot,
        scan.where,
        schema_id=scan.schema.schema_id,
        case_sensitive=scan.case_sensitive,
        stats_columns=stats,
        run=run,
    ).parts()
    rows, found = 0, {end: list[pa.Scalar]() for end in ends}
    for part in parts:
        if not _is_whole(part, marked=not ends) or not all(
            _is_found(part.tasks, end, found) for end in found
        ):
            return None
        rows += pc.sum(part.tasks["record_count"]).as_py() or 0
        rows -= pc.sum(part.tasks["dv_cardinality"]).as_py() or 0
    shape = scan.metadata.shape(scan.schema.schema_id)
    return Told(
        rows=rows,
        ends={
            end: _best(end, each, shape.bounds_type(end.field_id)) for end, each in found.items()
        },
    )


def _is_whole(part: Plan, *, marked: bool) -> bool:
    """Tell whether all files match as they are; with `marked`, data DVs may tell how many rows do not."""
    tasks = part.tasks
    deletes = (
        pc.sum(pc.list_value_length(tasks[f"{each}_deletes"])).as_py()
        for each in ("equality", "position")
    )
    return (
        (marked or tasks["dv_location"].null_count == tasks.num_rows)
        and not any(deletes)
        and every(part.match_whole())
    )


def _is_found(tasks: pa.Table, end: End, found: _Found) -> bool:
    """Add the end of all files to what was found; tell whether it is known."""
    names = [column(end.field_id, stat) for stat in ("values", "nulls", "tight", _END[end.what])]
    if not tasks.num_rows:
        return True
    if not {*names} <= {*tasks.column_names}:
        return False
    values, nulls, tight, bound = (tasks[name] for name in names)
    of_all = pc.equal(values, tasks["record_count"])
    empty = pc.fill_null(pc.and_(of_all, pc.equal(nulls, values)), False)
    known = pc.and_(pc.fill_null(tight, False), pc.is_valid(bound))
    if not every(pc.or_(empty, known)):
        return False
    there = bound.filter(pc.invert(empty))
    if pa.types.is_timestamp(there.type):
        # What a day became that is out of the reach of times, once its column was made one of these.
        far = pc.is_in(there.cast(pa.int64()), pa.array([-FARTHEST, FARTHEST]))
        if pc.any(far, min_count=0).as_py():
            return False
    if len(there):
        found[end].append((pc.min if end.what == "min" else pc.max)(there))
    return True


def _best(end: End, found: list[pa.Scalar], type: pa.DataType | None) -> pa.Scalar:
    return (pc.min if end.what == "min" else pc.max)(pa.array(found, type))
