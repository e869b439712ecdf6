"""Stats of rows, computed from the rows themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isnan
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import (
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    UUIDType,
)

from icetree.codec.variant.bounds import Ranges
from icetree.codec.wkb import Boxes, boxes
from icetree.rows.variant import METADATA, VALUE
from icetree.spec.arrays import one_chunk
from icetree.spec.entry.metrics import Mode, truncate_lower, truncate_upper
from icetree.spec.entry.stats import column
from icetree.spec.fields import GEO_AXES
from icetree.spec.schema.types import (
    VARIANT_BOUND,
    VariantType,
    bounds_type,
    edges_of,
    has_nans,
    is_variable_length,
)

#: Stats of one file: by the name of the stats column, typed as that column is.
FileStats: TypeAlias = "dict[str, pa.Scalar]"


def stats_of(
    rows: pa.Table, fields: tuple[NestedField, ...], modes: Mapping[int, Mode]
) -> FileStats:
    """Return the stats of rows in the table's own columns, as much as the modes ask for."""
    gathered = StatsGatherer(fields, modes)
    gathered.add(rows)
    return gathered.stats()


class Portion(NamedTuple):
    """What some of a column's values come to."""

    nulls: int
    #: The least and the greatest, of types that are compared and where there are any.
    ends: pa.Array | None = None


class StatsGatherer:
    """Stats of a file whose rows come in portions: the same as if they came at once."""

    def __init__(self, fields: tuple[NestedField, ...], modes: Mapping[int, Mode]) -> None:
        self._fields = fields
        self._modes = modes
        self._columns: dict[int, _Column] = {}

    def add(self, rows: pa.Table) -> dict[int, Portion]:
        """Take in rows, whose columns are the fields in order; return what they alone come to."""
        portions: dict[int, Portion] = {}
        for top, name in zip(self._fields, rows.column_names, strict=True):
            for leaf, values in _leaves(top, rows[name]):
                mode = self._modes.get(leaf.field_id)
                if mode is not None and mode.kind != "none":
                    known = self._columns.get(leaf.field_id)
                    if known is None:
                        known = self._columns[leaf.field_id] = _Column(leaf.field_type, mode)
                    portions[leaf.field_id] = known.add(values)
        return portions

    def stats(self) -> FileStats:
        """Return the stats of all rows so far."""
        return {
            column(id, stat): value
            for id, each in self._columns.items()
            for stat, value in each.stats().items()
        }


@dataclass(slots=True)
class _Column:
    """What the stats of a column follow from."""

    type: IcebergType
    mode: Mode
    values: int = 0
    nulls: int = 0
    nans: int = 0
    #: Of what has a length: all of it, and the most.
    size_total: int = 0
    size_max: int | None = None
    #: The least and the greatest value of each portion that has any.
    ends: list[pa.Array] = field(default_factory=list)
    #: Of geometries: the box around each portion that has one.
    boxes: list[tuple[list[float | None], list[float | None]]] = field(default_factory=list)
    #: Of variants: what their fields hold.
    ranges: Ranges = field(default_factory=Ranges)

    def add(self, values: pa.ChunkedArray) -> Portion:
        """Take in values; return what they alone come to."""
        nulls, known = values.null_count, len(self.ends)
        self._take(values)
        return Portion(nulls, self.ends[-1] if len(self.ends) > known else None)

    def _take(self, values: pa.ChunkedArray) -> None:
        self.values += len(values)
        self.nulls += values.null_count
        if has_nans(self.type):
            is_nan = pc.is_nan(values)
            nans = pc.sum(is_nan).as_py() or 0
            self.nans += nans
            if nans:
                values = values.filter(pc.fill_null(pc.invert(is_nan), False))
        if values.null_count == len(values):
            return
        if is_variable_length(self.type):
            is_variant = isinstance(self.type, VariantType)
            sizes = pc.binary_length(pc.struct_field(values, VALUE) if is_variant else values)
            self.size_total += pc.sum(sizes).as_py()
            self.size_max = max(self.size_max or 0, pc.max(sizes).as_py())
        if self.mode.has_bounds:
            self._bound(values)

    def _bound(self, values: pa.ChunkedArray) -> None:
        match self.type:
            case GeometryType() | GeographyType():
                box = boxes(one_chunk(values), edges=edges_of(self.type)).whole()
                self.boxes += [] if box is None else [box]
            case VariantType():
                # A value at a time: only who stores fields apart asks for it.
                for pair in values.drop_null().to_pylist():
                    self.ranges.add(pair[METADATA], pair[VALUE])
            case _:
                self.ends.append(_ends(values))

    def stats(self) -> FileStats:
        """Return what is told of the column."""
        found = {"values": _count(self.values), "nulls": _count(self.nulls)}
        if has_nans(self.type):
            found["nans"] = _count(self.nans)
        if self.size_max is not None:
            average = self.size_total / (self.values - self.nulls)
            found["avg_size"] = pa.scalar(round(average), pa.int32())
            found["max_size"] = pa.scalar(self.size_max, pa.int32())
        if self.boxes:
            return found | _box(self.type, self.boxes)
        if self.ranges.found:
            return found | self._field_bounds()
        return found | (_bounds(self.type, self.ends, self.mode) if self.ends else {})

    def _field_bounds(self) -> FileStats:
        ends = self.ranges.encoded(self.mode.length)
        if ends is None:
            return {}
        lower, upper = (pa.scalar(end, VARIANT_BOUND) for end in ends)
        return {"lower": lower, "upper": upper, "tight": pa.scalar(False)}


