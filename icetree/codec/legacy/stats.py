"""Column metrics and partition tuples of v1-v3 manifests, as stats columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import IcebergType, StringType, TimestampNanoType, TimestamptzNanoType

from icetree.codec.avro.avro import Field, fields_of, items_of, kind_of, require_kind, to_array
from icetree.codec.single_value import decode_pair, decode_plain, plain_array, scatter
from icetree.codec.unknown import texts_of_unknown
from icetree.errors import CorruptTable
from icetree.spec.entry import stats
from icetree.spec.entry.entry import Content
from icetree.spec.fields import DELETE_FILE_PATH_FIELD
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape
from icetree.spec.schema.types import bounds_type, has_nans

#: Each stat, the id of the map it is in, and whether its values are bytes.
_MAPS: Final[dict[str, tuple[int, bool]]] = {
    "values": (109, False),
    "nulls": (110, False),
    "nans": (137, False),
    "lower": (125, True),
    "upper": (128, True),
}
_NANOS: Final = (TimestampNanoType, TimestamptzNanoType)
MAP_IDS: Final = frozenset(id for id, _ in _MAPS.values())


class Metrics:
    """The maps from column id to count or bound, gathered a chunk of files at a time."""

    def __init__(self, fields: dict[int, Field], *, file: str) -> None:
        self._file = file
        self._gathered: dict[str, _Gathered] = {}
        for stat, (id, is_bytes) in _MAPS.items():
            if id in fields:
                self._gathered[stat] = _Gathered(fields[id], is_bytes=is_bytes, file=file)
        self._size = 0

    def add(self, files: list[dict[str, Any]]) -> None:
        """Take over the metrics of some files."""
        for gathered in self._gathered.values():
            gathered.add(files, self._size)
        self._size += len(files)

    def stats(
        self, base: dict[str, pa.Array], shape: Shape, wanted: Collection[int] | None
    ) -> dict[str, pa.Array]:
        """Return the stats columns of every field that has any and whose type is known.

        Equality deletes keep those of their equality fields, and position deletes those of the
        path they delete from, which are absolute as they were written: metrics of other
        columns of a delete file say nothing about the rows of the table. `tight` stays unknown,
        as v1-v3 never promise that a bound is the value of a row.
        """
        maps = {stat: gathered.map() for stat, gathered in self._gathered.items()}
        present = np.unique(np.concatenate([[], *(each.keys for each in maps.values())]))
        found: dict[str, pa.Array] = {}
        applies = _Applies(base)
        for field_id in present.astype(np.int64).tolist():
            if wanted is not None and field_id not in wanted:
                continue
            type = _type(shape, field_id)
            rows = applies.to(field_id)
            if type is not None and (rows is None or rows.any()):
                for stat, column in self._field(maps, field_id, type, base):
                    if rows is not None:
                        column = pc.if_else(pa.array(rows), column, pa.scalar(None, column.type))
                    if column.null_count < len(column):
                        found[stats.column(field_id, stat)] = column
        return found

    def _field(
        self, maps: dict[str, _Map], field_id: int, type: IcebergType, base: dict[str, pa.Array]
    ) -> Iterator[tuple[str, pa.Array]]:
        picked = {stat: each.pick(field_id, self._size) for stat, each in maps.items()}
        bounds = bounds_type(type)
        if bounds is not None and picked.keys() & {"lower", "upper"}:
            unknown = pa.nulls(self._size, pa.binary())
            lower, upper = decode_pair(
                picked.get("lower", unknown),
                picked.get("upper", unknown),
                type,
                file=self._file,
                what=f"column {field_id}",
            )
            if isinstance(type, _NANOS):
                # Of ORC, Iceberg Java tells bounds in microseconds as if they were nanoseconds, and
                # nothing in a manifest tells who wrote it: they would rule out files that match.
                is_orc = pc.equal(base["file_format"], "orc")
                nothing = pa.scalar(None, lower.type)
                lower, upper = (pc.if_else(is_orc, nothing, each) for each in (lower, upper))
            yield from (("lower", lower), ("upper", upper))
        if "values" in picked:
            # Of ORC, Iceberg Java counts no row in which a struct around the field is null: a field
            # with fewer values than rows is null in some, whatever the count of its nulls says.
            whole = pc.fill_null(pc.equal(picked["values"], base["record_count"]), True)
            nothing = pa.scalar(None, pa.int64())
            for stat in picked.keys() & {"values", "nulls"}:
                picked[stat] = pc.if_else(whole, picked[stat], nothing)
        for stat in ("values", "nulls", "nans"):
            if stat in picked and (stat != "nans" or has_nans(type)):
                yield stat, picked[stat]


def _type(shape: Shape, field_id: int) -> IcebergType | None:
    return StringType() if field_id == DELETE_FILE_PATH_FIELD else shape.types.get(field_id)


class _Applies:
    """Tells which entries' metrics of a column describe rows of the table."""

    def __init__(self, base: dict[str, pa.Array]) -> None:
        self._content = base["content_type"].to_numpy(zero_copy_only=False)
        ids = base["equality_ids"]
        self._equality_ids = ids.flatten().to_numpy(zero_copy_only=False)
        self._owners = pc.list_parent_indices(ids).to_numpy(zero_copy_only=False)
        self._only_data = not self._content.any()

    def to(self, field_id: int) -> np.ndarray[Any, Any] | None:
        """Return a mask over entries, or None for all."""
        if self._only_data:
            return None
        if field_id == DELETE_FILE_PATH_FIELD:
            return self._content == Content.POSITION_DELETES  # type: ignore[no-any-return]
        is_equality_field = np.zeros(len(self._content), bool)
        is_equality_field[self._owners[self._equality_ids == field_id]] = True
        is_equality_delete = self._content == Content.EQUALITY_DELETES
        return (self._content == Content.DATA) | (is_equality_delete & is_equality_field)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Map:
    """One map of every file, as three columns sorted by key."""

    keys: np.ndarray[Any, Any]
    rows: np.ndarray[Any, Any]
    values: pa.Array
    file: str

    def pick(self, field_id: int, size: int) -> pa.Array:
        """Return the value under a key for each of `size` files."""
        start, end = np.searchsorted(self.keys, [field_id, field_id + 1]).tolist()
        rows = self.rows[start:end]
        if (np.diff(rows) == 0).any():
            raise CorruptTable(self.file, f"column {field_id} has two metrics in one file")
        return scatter(self.values.slice(start, end - start), rows, size)


