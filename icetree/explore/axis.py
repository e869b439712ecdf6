"""Columns and partition expressions as axes: their bounds become places on a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import NotFound
from icetree.picture.rows import in_words
from icetree.spec.entry import stats
from icetree.spec.entry.entry import Entries
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape
from icetree.spec.texts import did_you_mean

Places: TypeAlias = npt.NDArray[np.float64]

#: Transforms whose values count units of time since 1970, and numpy's letter for the unit.
_UNITS: Final = {"year": "Y", "month": "M", "day": "D", "hour": "h"}
#: What a browser's clock reaches, either way, in milliseconds.
_FAR: Final = 8.64e15
#: How many names an axis of texts shows.
_TICKS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A field whose bounds are drawn. Times are in milliseconds, texts by their rank."""

    field_id: int
    name: str
    kind: Literal["time", "number", "text"]
    expression: Expression | None = None

    @property
    def columns(self) -> tuple[str, str]:
        """The columns of entries that hold the bounds."""
        return stats.column(self.field_id, "lower"), stats.column(self.field_id, "upper")

    def words(self, value: Any, shape: Shape) -> str:
        """Return a bound as people read it."""
        if value is None:
            return ""
        if self.expression is not None:
            return in_words(self.expression, value, shape)
        return value.isoformat() if hasattr(value, "isoformat") else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """Where entries lie on an axis; NaN where their bounds are not known."""

    first: Places
    last: Places
    #: Of an axis of texts, some names with their places.
    ticks: tuple[tuple[float, str], ...] = ()


def axes(shape: Shape) -> list[Axis]:
    """Return every axis there is: partition expressions first, then columns."""
    found = [
        axis
        for id, each in shape.expressions.items()
        if not each.is_identity and (axis := _axis(id, shape, each)) is not None
    ]
    own = [id for id in shape.columns if shape.schema.find_column_name(id) is not None]
    return found + [axis for id in own if (axis := _axis(id, shape)) is not None]


def axis_of(shape: Shape, name: str | None) -> Axis | None:
    """Return the axis of a name; without one, that by which files are kept apart, if there is any."""
    known = axes(shape)
    if name is not None:
        for each in known:
            if each.name == name:
                return each
        hint = did_you_mean(name, [each.name for each in known])
        raise NotFound(f"there is no column or partition expression {name!r} with bounds{hint}")
    wanted = [*shape.partition_fields(shape.default_spec_id)]
    wanted += [key.source_id for key in shape.sort_order]
    by_id = {each.field_id: each for each in known}
    return next((by_id[id] for id in wanted if id in by_id), known[0] if known else None)


def ranges(entries: Entries, axis: Axis) -> Ranges:
    """Return where each entry lies: a value of a whole unit, as a day, takes all of it."""
    lower, upper = (_bounds(entries, name) for name in axis.columns)
    if axis.kind == "text":
        return _ranked(lower, upper)
    first = _places(lower, axis)
    last = _places(upper, axis, ends=True)
    return Ranges(first=first, last=np.maximum(first, last))


def _axis(field_id: int, shape: Shape, expression: Expression | None = None) -> Axis | None:
    type = shape.bounds_type(field_id)
    if type is None or pa.types.is_struct(type) or not stats.can_be_stored(field_id):
        return None
    is_time = pa.types.is_date(type) or pa.types.is_timestamp(type)
    kind: Literal["time", "number", "text"] = "number"
    if is_time or (expression is not None and expression.transform in _UNITS):
        kind = "time"
    elif (
        pa.types.is_string(type) or pa.types.is_binary(type) or pa.types.is_fixed_size_binary(type)
    ):
        kind = "text"
    return Axis(field_id=field_id, name=shape.names[field_id], kind=kind, expression=expression)


def _bounds(entries: Entries, name: str) -> pa.Array:
    if name not in entries.column_names:
        return pa.nulls(entries.num_rows)
    return entries[name].combine_chunks()


def _places(values: pa.Array, axis: Axis, *, ends: bool = False) -> Places:
    """Return values as numbers; with `ends` a unit's end, not its beginning."""
    if pa.types.is_null(values.type):
        return np.full(len(values), np.nan)
    known = values.is_valid().to_numpy(zero_copy_only=False)
    unit = None if axis.expression is None else _UNITS.get(axis.expression.transform)
    if pa.types.is_date(values.type):
        unit = "D"
    step = 1 if ends else 0
    if unit is not None:
        numbers = pc.fill_null(values.cast(pa.int32()), 0).to_numpy().astype(np.int64) + step
        found = numbers.astype(f"datetime64[{unit}]").astype("datetime64[ms]").astype(np.float64)
    elif pa.types.is_timestamp(values.type):
        per_ms = 1e6 if values.type.unit == "ns" else 1e3
        found = pc.fill_null(values.cast(pa.int64()), 0).to_numpy() / per_ms
    else:
        if pa.types.is_boolean(values.type) or pa.types.is_time(values.type):
            values = values.cast(pa.int8() if pa.types.is_boolean(values.type) else pa.int64())
        found = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy()
        # A bucket is a place of its own; a number is but a point.
        found = found + (step if axis.expression is not None else 0)
    found = np.where(known & np.isfinite(found), found, np.nan)
    return np.clip(found, -_FAR, _FAR) if axis.kind == "time" else found


def _ranked(lower: pa.Array, upper: pa.Array) -> Ranges:
    if pa.types.is_null(lower.type) or pa.types.is_null(upper.type) or not len(lower):
        none = np.full(len(lower), np.nan)
        return Ranges(first=none, last=none)
    both = pa.concat_arrays([lower, upper])
    names = pc.unique(both).drop_null()
    names = names.take(pc.sort_indices(names))
    places = pc.index_in(both, value_set=names)
    known = places.is_valid().to_numpy(zero_copy_only=False)
    found = np.where(known, pc.fill_null(places, 0).to_numpy().astype(np.float64), np.nan)
    first, last = np.split(found, 2)
    shown = np.unique(np.linspace(0, max(len(names) - 1, 0), min(_TICKS, len(names))).astype(int))
    ticks = tuple((float(at), _text(names[int(at)].as_py())) for at in shown)
    return Ranges(first=first, last=last + 0.9, ticks=ticks)


def _text(value: Any) -> str:
    return value.hex()[:32] if isinstance(value, bytes) else str(value)[:80]
