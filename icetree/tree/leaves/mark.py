"""Making manifest DVs: which entries of leaves are gone, as entries of the root."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyroaring import BitMap

from icetree.codec import bitmap, puffin
from icetree.codec.encryption.stream import seal
from icetree.spec.entry.entry import BASE_SCHEMA, Content, Entries, Status, empty
from icetree.spec.schema.shape import Shape
from icetree.tree.draft import Stamp
from icetree.tree.leaf import NewFile
from icetree.tree.policy import Policy


def removing(
    gone: Mapping[str, BitMap],
    before: Mapping[str, BitMap],
    stamp: Stamp,
    shape: Shape,
    policy: Policy,
) -> tuple[Entries, list[NewFile]]:
    """Return the manifest DVs by which this snapshot removes entries, by leaf, and their files.

    `before` are the positions that had gone from leaves already.
    """
    full = {leaf: before.get(leaf, BitMap()) | positions for leaf, positions in gone.items()}
    return _made(full, gone, stamp, shape, policy, kind="dv")


def without(
    gone: Mapping[str, BitMap], stamp: Stamp, shape: Shape, policy: Policy
) -> tuple[Entries, list[NewFile]]:
    """Return the manifest DVs of new leaves for what earlier snapshots had removed already.

    That is no change of this snapshot, so they are EXISTING.
    """
    return _made(gone, {}, stamp, shape, policy, kind="edv")


def _made(
    full: Mapping[str, BitMap],
    added: Mapping[str, BitMap],
    stamp: Stamp,
    shape: Shape,
    policy: Policy,
    *,
    kind: str,
) -> tuple[Entries, list[NewFile]]:
    rows: list[dict[str, object]] = []
    files: list[NewFile] = []
    for leaf, positions in full.items():
        change = added.get(leaf)
        row: dict[str, object] = {
            "content_type": int(Content.MANIFEST_DV),
            "file_format": "puffin",
            "status": int(Status.EXISTING if change is None else Status.ADDED),
            "snapshot_id": stamp.snapshot_id,
            "sequence_number": stamp.sequence_number,
            "file_sequence_number": stamp.sequence_number,
            "partition_spec_id": shape.default_spec_id,
            "record_count": len(positions),
            "referenced_file": leaf,
            "dv_added_positions": None if change is None else bitmap.encode(change),
        }
        inline = bitmap.encode(positions)
        if len(inline) <= policy.inline_max_bytes:
            row["dv_inline_content"] = inline
        else:
            location = stamp.name(kind, len(files)) + ".puffin"
            stored = puffin.write([puffin.dv_blob(positions, referenced_data_file=leaf)])
            content, key = seal(stored.data, policy.key_bytes)
            row |= {
                "location": location,
                "file_size_in_bytes": len(content),
                "key_metadata": key,
                "dv_offset": stored.blobs[0].offset,
                "dv_size_in_bytes": stored.blobs[0].length,
            }
            files.append(NewFile(location=location, content=content))
        rows.append(row)
    return (pa.Table.from_pylist(rows, schema=BASE_SCHEMA) if rows else empty()), files
