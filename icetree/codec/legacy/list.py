"""Manifest lists of v1, v2 and v3: each manifest as the root entry it turns into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import IcebergType

from icetree.codec.avro.avro import (
    AvroFile,
    Field,
    Rows,
    fields_of,
    items_of,
    open_avro,
    require_kind,
    to_array,
)
from icetree.codec.legacy.alike import gathered, parted, told_header
from icetree.codec.legacy.columns import Columns, Source, as_type, require, version_of
from icetree.codec.places import stored_form_of_full
from icetree.codec.single_value import decode_pair, scatter
from icetree.errors import CorruptTable, NotFound
from icetree.spec.entry import stats
from icetree.spec.entry.entry import Content, Entries, Status, complete
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape
from icetree.spec.schema.types import bounds_type, has_nans

_ALL: Final = (1, 2, 3)
_SINCE_V2: Final = (2, 3)


def _source(name: str, id: int, kind: str, required: tuple[int, ...] = ()) -> Source:
    return Source(name=name, id=id, kind=kind, required=required)


_SOURCES: Final = (
    _source("location", 500, "string", _ALL),
    _source("file_size_in_bytes", 501, "integer", _ALL),
    _source("partition_spec_id", 502, "integer", _ALL),
    _source("content_type", 517, "integer", _SINCE_V2),
    _source("sequence_number", 515, "integer", _SINCE_V2),
    _source("min_sequence_number", 516, "integer", _SINCE_V2),
    _source("snapshot_id", 503, "integer", _SINCE_V2),
    _source("added_files_count", 504, "integer", _SINCE_V2),
    _source("existing_files_count", 505, "integer", _SINCE_V2),
    _source("deleted_files_count", 506, "integer", _SINCE_V2),
    _source("added_rows_count", 512, "integer", _SINCE_V2),
    _source("existing_rows_count", 513, "integer", _SINCE_V2),
    _source("deleted_rows_count", 514, "integer", _SINCE_V2),
    _source("key_metadata", 519, "bytes"),
    _source("first_row_id", 520, "integer"),
)
_COUNTS: Final = ("added_files_count", "existing_files_count", "deleted_files_count")

_PARTITIONS: Final = 507
_SUMMARY: Final = {
    "contains_null": (509, "boolean"),
    "contains_nan": (518, "boolean"),
    "lower": (510, "bytes"),
    "upper": (511, "bytes"),
}


def decode_manifest_list(data: bytes, *, file: str, shape: Shape, table_location: str) -> Entries:
    """Return the manifests of a list as EXISTING root entries, content 3 or 4.

    Summaries of partition fields become stats of the spec's expressions: bounds, and the counts
    that follow from them. `contains_null` and `contains_nan` tell zero from unknown, no more.

    `record_count` counts entries of every status. It is null for a manifest of a v1 list that
    lacks any of the three file counts: how many entries there are is known only once the
    manifest is read, and whoever writes a root must do that first.
    """
    [found] = _decoded([open_avro(data, file=file)], shape, table_location)
    return found


def decode_manifest_lists(
    lists: Mapping[str, bytes], *, shape: Shape, table_location: str
) -> dict[str, Entries]:
    """Return what `decode_manifest_list` does of each file; those of one schema are read as one.

    CorruptTable where one of them is broken, whichever that is.
    """
    opened = [open_avro(data, file=file) for file, data in lists.items()]
    found: dict[str, Entries] = {}
    for alike in gathered(opened, told_header):
        some = _decoded(alike, shape, table_location)
        found |= {avro.file: each for avro, each in zip(alike, some, strict=True)}
    return found


def _decoded(alike: Sequence[AvroFile], shape: Shape, table_location: str) -> list[Entries]:
    """Return the manifests of each of some lists of one schema and version."""
    avro, file = alike[0], alike[0].file
    fields = avro.fields()
    version = version_of(avro, default=2 if 515 in fields else 1)
    columns = Columns(_SOURCES, fields, version=version, file=file)
    summaries = _Summaries(fields.get(_PARTITIONS), file=file)
    rows = Rows(alike)
    for some in rows.chunks():
        columns.add(some)
        summaries.add(some)
    found = columns.gathered()
    size = len(found["location"])
    found |= _derived(found, size, table_location=table_location, file=file)
    whole = complete(pa.table(found | summaries.stats(found["partition_spec_id"], shape)))
    return parted(whole, rows.counts)


def _derived(
    found: dict[str, pa.Array], size: int, *, table_location: str, file: str
) -> dict[str, pa.Array]:
    zero = as_type(0, size, "sequence_number")
    sequence = found.get("sequence_number", zero)
    content = found.get("content_type", as_type(0, size, "content_type"))
    is_known = pc.is_in(content, pa.array([0, 1], pa.int32()))
    require(is_known, file=file, rule="a manifest's content is neither data nor deletes")
    counts = [found.get(name, as_type(None, size, name)).cast(pa.int64()) for name in _COUNTS]
    return {
        "content_type": pc.add(content, pa.scalar(Content.DATA_MANIFEST, pa.int32())),
        "location": stored_form_of_full(found["location"], table_location, file=file),
        "file_format": pa.repeat(pa.scalar("avro"), size),
        "status": as_type(Status.EXISTING, size, "status"),
        "sequence_number": sequence,
        "file_sequence_number": sequence,
        "min_sequence_number": found.get("min_sequence_number", zero),
        "record_count": pc.add(pc.add(counts[0], counts[1]), counts[2]),
    }


class _Summaries:
    """Partition field summaries, flattened: one row per manifest and partition field."""

    def __init__(self, field: Field | None, *, file: str) -> None:
        self._field = field
        self._file = file
        self._names: dict[str, str] = {}
        self._lengths: list[int] = []
        self._parts: dict[str, list[Any]] = {name: [] for name in _SUMMARY}
        if field is None:
            return
        require_kind(field, "array", file=file, name="partitions")
        members = fields_of(items_of(field), file=file)
        for name, (id, kind) in _SUMMARY.items():
            if id in members:
                require_kind(members[id], kind, file=file, name=f"partitions.{name}")
                self._names[name] = members[id].name

    def add(self, rows: list[dict[str, Any]]) -> None:
        if self._field is None:
            self._lengths += [0] * len(rows)
            return
        lists = [row[self._field.name] or () for row in rows]
        self._lengths += [len(each) for each in lists]
        for name, part in self._parts.items():
            stored = self._names.get(name)
            part += [one.get(stored) for each in lists for one in each]

    def stats(self, spec_ids: pa.Array, shape: Shape) -> dict[str, pa.Array]:
        """Return the stats columns, of as many rows as there are manifests."""
        lengths = np.array(self._lengths, np.int64)
        starts = np.cumsum(lengths) - lengths
        flat = {
            name: to_array(
                self._parts[name],
                pa.binary() if kind == "bytes" else pa.bool_(),
                file=self._file,
                name=f"partitions.{name}",
            )
            for name, (_, kind) in _SUMMARY.items()
        }
        specs = spec_ids.to_numpy(zero_copy_only=False)
        pieces: dict[int, list[_Piece]] = {}
        for spec_id in np.unique(specs).tolist():
            has = np.flatnonzero((specs == spec_id) & (lengths > 0))
            expressions = _spec(shape, spec_id, self._file)
            if len(has) and (lengths[has] != len(expressions)).any():
                rule = f"a manifest of spec {spec_id} does not summarize each partition field once"
                raise CorruptTable(self._file, rule)
            for at, expression in enumerate(expressions):
                type = shape.types.get(expression.stats_field)
                if expression.is_unknown:
                    continue  # nobody knows what the bytes of its bounds mean
                if len(has) and type is not None and bounds_type(type) is not None:
                    picked = pa.array(starts[has] + at)
                    columns = {name: column.take(picked) for name, column in flat.items()}
                    piece = _Piece(rows=has, columns=columns, type=type)
                    pieces.setdefault(expression.stats_field, []).append(piece)
        found = {}
        for field_id, parts in pieces.items():
            for stat, column in self._merge(parts, len(specs)):
                found[stats.column(field_id, stat)] = column
        return found

    def _merge(self, parts: list[_Piece], size: int) -> Iterator[tuple[str, pa.Array]]:
        rows = np.concatenate([part.rows for part in parts])
        order = np.argsort(rows)
        type = parts[0].type

        def column(name: str) -> pa.Array:
            whole = pa.concat_arrays([part.columns[name] for part in parts])
            return scatter(whole.take(pa.array(order)), rows[order], size)

        lower, upper = decode_pair(
            column("lower"), column("upper"), type, file=self._file, what="a partition field"
        )
        yield from (("lower", lower), ("upper", upper))
        zero, unknown = pa.scalar(0, pa.int64()), pa.scalar(None, pa.int64())
        yield "nulls", pc.if_else(pc.invert(column("contains_null")), zero, unknown)
        if has_nans(type):
            yield "nans", pc.if_else(pc.invert(column("contains_nan")), zero, unknown)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """The summaries of one field of one spec, and the manifests they are of."""

    rows: np.ndarray[Any, Any]
    columns: dict[str, pa.Array]
    type: IcebergType


def _spec(shape: Shape, spec_id: int, file: str) -> tuple[Expression, ...]:
    try:
        return shape.spec(spec_id)
    except NotFound as error:
        raise CorruptTable(file, f"a manifest names {error}") from error
