"""Which rows of the table match which of a source: files chosen by the source's keys, rows by equality."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg import expressions as ice
from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression
from pyiceberg.types import NestedField

from icetree.errors import InvalidInput
from icetree.rows.matching.keys import MANY, Index, Numbers, as_type, meeting
from icetree.rows.schema import arrow_type, plain
from icetree.spec.schema.shape import Shape
from icetree.spec.texts import did_you_mean
from icetree.table.rows.clauses import TWICE
from icetree.table.rows.condition import all_of
from icetree.table.rows.target import Target, positions_of
from icetree.tree.prune.bind import bind

_is = pa.types
#: So many keys are named one by one to whoever chooses files by them.
_FEW_KEYS: Final = 200
#: So many rows that match are gathered before they are read.
_MATCHES: Final = 1 << 20
#: About so many bytes of rows are put together at once.
_BYTES: Final = 1 << 26
_TEXTS: Final = (_is.is_string, _is.is_large_string, _is.is_binary, _is.is_large_binary)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A column that rows match by."""

    field: NestedField
    #: The type in which both sides compare.
    type: pa.DataType


#: What no name of a column has that anybody would match by.
_CONDITION: Final = re.compile(r"[=<>()]|\s(and|or|is|in|like|between)\s", re.IGNORECASE)


def keys_of(names: Sequence[str], shape: Shape, source: pa.Schema, *, table: str) -> list[Key]:
    """Return the columns to match by; InvalidInput for what one side lacks or cannot compare."""
    if not names:
        raise InvalidInput(f"table {table}: say by which columns rows match, with on=")
    found = []
    for name in names:
        if _CONDITION.search(name) and name not in source.names:
            raise InvalidInput(
                f"table {table}: on={name!r} is a condition, but in one process rows match by names of "
                "columns: give those, such as on=['id'], and say the rest in the clauses; "
                "Spark's merge takes conditions"
            )
        field = next((each for each in shape.schema.fields if each.name == name), None)
        for there, whose in (
            (field is not None, f"table {table}"),
            (name in source.names, "the source"),
        ):
            if not there:
                known = source.names if field else [each.name for each in shape.schema.fields]
                raise InvalidInput(
                    f"{whose} has no column {name!r} to match by; there are: {', '.join(known)}"
                    f"{did_you_mean(name, known)}"
                )
        assert field is not None  # told above
        if not field.field_type.is_primitive:
            raise InvalidInput(
                f"table {table}: column {name!r} is {field.field_type}: rows do not match by it"
            )
        own = arrow_type(field.field_type)
        found.append(Key(field=field, type=meeting(own, source.field(name).type, column=name)))
    return found


#: Rows of the table that match, by file: their positions, which ascend, and the key of each.
Matches = dict[int, tuple[Numbers, Numbers]]


