"""AES-GCM streams: what was written comes back, only what is needed is read, no byte can be changed."""

from __future__ import annotations

import struct
from dataclasses import replace
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from icetree.codec.encryption import key_metadata, stream
from icetree.codec.encryption.key_metadata import FileKey, new_file_key
from icetree.codec.encryption.stream import BLOCK_BYTES, Stream, StreamFile, StreamWriter, seal
from icetree.errors import CorruptTable, TooLarge

FILE = "metadata/m.parquet"
STORED_BLOCK = BLOCK_BYTES + 28


def sealed(text: bytes, key_bytes: int = 16) -> tuple[bytes, FileKey]:
    stored, key = seal(text, key_bytes)
    assert key is not None
    return stored, key_metadata.decode(key, file=FILE)


@pytest.mark.parametrize("key_bytes", [16, 24, 32])
@pytest.mark.parametrize(
    "size", [0, 1, 27, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES]
)
def test_what_was_encrypted_comes_back(size: int, key_bytes: int) -> None:
    text = (bytes(range(251)) * (size // 251 + 1))[:size]
    stored, key = sealed(text, key_bytes)
    assert stream.decrypt(stored, key, file=FILE) == text
    assert len(text) < 8 or text[:20] not in stored
    assert len(key.key) == key_bytes


@pytest.mark.parametrize("size", [0, 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES])
@pytest.mark.parametrize("step", [300_000, 4 * BLOCK_BYTES])
def test_a_file_that_is_written_bit_by_bit_is_that_of_one_write(size: int, step: int) -> None:
    text, key = bytes(size), new_file_key(16)
    made = BytesIO()
    writer = StreamWriter(made.write, key)
    for start in range(0, size, step):
        writer.write(text[start : start + step])
    whole = writer.finish()
    assert len(made.getvalue()) == whole.length == len(stream.encrypt(text, key))
    assert stream.decrypt(made.getvalue(), whole, file=FILE) == text


def test_a_stream_is_laid_out_as_the_specification_says() -> None:
    text = b"a" * BLOCK_BYTES + b"the end"
    stored, key = sealed(text)
    magic, block_bytes = struct.unpack_from("<4si", stored)
    assert (magic, block_bytes) == (b"AGS1", BLOCK_BYTES)
    aes, found = AESGCM(key.key), []
    for number, at in enumerate((8, 8 + STORED_BLOCK)):
        block = stored[at : at + STORED_BLOCK]
        aad = key.aad_prefix + struct.pack("<i", number)
        found.append(aes.decrypt(block[:12], block[12:], aad))
    assert b"".join(found) == text


def test_a_file_of_one_text_is_stored_otherwise_each_time() -> None:
    assert sealed(b"same")[0] != sealed(b"same")[0]
    assert seal(b"same", None) == (b"same", None)


def test_only_the_blocks_that_are_asked_for_are_read() -> None:
    text = b"".join(bytes([number]) * BLOCK_BYTES for number in range(5))
    stored, key = sealed(text)
    read: list[tuple[int, int]] = []

    def read_range(at: int, count: int) -> bytes:
        read.append((at, count))
        return stored[at : at + count]

    found = Stream(read_range, key, file=FILE)
    assert found.read(3 * BLOCK_BYTES + 7, 10) == b"\3" * 10
    assert found.read(3 * BLOCK_BYTES + 99, 10) == b"\3" * 10
    assert read == [(0, 8), (8 + 3 * STORED_BLOCK, STORED_BLOCK)]
    assert found.read(2 * BLOCK_BYTES - 1, 2) == b"\1\2"
    assert [at for at, _ in read[2:]] == [8 + STORED_BLOCK, 8 + 2 * STORED_BLOCK]
    assert found.read(len(text) - 1, 99) == b"\4"
    assert found.read(len(text), 1) == b""


def test_arrow_reads_ranges_of_a_stream() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"n": range(300_000)}), sink, row_group_size=50_000, compression="none")
    stored, key = sealed(sink.getvalue().to_pybytes())
    read: list[int] = []

    def read_range(at: int, count: int) -> bytes:
        read.append(count)
        return stored[at : at + count]

    opened = StreamFile(Stream(read_range, key, file=FILE))
    with pq.ParquetFile(pa.PythonFile(opened, mode="r")) as parquet:
        assert parquet.read_row_group(5)["n"][0].as_py() == 250_000
    assert sum(read) < len(stored) // 2


