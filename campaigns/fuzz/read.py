"""Reading an input in every way that icetree would."""

from __future__ import annotations

import gzip
import struct
import zlib
from functools import cache
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from campaigns.fuzz import sound_lake
from icetree.catalog.memory import MemoryCatalog
from icetree.codec import bitmap, legacy, manifest
from icetree.codec import metadata as metadata_codec
from icetree.codec import puffin as puffin_codec
from icetree.codec import view as view_codec
from icetree.codec.inherit import Inherited
from icetree.codec.manifest import stored
from icetree.codec.parquet.footer import parse_footer
from icetree.filters.filter import parse_filter
from icetree.rows.read.deletes import Deletes
from icetree.rows.read.files import (
    DataFile,
    ReadRules,
    name_mapping,
    open_file,
    position_deletes,
)
from icetree.rows.read.row_groups import groups_that_may_match
from icetree.spec.entry.entry import DATA, DELETE, ROOT, Content, Entries
from icetree.spec.fields import DELETE_FILE_PATH_FIELD, DELETE_POS_FIELD
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from icetree.tree.prune.bind import bind

FILE = "memory://fuzz/file"


# --- metadata ------------------------------------------------------------------------------------


def metadata(data: bytes) -> None:
    """Read table metadata, and use all of it."""
    found = metadata_codec.decode(data, file=FILE)
    found.schema()
    found.shape()
    repr(found.sort_keys)
    metadata_codec.encode(found)


def repacked(data: bytes) -> None:
    """Read table metadata that was packed after it was damaged."""
    metadata(gzip.compress(data, 1))


def page(data: bytes) -> None:
    """Read a page of history."""
    metadata_codec.encode_page(metadata_codec.decode_page(data, file=FILE))


def view(data: bytes) -> None:
    """Read a view's metadata, and use all of it."""
    found = view_codec.decode(data, file=FILE)
    repr(found.current.texts)
    found.schema()
    view_codec.encode(found)


# --- manifests -----------------------------------------------------------------------------------


@cache
def _shape() -> Shape:
    return sound_lake.table().metadata.shape()


_LEAF = Inherited(snapshot_id=7, sequence_number=8, first_row_id=1000)
_BUCKET = Expression(
    expr_id=10, source_ids=(1,), transform="bucket[8]", name="id_bucket", partition_field_id=1000
)
_OLD_SHAPE = Shape(
    schema=Schema(
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "name", StringType(), required=False),
    ),
    expressions={10: _BUCKET},
    specs={0: (), 1: (10,)},
)


def root(data: bytes) -> None:
    """Read a root, all of it and a part."""
    manifest.decode(data, ROOT, _shape(), file=FILE).validate(full=True)


def leaf(data: bytes) -> None:
    """Read a leaf, with and without a choice of row groups."""
    stored.WORTH_IT = 1

    def keep(bounds: pa.Table) -> pa.BooleanArray:
        return pa.array([at % 2 == 0 for at in range(bounds.num_rows)])

    columns = {"location", "status", "record_count", "first_row_id", "1:lower", "1:upper"}
    kind = DELETE if b"delete" in data[-2000:] else DATA
    how: dict[str, Any] = {"file": FILE, "tracking": _LEAF}
    manifest.decode(data, kind, _shape(), columns=columns, keep=keep, **how)
    manifest.decode(data, kind, _shape(), **how).validate(full=True)


def footer(data: bytes) -> None:
    """Take the first look at a footer."""
    parse_footer(data, file=FILE, file_bytes=1 << 20).row_groups()


def _checked(entries: Entries) -> None:
    entries.validate(full=True)


