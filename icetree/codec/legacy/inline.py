"""Manifests that a v1 snapshot lists in table metadata itself, as root entries."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from icetree.codec.avro.avro import open_avro
from icetree.codec.legacy.columns import as_type
from icetree.codec.places import stored_form_of_full
from icetree.errors import CorruptTable
from icetree.spec.entry.entry import Content, Entries, Status, complete
from icetree.spec.fields import BY_NAME
from icetree.spec.schema.shape import Shape

_SPEC_ID = "partition-spec-id"


def decode_inline_list(
    manifests: Sequence[tuple[str, bytes]], *, file: str, shape: Shape, table_location: str
) -> Entries:
    """Return manifests, given as (location, content), as EXISTING root entries.

    Nothing is known of them but what their headers say: no counts, no summaries, and not who
    wrote them. `record_count` is null, as in a manifest list that lacks counts.
    """
    size = len(manifests)
    zero = as_type(0, size, "sequence_number")
    locations = pa.array([location for location, _ in manifests], pa.string())
    specs = [_spec_of(content, location, shape) for location, content in manifests]
    lengths = [len(content) for _, content in manifests]
    return complete(
        pa.table(
            {
                "content_type": as_type(Content.DATA_MANIFEST, size, "content_type"),
                "location": stored_form_of_full(locations, table_location, file=file),
                "file_format": pa.repeat(pa.scalar("avro"), size),
                "file_size_in_bytes": pa.array(lengths, BY_NAME["file_size_in_bytes"].type),
                "partition_spec_id": pa.array(specs, BY_NAME["partition_spec_id"].type),
                "status": as_type(Status.EXISTING, size, "status"),
                "sequence_number": zero,
                "file_sequence_number": zero,
                "min_sequence_number": zero,
            }
        )
    )


def _spec_of(content: bytes, file: str, shape: Shape) -> int:
    # The first writers knew of one spec only, and did not say which.
    said = open_avro(content, file=file).metadata.get(_SPEC_ID, "0")
    if not said.isdecimal() or int(said) not in shape.specs:
        raise CorruptTable(file, f"{_SPEC_ID} is {said!r}, which the table does not have")
    return int(said)
