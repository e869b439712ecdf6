"""Every rule that the stats of one field must keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.fields import GEO_AXES
from icetree.spec.schema.types import VARIANT_BOUND

_COUNTS: Final = ("values", "nulls", "nans")
#: The stats that there are rules for.
CHECKED: Final = ("lower", "upper", *_COUNTS)

_ZERO = pa.scalar(0, pa.int64())


def broken_stats(known: Mapping[str, pa.Array]) -> Iterator[tuple[pa.BooleanArray, str]]:
    """Yield, for each rule, which entries break it and what they do; `known` is by `CHECKED`."""
    if "lower" in known and "upper" in known:
        for axis, lower, upper in _comparable(known["lower"], known["upper"]):
            yield pc.greater(lower, upper), f"lower bound above upper bound{axis}"
    for stat in ("lower", "upper"):
        if stat in known and pa.types.is_floating(known[stat].type):
            yield pc.is_nan(known[stat]), f"NaN as {stat} bound"
    for stat in _COUNTS:
        if stat in known:
            yield pc.less(known[stat], _ZERO), f"negative count of {stat}"
    if "values" in known and "nulls" in known:
        yield pc.greater(known["nulls"], known["values"]), "more nulls than values"


def _comparable(lower: pa.Array, upper: pa.Array) -> Iterator[tuple[str, pa.Array, pa.Array]]:
    if pa.types.is_null(lower.type) or pa.types.is_null(upper.type):
        return
    # Bounds of variants hold those of many fields.
    if VARIANT_BOUND in (lower.type, upper.type):
        return
    if pa.types.is_struct(lower.type):
        # A geography's x may wrap around the antimeridian, so west may exceed east.
        for axis in GEO_AXES[1:]:
            yield f" ({axis})", pc.struct_field(lower, axis), pc.struct_field(upper, axis)
    elif pa.types.is_fixed_size_binary(lower.type):
        yield "", lower.cast(pa.binary()), upper.cast(pa.binary())
    else:
        yield "", lower, upper