def opens(stored: bytes, key: FileKey) -> bool:
    try:
        stream.decrypt(stored, key, file=FILE)
    except CorruptTable:
        return False
    return True


def test_no_change_of_a_stored_file_goes_unnoticed() -> None:
    stored, key = sealed(b"x" * (BLOCK_BYTES + 10))
    other, _ = sealed(b"y" * (BLOCK_BYTES + 10))
    first, last = stored[8 : 8 + STORED_BLOCK], stored[8 + STORED_BLOCK :]
    changed = {
        "cut in a block": stored[:-1],
        "a block cut off": stored[: 8 + STORED_BLOCK],
        "nothing left": b"",
        "longer": stored + b"\0",
        "another's": other,
        "blocks in another order": stored[:8] + last + first,
        "one block of another": other[: 8 + STORED_BLOCK] + last,
        "plain": b"PAR1" + stored[4:],
    }
    for at in (0, 4, 5, 8, 19, 30, STORED_BLOCK - 1, 8 + STORED_BLOCK, len(stored) - 1):
        flipped = bytearray(stored)
        flipped[at] ^= 1
        changed[f"byte {at}"] = bytes(flipped)
    unnoticed = [what for what, content in changed.items() if opens(content, key)]
    assert unnoticed == []


def test_a_block_cut_off_is_found_though_the_rest_is_authentic() -> None:
    stored, key = sealed(b"x" * (2 * BLOCK_BYTES))
    short = stored[: 8 + STORED_BLOCK]
    assert stream.decrypt(short, replace(key, length=len(short)), file=FILE) == b"x" * BLOCK_BYTES
    with pytest.raises(CorruptTable, match="not whole"):
        stream.decrypt(short, key, file=FILE)
    with pytest.raises(CorruptTable, match="does not say how long"):
        stream.decrypt(stored, replace(key, length=None), file=FILE)


def test_a_file_cannot_say_that_its_blocks_are_huge(monkeypatch: pytest.MonkeyPatch) -> None:
    stored, key = sealed(b"x")
    monkeypatch.setenv("ICETREE_MAX_METADATA_BYTES", str(BLOCK_BYTES))
    huge = stored[:4] + struct.pack("<i", 2**31 - 1) + stored[8:]
    with pytest.raises(TooLarge):
        stream.decrypt(huge, key, file=FILE)


def test_key_metadata_is_that_of_iceberg() -> None:
    key = FileKey(key=b"0123456789012345", aad_prefix=b"prefix", length=300)
    # The version, then Avro: a length and bytes, twice with the number of the union's type between.
    expected = b"\1" + b"\x20" + key.key + b"\2\x0c" + key.aad_prefix + b"\2" + b"\xd8\x04"
    assert key_metadata.encode(key) == expected
    assert key_metadata.decode(expected, file=FILE) == key
    bare = b"\1" + b"\x20" + key.key + b"\0\0"
    assert key_metadata.decode(bare, file=FILE) == FileKey(key=key.key)


@pytest.mark.parametrize(
    "stored", [b"", b"\1", b"\2\x20", b"\1\x20short", b"\1\x08abcd\0\0", b"\1\xff\xff\xff\xff\x0f"]
)
def test_broken_key_metadata_is_told_without_being_shown(stored: bytes) -> None:
    with pytest.raises(CorruptTable, match=r"m\.parquet: its key metadata") as error:
        key_metadata.decode(stored, file=FILE)
    assert "abcd" not in str(error.value)


def test_no_text_form_shows_a_key() -> None:
    key = FileKey(key=b"0123456789012345", aad_prefix=b"prefix", length=300)
    assert "0123" not in repr(key)
    assert "prefix" not in repr(key)