def avro_manifest(data: bytes) -> None:
    """Read a manifest of v1 to v3."""
    is_delete = b"deletes" in data[: len(data) // 2]
    content = Content.DELETE_MANIFEST if is_delete else Content.DATA_MANIFEST
    told = Inherited(content_type=content, snapshot_id=7, sequence_number=5)
    how: dict[str, Any] = {"file": FILE, "shape": _OLD_SHAPE, "table_location": "s3://b/t"}
    _checked(legacy.decode_manifest(data, inherit=told, **how))


def avro_list(data: bytes) -> None:
    """Read a manifest list of v1 to v3."""
    _checked(
        legacy.decode_manifest_list(data, file=FILE, shape=_OLD_SHAPE, table_location="s3://b/t")
    )


# --- deletes -------------------------------------------------------------------------------------


def bitmap32(data: bytes) -> None:
    """Read a bitmap of 32 bits and put it to use."""
    found = bitmap.decode(data, file=FILE)
    assert bitmap.decode(bitmap.encode(found), file=FILE) == found
    bitmap.mask(found, 1 << 20, file=FILE)


def bitmap64(data: bytes) -> None:
    """Read a bitmap of 64 bits."""
    found = bitmap.decode64(data, file=FILE)
    assert bitmap.decode64(bitmap.encode64(found), file=FILE) == found


def vector(data: bytes) -> None:
    """Read a deletion vector that fits its checksum."""
    body = bytes.fromhex("d1d33964") + data
    blob = struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    bitmap.narrow(puffin_codec.decode_dv(blob, file=FILE), file=FILE)


def puffin(data: bytes) -> None:
    """Read a Puffin file's footer and all its blobs."""

    def at(offset: int, length: int) -> bytes:
        return data[offset : offset + length]

    for blob in puffin_codec.read_footer(at, len(data), file=FILE).blobs:
        puffin_codec.decode_dv(at(blob.offset, blob.length), file=FILE)


def positions(data: bytes) -> None:
    """Read a position delete file."""
    file = open_file(_store(data), FILE, "parquet", mapping=None)
    position_deletes(file, DELETE_FILE_PATH_FIELD, DELETE_POS_FIELD)


def equality(data: bytes) -> None:
    """Read an equality delete file."""
    known = sound_lake.table()
    entry = {
        "location": FILE,
        "file_format": "parquet",
        "equality_ids": [1, 3],
        "key_metadata": None,
    }
    Deletes(
        files=[entry],
        store=_store(data),
        metadata=known.metadata,
        schema=known.metadata.schema(),
        mapping=None,
    ).matchers([0])


# --- rows ----------------------------------------------------------------------------------------


def _store(data: bytes) -> MemoryStore:
    store = MemoryStore()
    store.write_new(FILE, data)
    return store


def data_file(data: bytes) -> None:
    """Read a data file, filtered and whole."""
    file = open_file(_store(data), FILE, "parquet", mapping=None)
    where = parse_filter("id > 2 and country = 'DE' and price < 3 and ts > '2026-01-01T00:00:00Z'")
    groups_that_may_match(file, where, _shape(), True)
    _read_rows(file)
    checked = open_file(_store(data), FILE, "parquet", mapping=None, checksums=True)
    _read_rows(checked)


def avro_file(data: bytes) -> None:
    """Read a data file in Avro."""
    _read_rows(open_file(_store(data), FILE, "avro", mapping=None))


def orc_file(data: bytes) -> None:
    """Read a data file in ORC."""
    mapping = name_mapping(
        {
            "schema.name-mapping.default": '[{"field-id":1,"names":["id"]},{"field-id":3,"names":["country"]}]'
        }
    )
    _read_rows(open_file(_store(data), FILE, "orc", mapping=mapping))


def _read_rows(file: DataFile) -> None:
    rules = ReadRules(location=FILE)
    for group in file.groups:
        for batch in file.read(group, _shape().schema.fields, rules):
            batch.validate()


# --- texts ---------------------------------------------------------------------------------------


def filter_text(text: str) -> None:
    """Parse a filter and bind it to a table."""
    bind(parse_filter(text), _shape(), case_sensitive=True)


def mapping(text: str) -> None:
    """Read a name mapping."""
    name_mapping({"schema.name-mapping.default": text})


# --- a table -------------------------------------------------------------------------------------


def table(data: bytes) -> None:
    """Put a damaged file in its place among sound ones; verify and scan the table."""
    name, _, content = data.partition(b"\n")
    store = MemoryStore()
    for location, sound_content in sound_lake.files().items():
        damaged = location.encode() == name
        store.write_new(location, content if damaged else sound_content)
    catalog = MemoryCatalog("m")
    catalog.create_namespace(("db",), {})
    known = sound_lake.table()
    catalog.create(known.state.name, known.state.metadata_location)
    with Lake(catalog=catalog, store=store) as lake:
        found = lake.table("db.t")
        found.verify(deep=True)
        found.scan("id > 2 and x < 1").to_arrow()
        found.scan().to_arrow()