def _count(number: int) -> pa.Scalar:
    return pa.scalar(number, pa.int64())


def _leaves(
    field: NestedField, values: pa.ChunkedArray
) -> Iterator[tuple[NestedField, pa.ChunkedArray]]:
    """Yield the fields within structs; null where a struct around them is."""
    match field.field_type:
        case StructType():
            for at, child in enumerate(field.field_type.fields):
                yield from _leaves(child, pc.struct_field(values, [at]))
        case ListType() | MapType():
            pass
        case _:
            yield field, _plain(values)


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if not isinstance(values.type, pa.BaseExtensionType):
        return values
    return pa.chunked_array([each.storage for each in values.chunks], values.type.storage_type)


def _ends(values: pa.ChunkedArray) -> pa.Array:
    """Return the least and the greatest of values, of which some are not null."""
    # Not every version orders fixed-size binary; plain binary has the same, bytewise order.
    is_fixed = pa.types.is_fixed_size_binary(values.type)
    ends = pc.min_max(values.cast(pa.binary()) if is_fixed else values)
    lower, upper = ends["min"], ends["max"]
    if pa.types.is_floating(values.type):
        lower, upper = _zero(lower, values, least=True), _zero(upper, values, least=False)
    return pa.array([lower, upper], lower.type)


def _bounds(type: IcebergType, ends: list[pa.Array], mode: Mode) -> FileStats:
    want = bounds_type(type)
    if want is None:
        return {}
    lower, upper = _ends(pa.chunked_array(ends))
    is_fixed = isinstance(type, FixedType | UUIDType)
    if mode.kind != "truncate" or is_fixed or not _has_length(lower.type):
        return {
            "lower": lower.cast(want),
            "upper": upper.cast(want),
            "tight": pa.scalar(True),
        }
    assert mode.length is not None
    least, most = lower.as_py(), upper.as_py()
    short, high = truncate_lower(least, mode.length), truncate_upper(most, mode.length)
    found = {"lower": pa.scalar(short, want), "tight": pa.scalar(short == least and high == most)}
    if high is not None:
        found["upper"] = pa.scalar(high, want)
    return found


def _box(
    type: IcebergType, parts: list[tuple[list[float | None], list[float | None]]]
) -> FileStats:
    """Return the box around boxes."""
    least, most = (np.array([part[end] for part in parts], np.float64) for end in (0, 1))
    # Lines on the earth reach as far as is certain, which may be a little more than they do.
    earth = edges_of(type) is not None
    found = Boxes(least=least, most=most, sound=np.ones(len(parts), np.bool_), earth=earth).whole()
    assert found is not None
    want = bounds_type(type)
    lower, upper = (pa.scalar(dict(zip(GEO_AXES, end, strict=True)), want) for end in found)
    return {"lower": lower, "upper": upper, "tight": pa.scalar(not earth)}


def _has_length(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_binary(type))


def _zero(bound: pa.Scalar, values: pa.ChunkedArray, *, least: bool) -> pa.Scalar:
    """Return the bound with the sign its zero must have: -0.0 comes before +0.0."""
    if bound.as_py() != 0:
        return bound
    numbers = values.to_numpy()
    signs = np.signbit(numbers[numbers == 0])
    negative = bool(signs.any()) if least else bool(signs.all())
    return pa.scalar(-0.0 if negative else 0.0, bound.type)


def partition_stats(field_id: int, value: pa.Scalar, rows: int) -> FileStats:
    """Return the stats of a field that has one value for all rows of a file."""
    is_nan = pa.types.is_floating(value.type) and value.is_valid and isnan(value.as_py())
    counts = {"values": rows, "nulls": 0 if value.is_valid else rows}
    if pa.types.is_floating(value.type):
        counts["nans"] = rows if is_nan else 0
    found = {stat: pa.scalar(count, pa.int64()) for stat, count in counts.items()}
    if value.is_valid and not is_nan:
        found |= {"lower": value, "upper": value, "tight": pa.scalar(True)}
    return {column(field_id, stat): each for stat, each in found.items()}
