"""Manifests of v2 and v3, written from entries: what `decode_manifest` reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import IcebergType, StringType

from icetree.codec.avro import pieces
from icetree.codec.avro.pieces import Piece
from icetree.codec.avro.write import write_avro
from icetree.codec.legacy.avro_types import manifest_record
from icetree.codec.legacy.tuples import Summary, summary, tuple_piece, tuple_type, tuple_values
from icetree.codec.single_value_bytes import encode_bounds
from icetree.spec.arrays import every, one_chunk
from icetree.spec.entry import stats
from icetree.spec.entry.entry import (
    Content,
    Entries,
    Status,
    has_format,
    has_status,
    is_content,
    is_data_file,
    is_live,
    only,
)
from icetree.spec.fields import DELETE_FILE_PATH_FIELD
from icetree.spec.locations import absolute_array
from icetree.spec.metadata.layout import PartitionField
from icetree.spec.schema.shape import Shape
from icetree.spec.schema.types import bounds_type
from icetree.spec.texts import json_bytes

_MAPS: Final = ("values", "nulls", "nans", "lower", "upper")
#: Those of bytes; all others are of numbers.
_BOUNDS: Final = {"lower": pa.binary(), "upper": pa.binary()}


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What manifests of one partition spec have in common: their header, and how entries are read."""

    format_version: int
    spec_id: int
    #: The spec's fields as that version has them, in the order of its expressions.
    fields: tuple[PartitionField, ...]
    #: The schema that the header tells, as JSON.
    schema: Mapping[str, Any]
    shape: Shape
    table_location: str

    @cached_property
    def types(self) -> tuple[IcebergType, ...]:
        """The types of the partition's values."""
        return tuple(tuple_type(each, self.shape) for each in self.shape.spec(self.spec_id))

    def header(self, content: str) -> dict[str, str]:
        """Return the header's key-value metadata, for `data` or `deletes`."""
        fields = [
            {
                "name": each.name,
                "transform": each.transform,
                "source-id": each.source_id,
                "field-id": each.field_id,
            }
            for each in self.fields
        ]
        return {
            "schema": json_bytes(self.schema).decode(),
            "schema-id": str(self.schema["schema-id"]),
            "partition-spec": json_bytes(fields).decode(),
            "partition-spec-id": str(self.spec_id),
            "format-version": str(self.format_version),
            "content": content,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedManifest:
    """A manifest's bytes, and what a manifest list says of it."""

    content: bytes
    holds_data: bool
    counts: Mapping[str, int]
    min_sequence_number: int
    first_row_id: int | None
    partitions: tuple[Summary, ...]


def encode_manifest(entries: Entries, layout: Layout) -> EncodedManifest:
    """Write data files, or delete files, of one partition spec, tracking and all.

    Every entry has its snapshot id and sequence numbers. Data files have first row ids all of them
    or none: readers give ids to what has none in a manifest that has some.
    """
    holds_data = entries.num_rows > 0 and every(is_data_file(entries))
    values = [
        tuple_values(entries, each, layout.shape) for each in layout.shape.spec(layout.spec_id)
    ]
    content = write_avro(
        manifest_record(list(zip(layout.fields, layout.types, strict=True)), layout.format_version),
        layout.header("data" if holds_data else "deletes"),
        entries.num_rows,
        lambda start, end: _records(
            entries.slice(start, end - start),
            [each.slice(start, end - start) for each in values],
            layout,
        ),
    )
    live = only(entries, is_live(entries))
    return EncodedManifest(
        content=content,
        holds_data=holds_data,
        counts=_counts(entries),
        min_sequence_number=pc.min(live["sequence_number"]).as_py() or 0,
        first_row_id=pc.min(live["first_row_id"]).as_py() if holds_data else None,
        partitions=tuple(map(summary, values, layout.types)),
    )


def _counts(entries: Entries) -> dict[str, int]:
    found = {}
    for word, status in (
        ("added", Status.ADDED),
        ("existing", Status.EXISTING),
        ("deleted", Status.DELETED),
    ):
        some = only(entries, has_status(entries, status))
        found[f"{word}_files_count"] = some.num_rows
        found[f"{word}_rows_count"] = pc.sum(some["record_count"]).as_py() or 0
    return found


def _records(entries: Entries, values: Sequence[pa.Array], layout: Layout) -> Piece:
    """Return the records of some entries, in the order of `manifest_record`'s fields.

    Sizes of columns are told as none, not as null: v4 keeps none, and PyIceberg's `entries` table
    takes no null.
    """
    size, version = entries.num_rows, layout.format_version
    maps = _metrics(entries, layout.shape)
    format = pc.utf8_upper(one_chunk(entries["file_format"]))
    found = [
        pieces.numbers(entries["status"]),
        *(_optional_number(entries, name) for name in _TRACKING),
        pieces.numbers(entries["content_type"]),
        pieces.texts(absolute_array(entries["location"], layout.table_location)),
        pieces.texts(format),
        *map(tuple_piece, values, layout.types),
        pieces.numbers(entries["record_count"]),
        pieces.numbers(entries["file_size_in_bytes"]),
        pieces.EMPTY,
        *(pieces.optional(maps[stat]) for stat in _MAPS),
        pieces.optional(pieces.texts(entries["key_metadata"])),
        pieces.optional(pieces.lists(entries["split_offsets"])),
        pieces.optional(pieces.lists(entries["equality_ids"])),
        _optional_number(entries, "sort_order_id"),
    ]
    if version >= 3:
        found.append(_optional_number(entries, "first_row_id"))
    referenced = absolute_array(entries["referenced_file"], layout.table_location)
    found.append(pieces.optional(pieces.texts(referenced)))
    if version >= 3:
        found += [_optional_number(entries, name) for name in ("dv_offset", "dv_size_in_bytes")]
    return pieces.joined(found, size)


_TRACKING: Final = ("snapshot_id", "sequence_number", "file_sequence_number")


def _optional_number(entries: Entries, name: str) -> Piece:
    return pieces.optional(pieces.numbers(entries[name]))


def _metrics(entries: Entries, shape: Shape) -> dict[str, Piece]:
    """Return each map of the stats of columns."""
    found: dict[str, dict[int, pa.Array]] = {stat: {} for stat in _MAPS}
    known = {*entries.schema.names}
    for field_id, type, applies in _described(entries, shape):
        for stat in _MAPS:
            name = stats.column(field_id, stat)
            if name not in known:
                continue
            column = one_chunk(entries[name])
            if applies is not None:
                column = pc.if_else(applies, column, pa.scalar(None, column.type))
            if column.null_count == len(column):
                continue
            if stat in _BOUNDS:
                column = encode_bounds(column.cast(bounds_type(type)), type)
            found[stat][field_id] = column.cast(_BOUNDS.get(stat, pa.int64()))
    return {stat: _map(stat, columns, entries.num_rows) for stat, columns in found.items()}


def _map(stat: str, columns: Mapping[int, pa.Array], size: int) -> Piece:
    """Return a map of columns: as one array, for each step costs as much for few values as for many."""
    if not columns:
        return pa.nulls(size, pa.binary())
    values = pa.concat_arrays([*columns.values()])
    told = pieces.texts(values) if stat in _BOUNDS else pieces.numbers(values)
    return pieces.maps([*columns], told, size)


def _described(
    entries: Entries, shape: Shape
) -> Iterator[tuple[int, IcebergType, pa.BooleanArray | None]]:
    """Yield the columns that stats describe, and of which entries; None for all.

    Of deletes, stats of equality fields describe what is deleted, and those of the path what it is
    deleted from. Others stand for the partition, which is told by itself.
    """
    only_data = every(is_data_file(entries))
    for field_id in sorted(stats.fields_in(entries)):
        if field_id == DELETE_FILE_PATH_FIELD:
            of_positions = pc.and_not(
                is_content(entries, Content.POSITION_DELETES), has_format(entries, "puffin")
            )
            yield field_id, StringType(), one_chunk(of_positions)
        elif field_id in shape.columns and bounds_type(type := shape.types[field_id]) is not None:
            yield field_id, type, None if only_data else _deleting(entries, field_id)


def _deleting(entries: Entries, field_id: int) -> pa.BooleanArray:
    """Tell which entries are data files, or deletes by the values of a column."""
    ids = one_chunk(entries["equality_ids"])
    owners = pc.list_parent_indices(ids).filter(pc.equal(ids.flatten(), field_id))
    ordinals = pa.array(range(entries.num_rows), pa.int64())
    by_it = pc.is_in(ordinals, value_set=owners.cast(pa.int64()))
    return pc.or_(one_chunk(is_data_file(entries)), by_it)
