"""Leaves as v1 to v3 wrote them: Avro, of one spec, locations in full, any legal schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.codec import avro_manifests as usual
from tests.foreign import avro, blobs, transforms
from tests.foreign.columns import Json, Plain
from tests.foreign.dress import Dress
from tests.foreign.layout import DELETED_PATH, Layout
from tests.foreign.model import EQUALITY, File
from tests.foreign.tree import ADDED, DATA_LEAF, Leaf

_COUNTS = {
    "value_counts": "value_count",
    "null_value_counts": "null_value_count",
    "nan_value_counts": "nan_value_count",
}
_BOUNDS = {"lower_bounds": "lower_bound", "upper_bounds": "upper_bound"}


def encode(leaf: Leaf, version: int, spec_id: int, layout: Layout, dress: Dress) -> bytes:
    """Return a leaf, whose ADDED entries may leave it to the leaf's own entry to say their age."""
    numbered = version == 3 and leaf.content == DATA_LEAF and dress.chance(0.4)
    rows = [
        _entry(file, layout, dress, numbered)
        | {"status": status, **_tracking(file, status, version, dress)}
        for file, status in leaf.entries
    ]
    partition = [
        usual.field(id, f"p{id}", avro.plain_type(type, f"of_p{id}"))
        for id, type in _partition(layout, spec_id).items()
    ]
    meta = {"format-version": str(version), "partition-spec-id": str(spec_id)}
    if version > 1:
        meta["content"] = "data" if leaf.content == DATA_LEAF else "deletes"
    if dress.chance(0.5):
        meta |= {"schema": json.dumps(layout.schema.json()), "partition-spec": "[]"}
    schema = _dressed(usual.manifest_schema(version, partition), rows, dress)
    return avro.container(schema, rows, dress, meta)


def _dressed(schema: Json, rows: list[Any], dress: Dress) -> Json:
    """Return a record's schema in another order, with less that is null, and with more besides."""
    fields = []
    for each in schema["fields"]:
        name, type = each["name"], each["type"]
        values = [row.get(name) for row in rows]
        if name == "partition":
            pass  # which is what the spec says
        elif isinstance(type, dict) and type["type"] == "record":
            each = each | {"type": _dressed(type, values, dress)}
        elif isinstance(type, list) and all(value is None for value in values):
            if dress.chance(0.4):
                continue
        elif isinstance(type, list) and dress.chance(0.2):
            each = {"name": name, "type": [type[1], "null"], "field-id": each["field-id"]}
        fields.append(each)
    if dress.chance(0.3):
        fields.append(usual.field(8001, "made_by", "string"))
        for row in rows:
            row["made_by"] = "another writer"
    return schema | {"fields": dress.shuffled(fields)}


def _partition(layout: Layout, spec_id: int) -> dict[int, Plain]:
    """Return the types of a partition tuple, by the ids of its fields."""
    types = {each.id: each.type for each in layout.schema.told()}
    return {
        part.partition_field_id: transforms.result(part.transform, types[part.source_id])
        for part in layout.specs[spec_id]
    }


def _tracking(file: File, status: int, version: int, dress: Dress) -> Json:
    told: Json = {
        "snapshot_id": file.snapshot_id,
        "sequence_number": file.sequence_number,
        "file_sequence_number": file.file_sequence_number,
    }
    if version == 1 or status != ADDED:
        return told
    return {name: None if dress.chance(0.4) else value for name, value in told.items()}


def _entry(file: File, layout: Layout, dress: Dress, numbered: bool) -> Json:
    types = {each.id: each.type for each in (*layout.schema.told(), *layout.schema.counted())}
    own = [(id, stats) for id, stats in file.stats.items() if id in types]
    told: Json = {
        "file_format": file.format if dress.chance(0.3) else file.format.upper(),
        "sort_order_id": file.sort_order_id,
        "split_offsets": file.split_offsets,
        "first_row_id": file.first_row_id if numbered else None,
        **{
            name: usual.pairs({id: stats[stat] for id, stats in own if stat in stats}) or None
            for name, stat in _COUNTS.items()
        },
        **{
            name: usual.pairs(dict(_bounds(own, types, stat))) or None
            for name, stat in _BOUNDS.items()
        },
    }
    if file.path_bounds is not None:
        for name, end in zip(_BOUNDS, file.path_bounds, strict=True):
            told[name] = usual.pairs({DELETED_PATH: end.encode()})
    if file.only_of is not None:
        told["referenced_data_file"] = file.only_of.location
    if file.content == EQUALITY:
        told["equality_ids"] = file.equality_ids
    if file.is_vector:
        assert file.target is not None
        told |= {
            "referenced_data_file": file.target.location,
            "content_offset": file.offset,
            "content_size_in_bytes": file.length,
        }
    partition = {
        f"p{id}": None if value is None else avro.plain_value(type, value)
        for (id, type), value in zip(
            _partition(layout, file.spec_id).items(), file.partition, strict=True
        )
    }
    return usual.entry(
        file.location,
        rows=file.record_count,
        content=file.content,
        file_size_in_bytes=file.size,
        partition=partition,
        **told,
    )


def _bounds(
    own: list[tuple[int, Json]], types: dict[int, Plain], stat: str
) -> Iterator[tuple[int, bytes]]:
    for id, stats in own:
        if stats.get(stat) is not None:
            yield id, blobs.single_value(types[id], stats[stat])
