"""Manifest lists of v2 and v3: what `decode_manifest_list` reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from icetree.codec.avro import pieces
from icetree.codec.avro.avro import open_avro
from icetree.codec.avro.pieces import Piece
from icetree.codec.avro.write import write_avro
from icetree.codec.legacy.avro_types import manifest_list_record
from icetree.codec.legacy.tuples import Summary
from icetree.errors import CorruptTable

#: What is counted of a manifest's entries.
COUNTS: Final = (
    "added_files_count",
    "existing_files_count",
    "deleted_files_count",
    "added_rows_count",
    "existing_rows_count",
    "deleted_rows_count",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A manifest as a manifest list tells of it; the location is absolute."""

    location: str
    size_bytes: int
    spec_id: int
    holds_data: bool
    sequence_number: int
    min_sequence_number: int
    snapshot_id: int
    counts: Mapping[str, int]
    #: None where nothing is known of the partitions, and nothing can be ruled out by them.
    partitions: tuple[Summary, ...] | None
    key_metadata: bytes | None = None
    first_row_id: int | None = None


def encode_manifest_list(
    manifests: Sequence[Listed], header: Mapping[str, str], *, format_version: int
) -> bytes:
    """Write a manifest list; the same manifests give the same bytes."""
    return write_avro(
        manifest_list_record(format_version),
        {**header, "format-version": str(format_version)},
        len(manifests),
        lambda start, end: _records(manifests[start:end], format_version),
    )


def read_listed(data: bytes, *, file: str) -> list[Listed]:
    """Return the manifests of a list that `encode_manifest_list` wrote, as they were given."""
    try:
        return [_listed(row) for row in open_avro(data, file=file).rows()]
    except (KeyError, TypeError) as error:
        raise CorruptTable(file, f"not a manifest list of icetree's: {error!r}") from None


def _listed(row: dict[str, Any]) -> Listed:
    partitions = row["partitions"]
    return Listed(
        location=row["manifest_path"],
        size_bytes=row["manifest_length"],
        spec_id=row["partition_spec_id"],
        holds_data=row["content"] == 0,
        sequence_number=row["sequence_number"],
        min_sequence_number=row["min_sequence_number"],
        snapshot_id=row["added_snapshot_id"],
        counts={name: row[name] for name in COUNTS},
        partitions=None if partitions is None else tuple(_summary(each) for each in partitions),
        key_metadata=row["key_metadata"],
        first_row_id=row.get("first_row_id"),
    )


def _summary(row: dict[str, Any]) -> Summary:
    return Summary(
        contains_null=row["contains_null"],
        contains_nan=row["contains_nan"],
        lower=row["lower_bound"],
        upper=row["upper_bound"],
    )


def _records(some: Sequence[Listed], version: int) -> Piece:
    def numbers(values: Sequence[int | None]) -> Piece:
        return pieces.numbers(pa.array(values, pa.int64()))

    found = [
        pieces.texts(pa.array([each.location for each in some], pa.string())),
        numbers([each.size_bytes for each in some]),
        numbers([each.spec_id for each in some]),
        numbers([0 if each.holds_data else 1 for each in some]),
        numbers([each.sequence_number for each in some]),
        numbers([each.min_sequence_number for each in some]),
        numbers([each.snapshot_id for each in some]),
        *(numbers([each.counts[name] for each in some]) for name in COUNTS),
        pieces.optional(_partitions([each.partitions for each in some])),
        pieces.optional(pieces.texts(pa.array([each.key_metadata for each in some], pa.binary()))),
    ]
    if version >= 3:
        found.append(pieces.optional(numbers([each.first_row_id for each in some])))
    return pieces.joined(found, len(some))


def _partitions(lists: Sequence[tuple[Summary, ...] | None]) -> Piece:
    flat = [one for each in lists for one in each or ()]
    members = pieces.joined(
        [
            pieces.booleans(pa.array([each.contains_null for each in flat], pa.bool_())),
            pieces.optional(
                pieces.booleans(pa.array([each.contains_nan for each in flat], pa.bool_()))
            ),
            pieces.optional(pieces.texts(pa.array([each.lower for each in flat], pa.binary()))),
            pieces.optional(pieces.texts(pa.array([each.upper for each in flat], pa.binary()))),
        ],
        len(flat),
    )
    return pieces.repeated(members, pa.array([None if e is None else len(e) for e in lists]))
