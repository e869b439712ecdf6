"""Which rows of a source a row of the table matches, by equal values in some columns.

As in SQL a null matches nothing; as in Spark a NaN matches a NaN, and both zeros are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import InvalidInput
from icetree.rows.schema import plain

_is = pa.types
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
#: So many rows, or pairs of rows, are looked at at once.
MANY: Final = 1 << 16
#: Types of keys of which there may be more than 2 GiB in a source.
_ROOMY: Final = (pa.large_string(), pa.large_binary())
_NONE: Final = -1
#: How many times of a unit a second has.
_A_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Index:
    """The keys of a source, numbered, ready to be looked for."""

    def __init__(self, keys: Sequence[pa.ChunkedArray]) -> None:
        columns = [_comparable(key.combine_chunks()) for key in keys]
        self._distinct = [column.unique().drop_null() for column in columns]
        #: The pairs of codes that there are, column by column, in order.
        self._steps: list[Numbers] = []
        codes = self._coded(columns, learn=True)
        known = np.flatnonzero(codes != _NONE)
        size = int(codes.max()) + 1 if len(known) else 0
        #: How many rows of the source have each key.
        self.counts: Numbers = np.bincount(codes[known], minlength=size)
        #: Rows of the source by key, and where those of each key begin.
        self._rows = known[np.argsort(codes[known], kind="stable")]
        self._starts = np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int64)

    def find(self, keys: Sequence[pa.Array]) -> tuple[Numbers, Numbers]:
        """Return the numbers of the rows that match, and of the key that each has."""
        codes = self._coded([_comparable(key) for key in keys], learn=False)
        found = np.flatnonzero(codes != _NONE)
        return found, codes[found]

    def pairs(self, keys: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield, so many at once, pairs: which of the keys, and a row of the source that has it."""
        counts = self.counts[keys]
        ends = np.cumsum(counts)
        for first in range(0, int(ends[-1]) if len(keys) else 0, MANY):
            numbers = np.arange(first, min(first + MANY, int(ends[-1])))
            at = np.searchsorted(ends, numbers, side="right")
            within = numbers - (ends[at] - counts[at])
            yield at, self._rows[self._starts[keys[at]] + within]

    def rows_of(self, keys: Flags) -> Numbers:
        """Return the rows of the source that have one of the flagged keys."""
        return self._rows[np.repeat(keys, self.counts)]

    def _coded(self, columns: Sequence[pa.Array], *, learn: bool) -> Numbers:
        """Return one number for each row that tells its key, -1 for one that is not known."""
        codes: Numbers | None = None
        step = 0
        for column, distinct in zip(columns, self._distinct, strict=True):
            at = pc.fill_null(pc.index_in(column, value_set=distinct, skip_nulls=True), _NONE)
            own = at.to_numpy(zero_copy_only=False).astype(np.int64)
            if codes is None:
                codes = own
                continue
            both = np.where((codes < 0) | (own < 0), _NONE, codes * len(distinct) + own)
            if learn:
                self._steps.append(np.unique(both[both != _NONE]))
            codes = _place_in(self._steps[step], both)
            step += 1
        assert codes is not None  # there is a key at least
        return codes


def _place_in(known: Numbers, codes: Numbers) -> Numbers:
    if not len(known):
        return np.full(len(codes), _NONE)
    at = np.searchsorted(known, codes)
    at = np.minimum(at, len(known) - 1)
    return np.where(known[at] == codes, at, _NONE)


def _comparable(values: pa.Array) -> pa.Array:
    values = plain(values)
    if _is.is_floating(values.type):
        # A set tells the two zeros apart, and NaNs of other bits; the sum of both zeros is one.
        nan = pa.scalar(float("nan"), values.type)
        return pc.if_else(pc.is_nan(values), nan, pc.add(values, pa.scalar(0.0, values.type)))
    return values


def meeting(table: pa.DataType, source: pa.DataType, *, column: str) -> pa.DataType:
    """Return the type in which values of a table and of a source compare as equal or not."""
    wanted, table, source = source, _bare(table), _bare(source)
    if table == source:
        return wanted if wanted in _ROOMY else table
    if _is_number(table) and _is_number(source):
        return _number(table, source)
    types = (table, source)
    if all(map(_is.is_date, types)):
        return pa.date32()
    if all(map(_is.is_timestamp, types)) and (table.tz is None) == (source.tz is None):
        return pa.timestamp(_finer(table, source), table.tz)
    if all(map(_is.is_time, types)):
        return pa.time64(_finer(table, source))
    raise InvalidInput(
        f"column {column!r} is {table} in the table and {source} in the source: "
        "they cannot be compared, cast it first"
    )


def _number(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if _is.is_floating(one) or _is.is_floating(other):
        return pa.float64()
    if _is.is_integer(one) and _is.is_integer(other):
        return pa.int64()
    left, right = _as_decimal(one), _as_decimal(other)
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale)
    try:
        return pa.decimal256(digits + scale, scale)
    except ValueError:
        raise InvalidInput(
            f"{one} in the table and {other} in the source have no type in common: cast the source's first"
        ) from None


def _finer(one: pa.DataType, other: pa.DataType) -> str:
    return "ns" if "ns" in (one.unit, other.unit) else "us"


def _bare(type: pa.DataType) -> pa.DataType:
    """Return a type without what is around values and how they are laid out."""
    if isinstance(type, pa.BaseExtensionType):
        type = type.storage_type
    if _is.is_dictionary(type):
        type = type.value_type
    if _is.is_large_string(type) or _is.is_string_view(type):
        return pa.string()
    if _is.is_large_binary(type) or _is.is_binary_view(type):
        return pa.binary()
    return type


def _is_number(type: pa.DataType) -> bool:
    return bool(_is.is_integer(type) or _is.is_floating(type) or _is.is_decimal(type))


def _as_decimal(type: pa.DataType) -> pa.Decimal128Type:
    return type if _is.is_decimal(type) else pa.decimal128(20, 0)


def as_type(values: pa.Array | pa.ChunkedArray, type: pa.DataType, *, column: str) -> Any:
    """Return key values in the type in which they meet; null, which nothing matches, beyond its ends."""
    if isinstance(values.type, pa.BaseExtensionType):
        values = pc.cast(values, values.type.storage_type)
    if _is.is_dictionary(values.type):
        values = pc.cast(values, values.type.value_type)
    if values.type == type:
        return values
    if _is.is_timestamp(type) and values.type.unit != type.unit:
        values = _within(values, type)
    try:
        return pc.cast(values, type, safe=not _is.is_floating(type))
    except pa.ArrowException as error:
        told = str(error).partition("\n")[0]
        raise InvalidInput(f"column {column!r} cannot be compared as {type}: {told}") from None


def _within(times: pa.Array | pa.ChunkedArray, type: pa.TimestampType) -> Any:
    """Return times without those that a finer type has not."""
    last = (2**63 - 1) // (_A_SECOND[type.unit] // _A_SECOND[times.type.unit])
    counts = pc.cast(times, pa.int64())
    inside = pc.and_(pc.greater_equal(counts, -last), pc.less_equal(counts, last))
    return pc.if_else(inside, times, pa.scalar(None, times.type))