class _Gathered:
    def __init__(self, field: Field, *, is_bytes: bool, file: str) -> None:
        self._name = field.name
        self._file = file
        self._type = pa.binary() if is_bytes else pa.int64()
        self._keys: list[np.ndarray[Any, Any]] = []
        self._rows: list[np.ndarray[Any, Any]] = []
        self._values: list[pa.Array] = []
        require_kind(field, "array", file=file, name=field.name)
        pair = {each.name: each for each in fields_of(items_of(field), file=file).values()}
        if pair.keys() != {"key", "value"}:
            raise CorruptTable(file, f"{field.name} is not a map")
        require_kind(pair["key"], "integer", file=file, name=f"{field.name} key")
        value = "bytes" if is_bytes else "integer"
        require_kind(pair["value"], value, file=file, name=f"{field.name} value")

    def add(self, files: list[dict[str, Any]], start: int) -> None:
        maps = [one[self._name] or () for one in files]
        lengths = np.fromiter((len(each) for each in maps), np.int64, len(maps))
        pairs = [pair for each in maps for pair in each]
        self._keys.append(np.array([pair["key"] for pair in pairs], np.int64))
        self._rows.append(np.repeat(np.arange(start, start + len(maps)), lengths))
        values = [pair["value"] for pair in pairs]
        self._values.append(to_array(values, self._type, file=self._file, name=self._name))

    def map(self) -> _Map:
        if not self._keys:
            none = np.empty(0, np.int64)
            return _Map(keys=none, rows=none, values=pa.array([], self._type), file=self._file)
        keys, rows = np.concatenate(self._keys), np.concatenate(self._rows)
        order = np.argsort(keys, kind="stable")
        values = pa.concat_arrays(self._values).take(pa.array(order))
        return _Map(keys=keys[order], rows=rows[order], values=values, file=self._file)


