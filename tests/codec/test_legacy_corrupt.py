"""Old metadata that breaks a rule is refused by the name of its file and of the rule."""

from __future__ import annotations

import copy
import json
import struct
import zlib
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from icetree.codec.inherit import Inherited
from icetree.codec.legacy import decode_manifest, decode_manifest_list
from icetree.errors import CorruptTable
from icetree.spec.entry.entry import Content, Entries
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape
from tests.codec.avro_manifests import (
    entry,
    field,
    list_schema,
    manifest,
    manifest_list,
    manifest_schema,
    pairs,
    write,
)
from tests.effort import law

TABLE = "s3://bucket/table"
BUCKET = Expression(
    expr_id=10, source_ids=(1,), transform="bucket[8]", name="b", partition_field_id=1000
)
SHAPE = Shape(
    schema=Schema(NestedField(1, "id", LongType(), required=False)),
    expressions={10: BUCKET},
    specs={0: (), 1: (10,)},
)
LEAF = Inherited(snapshot_id=7, sequence_number=5)
DELETE_LEAF = Inherited(content_type=Content.DELETE_MANIFEST, snapshot_id=7, sequence_number=5)
A = f"{TABLE}/a"


def decode(data: bytes, leaf: Inherited = LEAF) -> Entries:
    return decode_manifest(data, file="m.avro", shape=SHAPE, table_location=TABLE, inherit=leaf)


def decode_list(data: bytes) -> Entries:
    return decode_manifest_list(data, file="m.avro", shape=SHAPE, table_location=TABLE)


def refused(data: bytes, rule: str, leaf: Inherited = LEAF) -> None:
    with pytest.raises(CorruptTable, match=rule) as found:
        decode(data, leaf)
    assert found.value.file == "m.avro"


GOOD = manifest(
    2,
    *(
        entry(f"{TABLE}/{n}", lower_bounds=pairs({1: struct.pack("<q", n)}), partition={"b": n % 8})
        for n in range(20)
    ),
    partition=(field(1000, "b", "int"),),
    spec_id=1,
)
GOOD_LIST = manifest_list(
    2,
    {
        "manifest_path": A,
        "added_snapshot_id": 7,
        **dict.fromkeys(("added_files_count", "existing_files_count", "deleted_files_count"), 1),
        **dict.fromkeys(("added_rows_count", "existing_rows_count", "deleted_rows_count"), 1),
    },
)


def test_what_the_other_tests_break_is_sound() -> None:
    assert decode(GOOD).num_rows == 20
    assert decode_list(GOOD_LIST).num_rows == 1


@pytest.mark.parametrize("data", [b"", b"Obj", b"PAR1" + GOOD[4:]], ids=["empty", "short", "magic"])
def test_what_is_no_avro_file_is_refused(data: bytes) -> None:
    refused(data, "not an Avro file")
    with pytest.raises(CorruptTable, match="not an Avro file"):
        decode_list(data)


def header_size(data: bytes) -> int:
    """The header ends with the first sync marker, which also ends the file."""
    return data.index(data[-16:]) + 16


def test_a_file_cut_anywhere_is_refused_or_has_its_header_alone() -> None:
    for data, decoder in ((GOOD, decode), (GOOD_LIST, decode_list)):
        for size in range(4, len(data)):
            if size == header_size(data):
                assert decoder(data[:size]).num_rows == 0
            else:
                with pytest.raises(CorruptTable):
                    decoder(data[:size])


