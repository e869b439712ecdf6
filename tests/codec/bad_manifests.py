"""Sound entries of every content, to be spoilt, and the shape with every type that reads them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from icetree.codec import bitmap, manifest
from icetree.codec.inherit import Inherited
from icetree.spec.entry.entry import DATA, DELETE, ROOT, Content, Entries, Entry
from icetree.spec.schema.shape import Shape
from tests.laws.kinds import GEO_KINDS, KINDS

FILE = "metadata/m7.parquet"
ALL = KINDS | GEO_KINDS
FIELD_OF = {name: id for id, name in enumerate(ALL, start=1)}
SHAPE = Shape(
    schema=Schema(*(NestedField(FIELD_OF[name], name, kind.type) for name, kind in ALL.items()))
)
TRACKED = {"snapshot_id": 1, "sequence_number": 1, "file_sequence_number": 1}
LEAF = Inherited(snapshot_id=7, sequence_number=8, first_row_id=1000)

FILE_ENTRY = Entry(location="data/a", file_size_in_bytes=9, record_count=3, **TRACKED)
VECTOR = Entry(
    content_type=Content.POSITION_DELETES,
    location="data/v.puffin",
    file_format="puffin",
    file_size_in_bytes=9,
    referenced_file="data/a",
    dv_offset=4,
    dv_size_in_bytes=5,
    **TRACKED,
)
EQUALITY = Entry(
    content_type=Content.EQUALITY_DELETES,
    location="data/e",
    file_size_in_bytes=9,
    equality_ids=(1,),
    **TRACKED,
)
DATA_LEAF = Entry(
    content_type=Content.DATA_MANIFEST,
    location="metadata/l",
    file_size_in_bytes=9,
    record_count=2,
    added_files_count=2,
    existing_files_count=0,
    deleted_files_count=0,
    added_rows_count=5,
    existing_rows_count=0,
    deleted_rows_count=0,
    min_sequence_number=1,
    **TRACKED,
)
DELETE_LEAF = replace(DATA_LEAF, content_type=Content.DELETE_MANIFEST, location="metadata/k")
INLINE = Entry(
    content_type=Content.MANIFEST_DV,
    file_format="puffin",
    referenced_file="metadata/l",
    record_count=1,
    dv_inline_content=bitmap.encode(bitmap.of([1])),
    dv_added_positions=bitmap.encode(bitmap.of([1])),
    **TRACKED,
)
IN_PUFFIN = replace(
    INLINE,
    referenced_file="metadata/k",
    location="metadata/p.puffin",
    file_size_in_bytes=99,
    dv_inline_content=None,
    dv_offset=4,
    dv_size_in_bytes=40,
)
SOUND = {
    ROOT: [FILE_ENTRY, VECTOR, EQUALITY, DATA_LEAF, DELETE_LEAF, INLINE, IN_PUFFIN],
    DATA: [FILE_ENTRY, replace(FILE_ENTRY, location="data/b", split_offsets=(4, 8))],
    DELETE: [VECTOR, EQUALITY],
}


def decoded(stored: bytes, kind: str, **more: Any) -> Entries:
    """Decode a manifest under the name that errors must tell."""
    return manifest.decode(stored, kind, SHAPE, file=FILE, **more)


#: Values of every type, each with a lesser one.
REVERSED: dict[str, tuple[Any, Any]] = dict.fromkeys(KINDS, (2, 1)) | {
    "boolean": (True, False),
    "string": ("b", "a"),
    "uuid": (b"b" * 16, b"a" * 16),
    "fixed(7)": (b"b" * 7, b"a" * 7),
    "binary": (b"b", b"a"),
}
