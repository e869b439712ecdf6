"""Stats of a manifest from the stats of its entries: never narrower than any child."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.arrays import one_chunk
from icetree.spec.entry import stats
from icetree.spec.entry.entry import Entries
from icetree.spec.fields import GEO_AXES
from icetree.spec.geo import around, widths
from icetree.spec.schema.types import VARIANT_BOUND


def aggregate(entries: Entries) -> dict[str, pa.Scalar]:
    """Return the stats columns of the manifest that holds just these (live) entries.

    Least lower, greatest upper, sums of counts. What is unknown in any child is unknown in the
    aggregate and left out; a child that is known to hold no values but nulls and NaNs has no
    bounds and hides none.
    """
    found: dict[str, pa.Scalar] = {}
    if entries.num_rows == 0:
        return found
    for field_id, known in _by_field(entries).items():
        for stat, value in _aggregate_field(known).items():
            if value is not None and value.is_valid:
                found[stats.column(field_id, stat)] = value
    return found


def _by_field(entries: Entries) -> dict[int, dict[str, pa.Array]]:
    """Return the stats of each field: one look at the columns, which may be thousands."""
    found: dict[int, dict[str, pa.Array]] = {}
    for name, column in zip(entries.column_names, entries.columns, strict=True):
        parsed = stats.parse_column(name)
        if parsed is not None:
            found.setdefault(parsed[0], {})[parsed[1]] = one_chunk(column)
    return found


def _aggregate_field(known: dict[str, pa.Array]) -> dict[str, pa.Scalar | None]:
    empty = _holds_no_values(known)
    lower, upper = known.get("lower"), known.get("upper")
    found: dict[str, pa.Scalar | None] = {
        stat: _total(known[stat]) for stat in ("values", "nulls", "nans") if stat in known
    }
    if lower is not None:
        found["lower"] = _extreme(lower, empty, least=True)
    if upper is not None:
        found["upper"] = _extreme(upper, empty, least=False)
    if lower is not None and upper is not None and _wraps(lower, upper):
        found |= _around(lower, upper, found)
    if "tight" in known and any(found.get(stat) is not None for stat in ("lower", "upper")):
        found["tight"] = _all_tight(known["tight"], empty)
    if "max_size" in known and known["max_size"].null_count == 0:
        found["max_size"] = pc.max(known["max_size"])
    if "avg_size" in known and "values" in known:
        found["avg_size"] = _weighted(known["avg_size"], known["values"])
    return found


def _holds_no_values(known: dict[str, pa.Array]) -> pa.BooleanArray | None:
    """Tell which children have nothing to bound; None where that is not known of any."""
    if "values" not in known or "nulls" not in known:
        return None
    hidden = known["nulls"]
    if "nans" in known:
        hidden = pc.add(hidden, pc.fill_null(known["nans"], 0))
    return pc.fill_null(pc.greater_equal(hidden, known["values"]), False)


def _extreme(bounds: pa.Array, empty: pa.BooleanArray | None, *, least: bool) -> pa.Scalar | None:
    if bounds.null_count:
        unknown = pc.is_null(bounds)
        if empty is None or pc.and_not(unknown, empty).true_count:
            return None
    if bounds.null_count == len(bounds) or bounds.type in (pa.null(), VARIANT_BOUND):
        return None
    if pa.types.is_struct(bounds.type):
        return _geo_extreme(bounds, least=least)
    reduce = pc.min if least else pc.max
    if pa.types.is_fixed_size_binary(bounds.type):
        # No kernel orders fixed-size binary; plain binary has the same, bytewise order.
        return reduce(bounds.cast(pa.binary())).cast(bounds.type)
    value = reduce(bounds)
    if pa.types.is_floating(bounds.type) and value.as_py() == 0:
        # The kernels take -0.0 and +0.0 for equal; the format puts -0.0 first.
        signs = np.signbit(bounds.filter(pc.equal(bounds, value)).to_numpy(zero_copy_only=False))
        return pa.scalar(-0.0 if (signs.any() if least else signs.all()) else 0.0, bounds.type)
    return value


def _geo_extreme(bounds: pa.StructArray, *, least: bool) -> pa.Scalar:
    reduce = pc.min if least else pc.max
    present = bounds.drop_null()
    corner: dict[str, Any] = {}
    for axis in GEO_AXES:
        values = pc.struct_field(present, axis)
        corner[axis] = None if values.null_count else reduce(values).as_py()
    return pa.scalar(corner, bounds.type)


def _wraps(lower: pa.Array, upper: pa.Array) -> bool:
    """Tell whether a box crosses the antimeridian, so that least and greatest mean nothing."""
    if not pa.types.is_struct(lower.type) or not pa.types.is_struct(upper.type):
        return False
    west, east = pc.struct_field(lower, "x"), pc.struct_field(upper, "x")
    return bool(pc.greater(west, east).true_count)


def _around(
    lower: pa.StructArray, upper: pa.StructArray, found: dict[str, pa.Scalar | None]
) -> dict[str, pa.Scalar | None]:
    """Return the corners that were found, from the west of all boxes to the east of all."""
    low, high = found["lower"], found["upper"]
    if low is None or high is None:
        return {"lower": None, "upper": None}
    west, east = (
        pc.fill_null(pc.struct_field(each, "x"), np.nan).to_numpy(zero_copy_only=False)
        for each in (lower, upper)
    )
    [first], [last] = around(west, widths(west, east))
    return {
        "lower": pa.scalar(low.as_py() | {"x": first}, lower.type),
        "upper": pa.scalar(high.as_py() | {"x": last}, upper.type),
    }


def _total(counts: pa.Array) -> pa.Scalar | None:
    return None if counts.null_count else pc.sum(counts)


def _all_tight(tight: pa.Array, empty: pa.BooleanArray | None) -> pa.Scalar | None:
    counted = tight if empty is None else tight.filter(pc.invert(empty))
    if counted.false_count:
        return pa.scalar(False)
    return None if counted.null_count else pa.scalar(True)


def _weighted(sizes: pa.Array, values: pa.Array) -> pa.Scalar | None:
    if sizes.null_count or values.null_count:
        return None
    total = pc.sum(values).as_py()
    weighed = pc.sum(pc.multiply(sizes.cast(pa.int64()), values)).as_py()
    return pa.scalar(round(weighed / total) if total else 0, pa.int32())
