"""Blobs survive their file, and a file that breaks a rule is refused by name."""

from __future__ import annotations

import json
import struct
import zlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile as PyIcebergPuffin
from pyroaring import BitMap, BitMap64

from icetree.codec import puffin
from icetree.errors import CorruptTable, InvalidInput
from tests.effort import law

FILE = "metadata/dv.puffin"

# {1, 2, 5}: length and checksum big-endian, what stands between them little-endian.
DV = bytes.fromhex(
    "00000026 d1d33964"
    "0100000000000000 00000000"
    "3a300000 01000000 0000 0200 10000000 0100 0200 0500"
    "e2223a5c"
)

FOOTER = (
    b'{"blobs":[{"type":"deletion-vector-v1","fields":[2147483645],"snapshot-id":-1,'
    b'"sequence-number":-1,"offset":4,"length":46,"properties":'
    b'{"referenced-data-file":"data/a.parquet","cardinality":"3"}}],'
    b'"properties":{"created-by":"a test"}}'
)
FOOTER_BYTES = 234


def framed(payload: bytes, *, blobs: bytes = DV, flags: int = 0) -> bytes:
    """A file made by hand around a footer payload."""
    tail = struct.pack("<iI", len(payload), flags) + b"PFA1"
    return b"PFA1" + blobs + b"PFA1" + payload + tail