class Tuples:
    """Partition tuples, gathered a chunk of files at a time."""

    def __init__(
        self,
        field: Field | None,
        expressions: tuple[Expression, ...],
        shape: Shape,
        *,
        version: int,
        file: str,
    ) -> None:
        self._file = file
        self._stored: dict[int, Field] = {}
        self._types: dict[int, IcebergType] = {}
        self._unknown: set[int] = set()
        self._parts: dict[int, list[pa.Array]] = {}
        if field is None:
            if expressions:
                raise CorruptTable(file, "partition (field id 102) is missing")
            return
        self._name = field.name
        require_kind(field, "record", file=file, name="partition")
        members = fields_of(field.type, file=file)
        for at, expression in enumerate(expressions):
            type = shape.types.get(expression.stats_field)
            if expression.transform == "void" or type is None or bounds_type(type) is None:
                continue
            stored = _member(members, expressions, at, version)
            if stored is None:
                raise CorruptTable(file, f"partition field {expression.name} is missing")
            self._stored[expression.stats_field] = stored
            self._types[expression.stats_field] = type
            if expression.is_unknown:
                self._unknown.add(expression.stats_field)
            self._parts[expression.stats_field] = []

    def add(self, files: list[dict[str, Any]]) -> None:
        """Take over the tuples of some files."""
        if not self._stored:
            return
        tuples = [one[self._name] for one in files]
        for field_id, stored in self._stored.items():
            values = [one[stored.name] for one in tuples]
            what = f"partition field {stored.name}"
            type = self._types[field_id]
            if field_id in self._unknown:
                part = texts_of_unknown(plain_array(values, file=self._file, what=what))
            else:
                part = decode_plain(values, kind_of(stored.type), type, file=self._file, what=what)
            self._parts[field_id].append(part)

    def stats(self, record_count: pa.Array) -> dict[str, pa.Array]:
        """Return the stats columns of the spec's expressions, which say the tuple exactly."""
        found = {}
        for field_id, type in self._types.items():
            empty = pa.array([], bounds_type(type))
            value = pa.concat_arrays(self._parts[field_id] or [empty])
            is_null = pc.is_null(value)
            zero = pa.scalar(0, pa.int64())
            one = {"values": record_count, "nulls": pc.if_else(is_null, record_count, zero)}
            if has_nans(type):
                is_nan = pc.fill_null(pc.is_nan(value), False)
                one["nans"] = pc.if_else(is_nan, record_count, zero)
                value = pc.if_else(is_nan, pa.scalar(None, value.type), value)
            has_bounds = pc.is_valid(value)
            tight = pc.if_else(has_bounds, True, pa.scalar(None, pa.bool_()))
            one |= {"lower": value, "upper": value, "tight": tight}
            for stat, column in one.items():
                found[stats.column(field_id, stat)] = column
        return found


def _member(
    members: dict[int, Field], expressions: tuple[Expression, ...], at: int, version: int
) -> Field | None:
    ids = [expression.partition_field_id for expression in expressions]
    # v1 did not track ids of partition fields: readers numbered them in order, and a v1 spec
    # never reorders or drops a field.
    if version == 1 and not set(ids) <= members.keys():
        in_order = list(members.values())
        return in_order[at] if len(in_order) == len(expressions) else None
    return members.get(ids[at]) if ids[at] is not None else None  # type: ignore[arg-type]
