"""Is what an entry tells of a column what its rows come to: bounds, counts, boxes, fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icetree.codec.variant.bounds import decode
from icetree.spec.entry import stats
from icetree.spec.entry.entry import Entries
from icetree.spec.fields import GEO_AXES
from icetree.spec.geo import Corners, Numbers, within
from icetree.spec.schema.types import GEO_BOUND, VARIANT_BOUND


def told_by(entry: Entries) -> dict[tuple[int, str], pa.Scalar]:
    """Return the stats that an entry has, by field and stat."""
    found = {}
    for name in entry.schema.names:
        parsed = stats.parse_column(name)
        if parsed is not None and entry[name][0].is_valid:
            found[parsed] = entry[name][0]
    return found


def over(parts: list[pa.Scalar | None], stat: str) -> pa.Scalar | None:
    """Combine a stat of row groups: the least, the greatest, the sum."""
    known = [_ordered(part) for part in parts if part is not None and part.is_valid]
    if not known:
        return None
    values = pa.array(known, known[0].type)
    if stat == "lower":
        return pc.min(values)
    return pc.max(values) if stat == "upper" else pc.sum(values)


def _ordered(value: pa.Scalar) -> pa.Scalar:
    """Return a value in a type that Arrow compares."""
    return value.cast(pa.binary()) if pa.types.is_fixed_size_binary(value.type) else value


def contradicted(
    label: str, told: Mapping[str, pa.Scalar], real: Mapping[str, pa.Scalar | None]
) -> Iterator[str]:
    """Yield a sentence for each bound that leaves values out, and each count that is another."""
    tight = "tight" in told and told["tight"].as_py()
    for stat, holds in (("lower", pc.less_equal), ("upper", pc.greater_equal)):
        mine, actual = told.get(stat), real[stat]
        if mine is None or mine.type in (GEO_BOUND, VARIANT_BOUND):
            continue
        if actual is None:
            if tight and _has_no_value(real):
                yield f"{stat} bound of {label} is tight at {_text(mine)}, but it has no value"
            continue
        mine, actual = _ordered(mine), _ordered(actual)
        try:
            fits = holds(mine, actual).as_py()
            exact = pc.equal(mine, actual).as_py()
        except pa.ArrowException:
            continue  # of another type since: nothing can be said
        if not fits:
            yield f"{stat} bound of {label} is {_text(mine)}, but it has {_text(actual)}"
        elif tight and not exact:
            yield f"{stat} bound of {label} is tight at {_text(mine)}, but it is {_text(actual)}"
    for stat in ("values", "nulls", "nans"):
        mine, actual = told.get(stat), real[stat]
        if mine is not None and actual is not None and mine.as_py() != actual.as_py():
            yield f"{stat} of {label} is {mine}, but there are {actual}"


def _has_no_value(real: Mapping[str, pa.Scalar | None]) -> bool:
    values, nulls, nans = (
        None if each is None else each.as_py()
        for each in (real["values"], real["nulls"], real["nans"])
    )
    return values is not None and values == (nulls or 0) + (nans or 0)


def nothing_but_nulls(
    label: str, told: Mapping[str, pa.Scalar], real: Mapping[str, pa.Scalar | None]
) -> Iterator[str]:
    """Yield a sentence where a partition has a value, and rows have none."""
    values, nulls = (
        None if each is None else each.as_py() for each in (real["values"], real["nulls"])
    )
    if "lower" in told and values and values == nulls:
        yield f"lower bound of {label} is {_text(told['lower'])}, but it has nulls alone"


def outside(
    label: str, told: Mapping[str, pa.Scalar], real: Mapping[str, pa.Scalar | None], earth: bool
) -> Iterator[str]:
    """Yield a sentence where geometries lie outside the box that is told."""
    mine, actual = (_corners(ends.get("lower"), ends.get("upper")) for ends in (told, real))
    if mine is not None and actual is not None and not within(actual, mine, earth=earth):
        yield f"box of {label} is {_box_text(mine)}, but it has {_box_text(actual)}"


def fields_beyond(
    label: str, told: Mapping[str, pa.Scalar], real: Mapping[str, pa.Scalar | None]
) -> Iterator[str]:
    """Yield a sentence for each field of variants whose values its bounds do not hold."""
    ends = [each.get(stat) for each in (told, real) for stat in ("lower", "upper")]
    if any(end is None or end.type != VARIANT_BOUND for end in ends):
        return
    low, high, least, most = (decode(end.as_py()) for end in ends if end is not None)
    # Of arrays others tell bounds of elements, of which nothing is gathered here.
    for path in sorted(low.keys() & high.keys() & least.keys()):
        if not (
            low[path].kind == least[path].kind
            and low[path].value <= least[path].value
            and most[path].value <= high[path].value
        ):
            found = f"{least[path].value!r} to {most[path].value!r}"
            yield f"bounds of {label} {path} do not hold what it has, {found}"


def _corners(lower: pa.Scalar | None, upper: pa.Scalar | None) -> Corners | None:
    ends = [each for each in (lower, upper) if isinstance(each, pa.StructScalar) and each.is_valid]
    if len(ends) < 2:
        return None
    low, high = (np.array([end[axis].as_py() for axis in GEO_AXES], np.float64) for end in ends)
    return low, high


def _box_text(corners: Corners) -> str:
    return "({}, {})".format(
        *(" ".join(f"{each:g}" for each in _cut(corner)) for corner in corners)
    )


def _cut(corner: Numbers) -> Numbers:
    """Return a corner without what it lacks at its end."""
    told = np.flatnonzero(~np.isnan(corner))
    return corner[: max(2, told[-1] + 1 if len(told) else 0)]


def _text(value: pa.Scalar) -> str:
    if not pa.types.is_string(value.type):
        return str(value)
    # A bound that is cut, or damaged, need not be text.
    return repr(value.as_buffer().to_pybytes().decode(errors="backslashreplace"))