class Ranges:
    """Range reads of some bytes; remembers what was asked."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.asked: list[tuple[int, int]] = []

    def __call__(self, offset: int, length: int) -> bytes:
        self.asked.append((offset, length))
        assert offset >= 0
        assert length > 0
        return self.data[offset : offset + length]


def footer_of(data: bytes) -> puffin.Footer:
    return puffin.read_footer(Ranges(data), len(data), file=FILE)


def footer_saying(**changes: object) -> bytes:
    """The golden footer with the keys of its only blob replaced, or dropped where None."""
    footer = json.loads(FOOTER)
    blob = footer["blobs"][0]
    blob.update({key.replace("_", "-"): value for key, value in changes.items()})
    footer["blobs"] = [{key: value for key, value in blob.items() if value is not None}]
    return json.dumps(footer).encode()


def test_a_deletion_vector_has_the_bytes_of_the_format() -> None:
    assert puffin.encode_dv(BitMap([1, 2, 5])) == DV
    assert puffin.encode_dv(BitMap64([1, 2, 5])) == DV
    assert puffin.decode_dv(DV, file=FILE) == BitMap64([1, 2, 5])


@given(st.sets(st.integers(0, (1 << 63) - 1), max_size=20), st.integers(0, 5000))
@law(40)
def test_positions_survive_a_deletion_vector(positions: set[int], run: int) -> None:
    removed = BitMap64(positions) | BitMap64(range(run))
    assert puffin.decode_dv(puffin.encode_dv(removed), file=FILE) == removed


@pytest.mark.parametrize("empty", [BitMap(), BitMap64()], ids=["32 bits", "64 bits"])
def test_an_empty_deletion_vector_survives(empty: BitMap | BitMap64) -> None:
    assert puffin.decode_dv(puffin.encode_dv(empty), file=FILE) == BitMap64()


def test_every_flip_of_one_byte_of_a_deletion_vector_is_refused() -> None:
    for at in range(len(DV)):
        for bits in (0x01, 0x80, 0xFF):
            flipped = DV[:at] + bytes([DV[at] ^ bits]) + DV[at + 1 :]
            with pytest.raises(CorruptTable) as caught:
                puffin.decode_dv(flipped, file=FILE)
            assert caught.value.file == FILE


@pytest.mark.parametrize(
    ("blob", "rule"),
    [
        *((DV[:length], "cut short") for length in range(12)),
        *((DV[:length], "says it is 38 bytes long") for length in range(12, len(DV))),
        (DV + b"\0", "says it is 38 bytes long"),
        (DV[:4] + b"\xd0" + DV[5:], "magic d0d33964"),
        (DV[:-1] + b"\x5d", "checksum"),
    ],
)
def test_a_deletion_vector_that_breaks_a_rule_is_refused(blob: bytes, rule: str) -> None:
    with pytest.raises(CorruptTable, match=rule):
        puffin.decode_dv(blob, file=FILE)


def test_a_deletion_vector_with_a_right_checksum_of_a_wrong_bitmap_is_refused() -> None:
    body = DV[4:-4].replace(b"\2\0\5\0", b"\5\0\2\0")
    blob = struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    with pytest.raises(CorruptTable, match="do not ascend"):
        puffin.decode_dv(blob, file=FILE)


def test_a_file_has_the_bytes_of_the_format() -> None:
    blob = puffin.dv_blob(BitMap([1, 2, 5]), referenced_data_file="data/a.parquet")
    written = puffin.write([blob], properties={"created-by": "a test"})
    golden = b"PFA1" + DV + b"PFA1" + FOOTER + struct.pack("<iI", FOOTER_BYTES, 0) + b"PFA1"
    assert len(FOOTER) == FOOTER_BYTES
    assert written.data == golden


def test_a_footer_gives_back_what_was_written() -> None:
    footer = footer_of(framed(FOOTER))
    assert footer.properties == {"created-by": "a test"}
    assert footer.blobs == (
        puffin.Blob(
            type="deletion-vector-v1",
            fields=(2147483645,),
            snapshot_id=-1,
            sequence_number=-1,
            offset=4,
            length=46,
            properties={"referenced-data-file": "data/a.parquet", "cardinality": "3"},
        ),
    )


new_blobs = st.builds(
    puffin.NewBlob,
    type=st.text(max_size=5),
    payload=st.binary(max_size=300),
    fields=st.lists(st.integers(0, 100), max_size=2).map(tuple),
    snapshot_id=st.integers(-1, (1 << 63) - 1),
    sequence_number=st.integers(-1, 100),
    properties=st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
)


@given(st.lists(new_blobs, max_size=4))
@law(30)
def test_blobs_survive_their_file(blobs: list[puffin.NewBlob]) -> None:
    written = puffin.write(blobs, properties={"k": "v"})
    footer = footer_of(written.data)
    assert footer == puffin.Footer(blobs=written.blobs, properties={"k": "v"})
    payloads = [written.data[blob.offset :][: blob.length] for blob in footer.blobs]
    assert payloads == [blob.payload for blob in blobs]


def test_a_compressed_footer_says_the_same_as_a_plain_one() -> None:
    plain, compressed = small_files()
    assert len(compressed) != len(plain)
    assert footer_of(compressed) == footer_of(plain)


def test_each_deletion_vector_is_read_by_its_own_range() -> None:
    removed = {"data/a.parquet": BitMap([1]), "data/b.parquet": BitMap(range(100_000))}
    written = puffin.write(
        [puffin.dv_blob(rows, referenced_data_file=name) for name, rows in removed.items()]
    )
    for blob, rows in zip(written.blobs, removed.values(), strict=True):
        stored = written.data[blob.offset : blob.offset + blob.length]
        assert list(puffin.decode_dv(stored, file=FILE)) == list(rows)
        assert blob.properties["cardinality"] == str(len(rows))


def test_pyiceberg_reads_our_deletion_vectors() -> None:
    far = BitMap64([0, 3, (2 << 32) + 7])
    near = BitMap([*range(5000), 70_000])
    written = puffin.write(
        [
            puffin.dv_blob(near, referenced_data_file="data/near.parquet"),
            puffin.dv_blob(far, referenced_data_file="data/far.parquet"),
        ]
    )
    theirs = PyIcebergPuffin(written.data)
    assert [blob.model_dump()["offset"] for blob in theirs.footer.blobs] == [
        blob.offset for blob in written.blobs
    ]
    found = {
        vector.referenced_data_file: vector.to_vector().to_pylist()
        for vector in deletion_vectors_from_puffin_file(theirs)
    }
    assert found == {"data/near.parquet": list(near), "data/far.parquet": list(far)}


def test_a_footer_at_the_end_of_a_long_file_costs_one_read() -> None:
    written = puffin.write([puffin.NewBlob(type="note", payload=bytes(1_000_000))])
    ranges = Ranges(written.data)
    assert puffin.read_footer(ranges, len(written.data), file=FILE).blobs == written.blobs
    assert ranges.asked == [(len(written.data) - 16384, 16384)]


def test_a_footer_longer_than_the_first_read_costs_two() -> None:
    blobs = [puffin.NewBlob(type=f"note {number}", payload=b"x" * 99) for number in range(500)]
    written = puffin.write(blobs)
    ranges = Ranges(written.data)
    assert puffin.read_footer(ranges, len(written.data), file=FILE).blobs == written.blobs
    assert len(ranges.asked) == 2
    assert sum(length for _, length in ranges.asked) < len(written.data) - 500 * 99 + 16384


def small_files() -> list[bytes]:
    """One file twice: with a plain footer, and with the compressed one others may write."""
    packed = pa.Codec("lz4").compress(FOOTER, asbytes=True)
    return [framed(FOOTER), framed(packed, flags=1)]


@pytest.mark.parametrize("data", small_files(), ids=["plain footer", "compressed footer"])
def test_every_truncation_of_a_file_is_refused(data: bytes) -> None:
    for length in range(len(data)):
        with pytest.raises(CorruptTable) as caught:
            footer_of(data[:length])
        assert caught.value.file == FILE


@pytest.mark.parametrize("data", small_files(), ids=["plain footer", "compressed footer"])
def test_a_file_shorter_than_its_stated_size_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptTable, match="bytes were expected"):
        puffin.read_footer(Ranges(data), len(data) + 1, file=FILE)


@pytest.mark.parametrize("data", small_files(), ids=["plain footer", "compressed footer"])
def test_a_flip_of_one_byte_of_a_footer_is_refused_or_gives_another_valid_footer(
    data: bytes,
) -> None:
    start = 4 + len(DV)
    for at in (*range(4), *range(start, len(data))):
        for bits in (0x01, 0x02, 0x10, 0x80, 0xFF):
            flipped = data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :]
            try:
                footer = footer_of(flipped)
            except CorruptTable:
                continue
            assert start + 4 <= at < len(data) - 12
            assert all(
                4 <= blob.offset <= blob.offset + blob.length <= start for blob in footer.blobs
            )


BAD_FOOTERS = {
    "no JSON": (b"", "not what it must be"),
    "not JSON": (b"{", "not what it must be"),
    "not an object": (b"[]", "Expected `object`"),
    "not UTF-8": (FOOTER.replace(b"a test", b"a \xfftest"), "utf-8"),
    "nested without end": (b'{"x":' + b"[" * 5000, "recursion"),
    "no blobs": (b"{}", "missing required field `blobs`"),
    "a property that is no string": (b'{"blobs":[],"properties":{"a":1}}', "Expected `str`"),
    **{
        f"no {key}": (footer_saying(**{key: None}), f"missing required field `{key}`")
        for key in ("type", "fields", "snapshot-id", "sequence-number", "offset", "length")
    },
    "an offset that is no number": (footer_saying(offset="4"), "Expected `int`"),
    "an offset in the magic": (footer_saying(offset=3), "blob at 3"),
    "a negative offset": (footer_saying(offset=-4), "blob at -4"),
    "a negative length": (footer_saying(length=-1), "of length -1"),
    "a length past the blobs": (footer_saying(length=47), "of length 47"),
    "an offset past the blobs": (footer_saying(offset=1 << 70), "blob at"),
    "no referenced file": (footer_saying(properties={"cardinality": "3"}), "referenced-data-file"),
    "no cardinality": (footer_saying(properties={"referenced-data-file": "a"}), "cardinality"),
    "a cardinality that is no number": (
        footer_saying(properties={"referenced-data-file": "a", "cardinality": "-3"}),
        "cardinality",
    ),
    "a snapshot": (footer_saying(snapshot_id=1), "snapshot-id and sequence-number -1"),
    "a sequence number": (footer_saying(sequence_number=1), "snapshot-id and sequence-number -1"),
    "a compressed vector": (footer_saying(compression_codec="zstd"), "must not be compressed"),
}


@pytest.mark.parametrize(("payload", "rule"), BAD_FOOTERS.values(), ids=BAD_FOOTERS.keys())
def test_a_footer_that_breaks_a_rule_is_refused(payload: bytes, rule: str) -> None:
    with pytest.raises(CorruptTable, match=rule) as caught:
        footer_of(framed(payload))
    assert caught.value.file == FILE


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (framed(FOOTER)[:-1] + b"2", "must end with"),
        (b"PFA2" + framed(FOOTER)[4:], "must start with"),
        (framed(FOOTER, blobs=DV[:-1] + b"x").replace(b"xPFA1", b"xPFA2"), "footer must start"),
        (framed(FOOTER, flags=2), "unknown flags 02000000"),
        (framed(FOOTER, flags=0x0100), "unknown flags 00010000"),
        (framed(FOOTER, flags=1), "do not decompress"),
        (framed(b"", flags=1), "do not decompress"),
        (framed(FOOTER)[:-12] + struct.pack("<iI", -1, 0) + b"PFA1", "size -1"),
        (framed(FOOTER)[:-12] + struct.pack("<iI", 10_000, 0) + b"PFA1", "size 10000"),
    ],
)
def test_a_file_with_a_bad_frame_is_refused(data: bytes, rule: str) -> None:
    with pytest.raises(CorruptTable, match=rule):
        footer_of(data)


def test_keys_a_later_version_may_add_are_ignored() -> None:
    payload = footer_saying(later={"a": [1]})
    assert footer_of(framed(payload)).blobs == footer_of(framed(FOOTER)).blobs


@pytest.mark.parametrize(
    "blob",
    [
        puffin.NewBlob(type=puffin.DELETION_VECTOR, payload=DV),
        puffin.NewBlob(
            type=puffin.DELETION_VECTOR,
            payload=DV,
            snapshot_id=7,
            properties={"referenced-data-file": "a", "cardinality": "3"},
        ),
    ],
    ids=["no properties", "a snapshot"],
)
def test_a_blob_that_breaks_a_rule_is_not_written(blob: puffin.NewBlob) -> None:
    with pytest.raises(InvalidInput):
        puffin.write([blob])