class Matching:
    """A source's keys beside a table; with `once`, InvalidInput where a row matches two rows of it."""

    def __init__(self, keys: Sequence[Key], source: pa.Table, *, once: bool) -> None:
        self.keys = keys
        self._values = [
            as_type(source[key.field.name], key.type, column=key.field.name) for key in keys
        ]
        self._index = Index(self._values)
        self._often = self._index.counts > (1 if once else source.num_rows)
        self._seen = np.zeros(len(self._index.counts), np.bool_)
        self._size = source.num_rows

    @property
    def names(self) -> list[str]:
        """The columns that rows match by."""
        return [key.field.name for key in self.keys]

    def filter(self, shape: Shape) -> BooleanExpression:
        """Return what a row must be like to have a match, as far as a filter can say it."""
        parts = [
            _bounded(key, values, shape)
            for key, values in zip(self.keys, self._values, strict=True)
        ]
        return all_of(parts)

    def find(self, batch: pa.RecordBatch) -> tuple[Numbers, Numbers]:
        """Return the rows of a batch that match, by their numbers, and the key of each."""
        columns = [
            as_type(plain(batch.column(key.field.name)), key.type, column=key.field.name)
            for key in self.keys
        ]
        rows, keys = self._index.find(columns)
        if self._often[keys].any():
            raise InvalidInput(TWICE)
        self._seen[keys] = True
        return rows, keys

    def matches(self, target: Target) -> Iterator[Matches]:
        """Yield the rows of the target that match, a part after the other; only keys are read.

        So many are in a part that what is told of them takes little memory.
        """
        found: dict[int, list[tuple[Numbers, Numbers]]] = {}
        size = 0
        for task, batch in target.read(self.names):
            # Where a file ends, since row groups of which a part is read are read twice.
            if size >= (_MATCHES if task not in found else 4 * _MATCHES):
                yield _joined(found)
                found, size = {}, 0
            rows, keys = self.find(batch)
            if len(rows):
                found.setdefault(task, []).append((positions_of(batch)[rows], keys))
                size += len(rows)
        if found:
            yield _joined(found)

    def pairs(self, keys: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield, so many at once, pairs: which of these keys, and a row of the source that has it."""
        return self._index.pairs(keys)

    def unmatched(self) -> Numbers:
        """Return the rows of the source that nothing has matched which was looked at so far."""
        alone = np.ones(self._size, np.bool_)
        alone[self._index.rows_of(self._seen)] = False
        return np.flatnonzero(alone)


def _joined(found: dict[int, list[tuple[Numbers, Numbers]]]) -> Matches:
    return {
        task: (np.concatenate([each for each, _ in parts]), np.concatenate([k for _, k in parts]))
        for task, parts in found.items()
    }


def _bounded(key: Key, values: pa.ChunkedArray, shape: Shape) -> BooleanExpression:
    """Return the least filter on a column that lets all of the source's values through."""
    values = values.drop_null()
    if not len(values):
        return AlwaysFalse()
    name = key.field.name
    parts: list[BooleanExpression] = []
    if _is.is_floating(values.type):
        if not _is.is_floating(arrow_type(key.field.field_type)):
            # Several numbers are the same float, of which a filter would let one through.
            return AlwaysTrue()
        nan = pc.is_nan(values)
        if pc.any(nan).as_py():
            parts.append(_test(ice.IsNaN, name))
            values = values.filter(pc.invert(nan))
    if len(values):
        if not _is_ordered(values.type):
            return AlwaysTrue()
        distinct = values.unique() if len(values) <= _FEW_KEYS else None
        if distinct is not None:
            parts.append(_test(ice.In, name, set(_literals(distinct))))
        else:
            ends = pc.min_max(values)
            low, high = _literals(pa.array([ends["min"], ends["max"]], values.type))
            parts.append(
                ice.And(
                    _test(ice.GreaterThanOrEqual, name, low),
                    _test(ice.LessThanOrEqual, name, high),
                )
            )
    found = reduce(ice.Or, parts)
    try:
        bind(found, shape)
    except InvalidInput:
        return AlwaysTrue()
    return found


def _test(kind: Any, name: str, *values: Any) -> BooleanExpression:
    # What PyIceberg's constructors take is not what they declare.
    found: BooleanExpression = kind(name, *values)
    return found


def _is_ordered(type: pa.DataType) -> bool:
    """Tell whether filters compare values of a type."""
    numbers = (_is.is_integer, _is.is_floating, _is.is_decimal)
    texts, times = (_is.is_string, _is.is_large_string), (_is.is_date, _is.is_timestamp)
    return any(kind(type) for kind in (*numbers, *texts, *times))


def _literals(values: pa.Array) -> list[Any]:
    """Return values as filters take them."""
    if _is.is_temporal(values.type):
        values = values.cast(pa.string())
    try:
        return list(values.to_pylist())
    except UnicodeDecodeError as error:
        raise InvalidInput(f"a key of the source is not UTF-8 text: {error.object!r}") from None


def cuts(sizes: Numbers) -> Iterator[slice]:
    """Yield parts of rows of so many bytes each: few enough rows, and not too many bytes."""
    for start in range(0, len(sizes), MANY):
        ends = np.cumsum(sizes[start : start + MANY]) // _BYTES
        first = start
        for last in (*(np.flatnonzero(np.diff(ends)) + start + 1), start + len(ends)):
            yield slice(first, last)
            first = last


def sizes_of(rows: pa.Table) -> Numbers:
    """Return about how many bytes each row has."""
    sizes = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        if any(kind(column.type) for kind in _TEXTS):
            sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy()
        elif len(sizes):
            sizes += column.nbytes // len(sizes)
    return sizes