@law(70)
@given(st.data())
def test_broken_bytes_are_read_or_refused_but_never_anything_else(data: st.DataObject) -> None:
    broken = bytearray(manifest(2, entry(A, lower_bounds=pairs({1: b"12345678"})), codec="null"))
    for _ in range(data.draw(st.integers(1, 3))):
        broken[data.draw(st.integers(4, len(broken) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CorruptTable):
        decode(bytes(broken)).validate(full=True)


def renamed_codec(data: bytes, codec: bytes) -> bytes:
    assert data.count(b"\x0edeflate") == 1
    return data.replace(b"\x0edeflate", bytes([2 * len(codec)]) + codec)


def test_an_unknown_codec_is_refused() -> None:
    refused(renamed_codec(GOOD, b"lzma9"), "unknown Avro codec 'lzma9'")


@pytest.mark.parametrize("codec", [b"null", b"bzip2", b"snappy", b"zstandard", b"xz"])
def test_data_in_another_codec_than_the_header_says_is_refused(codec: bytes) -> None:
    refused(renamed_codec(GOOD, codec), "broken Avro data")


def snappy(data: bytes, *, crc: int = 0) -> bytes:
    """A file of one uncompressed block, in Snappy; `crc` is added to the checksum."""
    head = header_size(data)
    # One entry, of a size that one byte can say as a zigzag number.
    plain = data[head + 2 : -16]
    assert data[head : head + 2] == bytes([2, len(plain) << 1])
    packed = pa.compress(plain, codec="snappy", asbytes=True)
    packed += ((zlib.crc32(plain) + crc) % 2**32).to_bytes(4, "big")
    assert len(packed) < 64
    named = data[:head].replace(b"\x14avro.codec\x08null", b"\x14avro.codec\x0csnappy")
    assert len(named) == head + 2
    return named + bytes([2, len(packed) << 1]) + packed + data[-16:]


def test_a_snappy_file_is_read_and_its_checksum_counts() -> None:
    plain = manifest(2, entry(A, value_counts=pairs({1: 9})), codec="null")
    assert decode(snappy(plain)) == decode(plain)
    refused(snappy(plain, crc=1), "wrong checksum")


def with_schema(change: Any) -> bytes:
    """A manifest of one file whose Avro schema was changed, under data that fits it."""
    schema = copy.deepcopy(manifest_schema(2))
    row = entry(A)
    change({each["name"]: each for each in schema["fields"]}, schema, row)
    return write(schema, [row], format_version="2", content="data")


def as_string(name: str) -> Any:
    def change(fields: dict[str, Any], _: Any, row: Any) -> None:
        files = {each["name"]: each for each in fields["data_file"]["type"]["fields"]}
        where = row if name in fields else row["data_file"]
        changed = fields.get(name) or files[name]
        changed["type"] = "string"
        changed.pop("default", None)
        where[name] = "what"

    return change


@pytest.mark.parametrize(
    "name", ["status", "record_count", "split_offsets", "value_counts", "partition"]
)
def test_a_field_of_another_type_is_refused(name: str) -> None:
    refused(with_schema(as_string(name)), f"{name} is stored as string")


def test_a_missing_required_field_is_refused() -> None:
    def drop(fields: dict[str, Any], _: Any, __: Any) -> None:
        file = fields["data_file"]["type"]
        file["fields"] = [each for each in file["fields"] if each["name"] != "record_count"]

    refused(with_schema(drop), r"record_count \(field id 103\) is missing")


def test_a_file_without_data_file_is_refused() -> None:
    refused(GOOD_LIST, "is missing")
    schema = manifest_schema(2)
    schema["fields"] = schema["fields"][:2]
    refused(
        write(schema, [{"status": 1, "snapshot_id": 1}]), r"data_file \(field id 2\) is missing"
    )


def test_a_null_in_a_required_field_is_refused() -> None:
    def optional(fields: dict[str, Any], _: Any, row: Any) -> None:
        files = {each["name"]: each for each in fields["data_file"]["type"]["fields"]}
        files["record_count"]["type"] = ["null", "long"]
        row["data_file"]["record_count"] = None

    refused(with_schema(optional), "lacks its record_count")


def test_a_schema_that_is_no_record_is_refused() -> None:
    refused(write("long", [1, 2]), "not a record")


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        (entry(A, status=3), "unknown status"),
        (entry(A, content=1), "not allowed in this kind of manifest"),
        (entry(A, content=7), "not allowed in this kind of manifest"),
        (entry(A, file_format="CSV"), "unknown file format"),
        (entry(A, rows=-1), "record count is negative"),
        (entry(A, status=0), "no sequence_number and may not inherit"),
        (entry("a/b"), "is no location in full"),
        (
            entry(A, lower_bounds=pairs({1: b"123"})),
            "lower bound of column 1 is not a serialized long",
        ),
        (
            entry(A, value_counts=[{"key": 1, "value": 1}, {"key": 1, "value": 2}]),
            "column 1 has two metrics",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_entry_that_breaks_a_rule_is_refused(row: Any, rule: str) -> None:
    refused(manifest(2, entry(f"{TABLE}/good"), row), rule)


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        (entry(A), "not allowed in this kind of manifest"),
        (entry(A, content=2), "names no equality fields"),
        (
            entry(A, content=1, file_format="PUFFIN", content_offset=4, content_size_in_bytes=4),
            "deletion vector lacks its referenced_file",
        ),
        (
            entry(
                A, content=1, file_format="PUFFIN", referenced_data_file=A, content_size_in_bytes=4
            ),
            "deletion vector lacks its dv_offset",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_delete_file_that_breaks_a_rule_is_refused(row: Any, rule: str) -> None:
    refused(manifest(3, row, content="deletes"), rule, DELETE_LEAF)


def test_a_manifest_that_contradicts_the_entry_it_was_found_by_is_refused() -> None:
    refused(manifest(2, entry(A)), "which its own entry contradicts", DELETE_LEAF)
    refused(manifest(2, content="deletes"), "which its own entry contradicts")


@pytest.mark.parametrize(
    ("meta", "rule"),
    [
        ({"format_version": "4"}, "format-version is '4'"),
        ({"content": "root"}, "content is 'root'"),
        ({"partition_spec_id": "x"}, "partition-spec-id is 'x'"),
        ({"partition_spec_id": "9"}, "partition spec 9"),
        ({"partition_spec_id": "1"}, "partition field b is missing"),
    ],
)
def test_key_value_metadata_that_cannot_be_is_refused(meta: dict[str, str], rule: str) -> None:
    usual = {"format_version": "2", "content": "data", "partition_spec_id": "0"}
    refused(write(manifest_schema(2), [entry(A)], **(usual | meta)), rule)


def test_a_partition_value_of_another_type_is_refused() -> None:
    data = manifest(
        2, entry(A, partition={"b": "x"}), partition=(field(1000, "b", "string"),), spec_id=1
    )
    refused(data, "partition field b is not a int stored as string")


def test_a_list_with_a_field_of_another_type_is_refused() -> None:
    schema = json.loads(json.dumps(list_schema(1)).replace('"boolean"', '"string"'))
    with pytest.raises(CorruptTable, match=r"partitions.contains_null is stored as string"):
        decode_list(write(schema, [], format_version="1"))
