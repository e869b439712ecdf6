"""Puffin files: blobs one after the other, and a JSON footer that says what they are.

Also the one blob type icetree uses, `deletion-vector-v1`: a framed and check-summed bitmap.
Reading asks for byte ranges, so a reader never fetches more of a file than it needs.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn, TypeAlias

import msgspec
import pyarrow as pa
from pyroaring import BitMap, BitMap64

from icetree.codec import bitmap
from icetree.errors import CorruptTable, InvalidInput

MAGIC: Final = b"PFA1"

DELETION_VECTOR: Final = "deletion-vector-v1"
REFERENCED_DATA_FILE: Final = "referenced-data-file"
CARDINALITY: Final = "cardinality"

#: Returns `length` bytes of the file from `offset`.
ReadRange: TypeAlias = Callable[[int, int], bytes]

_DV_MAGIC = bytes.fromhex("d1d33964")
_CODECS = ("lz4", "zstd")
# The reserved id of the `_pos` column, which is what a deletion vector is about.
_POS_FIELD_ID = 2147483645
# A deletion vector is written before the commit that would give it these.
_NO_ID = -1

_TAIL = struct.Struct("<i4s4s")  # payload size, flags, magic
_TAIL_READ_BYTES = 16 * 1024
_FLAG_COMPRESSED = 1
_SMALLEST_FILE = 2 * len(MAGIC) + _TAIL.size


class Blob(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """What a footer says of one blob. Offset and length are of the stored, compressed bytes."""

    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    offset: int
    length: int
    compression_codec: str | None = None
    properties: dict[str, str] = {}


class Footer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a file says of itself."""

    blobs: tuple[Blob, ...]
    properties: dict[str, str] = {}


#: Made at import, in one thread: msgspec does not survive two that meet a class for the first time.
_FOOTER = msgspec.json.Decoder(Footer)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBlob:
    """A blob to be written; `payload` is not yet compressed."""

    type: str
    payload: bytes
    fields: tuple[int, ...] = ()
    snapshot_id: int = _NO_ID
    sequence_number: int = _NO_ID
    compression_codec: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PuffinFile:
    """A whole file, and where each blob stands in it, in the order they were given."""

    data: bytes
    blobs: tuple[Blob, ...]


def encode_dv(positions: BitMap64 | BitMap) -> bytes:
    """Return the bytes of a `deletion-vector-v1` blob."""
    if isinstance(positions, BitMap):
        vector = bitmap.encode_as64(positions)
    else:
        vector = bitmap.encode64(positions)
    body = _DV_MAGIC + vector
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def decode_dv(blob: bytes, *, file: str) -> BitMap64:
    """Read a `deletion-vector-v1` blob, given exactly its bytes."""
    if len(blob) < 4 + len(_DV_MAGIC) + 4:
        raise CorruptTable(file, f"deletion vector of {len(blob)} bytes is cut short")
    body = blob[4:-4]
    (length,) = struct.unpack_from(">I", blob)
    if length != len(body):
        rule = f"deletion vector says it is {length} bytes long, but has {len(body)}"
        raise CorruptTable(file, rule)
    if not body.startswith(_DV_MAGIC):
        raise CorruptTable(file, f"deletion vector has magic {body[:4].hex()}, not d1d33964")
    (checksum,) = struct.unpack_from(">I", blob, len(blob) - 4)
    if checksum != zlib.crc32(body):
        raise CorruptTable(file, "deletion vector does not match its checksum")
    return bitmap.decode64(body[len(_DV_MAGIC) :], file=file)


def dv_blob(positions: BitMap64 | BitMap, *, referenced_data_file: str) -> NewBlob:
    """Return the blob that removes these positions of a file (rows, or entries of a leaf)."""
    return NewBlob(
        type=DELETION_VECTOR,
        payload=encode_dv(positions),
        fields=(_POS_FIELD_ID,),
        properties={
            REFERENCED_DATA_FILE: referenced_data_file,
            CARDINALITY: str(len(positions)),
        },
    )


def write(
    blobs: Sequence[NewBlob],
    *,
    properties: Mapping[str, str] | None = None,
    compress_footer: bool = False,
) -> PuffinFile:
    """Return a file of these blobs, in this order.

    Few other readers understand a compressed footer, so it is off unless asked for.
    """
    parts = [MAGIC]
    at = len(MAGIC)
    placed = []
    for new in blobs:
        stored = new.payload
        if new.compression_codec is not None:
            stored = _compress(stored, new.compression_codec)
        blob = Blob(
            type=new.type,
            fields=new.fields,
            snapshot_id=new.snapshot_id,
            sequence_number=new.sequence_number,
            offset=at,
            length=len(stored),
            compression_codec=new.compression_codec,
            properties=dict(new.properties),
        )
        if broken := _broken_rule(blob, end=at + len(stored)):
            raise InvalidInput(broken)
        parts.append(stored)
        placed.append(blob)
        at += len(stored)

    footer = Footer(blobs=tuple(placed), properties=dict(properties or {}))
    payload = msgspec.json.encode(footer)
    flags = 0
    if compress_footer:
        payload = _compress(payload, "lz4")
        flags = _FLAG_COMPRESSED
    parts += [MAGIC, payload, _TAIL.pack(len(payload), flags.to_bytes(4, "little"), MAGIC)]
    return PuffinFile(data=b"".join(parts), blobs=footer.blobs)


def read_footer(read_range: ReadRange, size: int, *, file: str) -> Footer:
    """Read the footer of a file of `size` bytes, in one range read or, if it is long, two.

    The magic at the very start is checked only where that range reaches it.
    """
    if size < _SMALLEST_FILE:
        raise CorruptTable(file, f"{size} bytes are too few for a Puffin file")
    start = max(0, size - _TAIL_READ_BYTES)
    tail = _read(read_range, start, size - start, file)
    payload_size, flags, magic = _TAIL.unpack_from(tail, len(tail) - _TAIL.size)
    if magic != MAGIC:
        raise CorruptTable(file, f"a Puffin file must end with {MAGIC!r}, not {magic!r}")
    compressed = int.from_bytes(flags, "little")
    if compressed not in (0, _FLAG_COMPRESSED):
        raise CorruptTable(file, f"Puffin footer has unknown flags {flags.hex()}")
    footer_at = size - _TAIL.size - payload_size - len(MAGIC)
    if payload_size < 0 or footer_at < len(MAGIC):
        raise CorruptTable(file, f"Puffin footer size {payload_size} does not fit {size} bytes")
    if footer_at < start:
        tail = _read(read_range, footer_at, start - footer_at, file) + tail
        start = footer_at
    if start == 0 and not tail.startswith(MAGIC):
        raise CorruptTable(file, f"a Puffin file must start with {MAGIC!r}, not {tail[:4]!r}")
    footer = tail[footer_at - start : -_TAIL.size]
    if not footer.startswith(MAGIC):
        raise CorruptTable(file, f"a Puffin footer must start with {MAGIC!r}, not {footer[:4]!r}")
    payload = footer[len(MAGIC) :]
    if compressed:
        payload = _decompress(payload, "lz4", file)
    return _parse(payload, end=footer_at, file=file)


def read_blob(read_range: ReadRange, blob: Blob, *, file: str) -> bytes:
    """Return the payload of a blob, decompressed."""
    stored = _read(read_range, blob.offset, blob.length, file) if blob.length else b""
    if blob.compression_codec is None:
        return stored
    return _decompress(stored, blob.compression_codec, file)


def _read(read_range: ReadRange, offset: int, length: int, file: str) -> bytes:
    found = read_range(offset, length)
    if len(found) != length:
        rule = f"{length} bytes were expected at {offset}, but there are {len(found)}"
        raise CorruptTable(file, rule)
    return found


def _parse(payload: bytes, *, end: int, file: str) -> Footer:
    try:
        footer = _FOOTER.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
        raise CorruptTable(file, f"Puffin footer is not what it must be: {err}") from err
    for blob in footer.blobs:
        if broken := _broken_rule(blob, end=end):
            raise CorruptTable(file, broken)
    return footer


def _broken_rule(blob: Blob, *, end: int) -> str | None:
    """Return the rule this blob breaks, if any; blobs of a file stop at `end`."""
    if blob.offset < len(MAGIC) or blob.length < 0 or blob.offset + blob.length > end:
        return f"blob at {blob.offset} of length {blob.length} is not between 4 and {end}"
    if blob.type != DELETION_VECTOR:
        return None
    if blob.compression_codec is not None:
        return f"deletion vector at {blob.offset} must not be compressed"
    if blob.snapshot_id != _NO_ID or blob.sequence_number != _NO_ID:
        return f"deletion vector at {blob.offset} must have snapshot-id and sequence-number -1"
    if not blob.properties.get(REFERENCED_DATA_FILE):
        return f"deletion vector at {blob.offset} lacks {REFERENCED_DATA_FILE!r}"
    cardinality = blob.properties.get(CARDINALITY, "")
    if not (cardinality.isascii() and cardinality.isdigit()):
        return f"deletion vector at {blob.offset} lacks a number as {CARDINALITY!r}"
    return None


def _compress(payload: bytes, codec: str) -> bytes:
    if codec not in _CODECS:
        raise InvalidInput(f"blob compression codec {codec!r} is not one of {', '.join(_CODECS)}")
    frame: bytes = pa.Codec(codec).compress(payload, asbytes=True)
    return _with_content_size(frame, len(payload)) if codec == "lz4" else frame


def _decompress(stored: bytes, codec: str, file: str) -> bytes:
    def corrupt(why: object) -> NoReturn:
        raise CorruptTable(file, f"bytes do not decompress with {codec!r}: {why}")

    if codec not in _CODECS:
        corrupt(f"it is not one of {', '.join(_CODECS)}")
    # The stream takes no bytes at all for no frame at all.
    if not stored:
        corrupt("there are none")
    try:
        with pa.CompressedInputStream(pa.BufferReader(stored), codec) as stream:
            payload: bytes = stream.read()
    except (OSError, pa.ArrowException) as err:
        corrupt(err)
    return payload


def _with_content_size(frame: bytes, size: int) -> bytes:
    """Return an LZ4 frame that states its content size, which Puffin asks for and Arrow leaves out."""
    magic, flags, block_size = frame[:4], frame[4], frame[5]
    has_size = 0x08
    if flags & has_size:
        return frame
    described = struct.pack("<BBQ", flags | has_size, block_size, size)
    checksum = _xxh32_short(described) >> 8 & 0xFF
    return magic + described + bytes([checksum]) + frame[7:]


def _xxh32_short(data: bytes) -> int:
    """Return the 32-bit xxHash, seed 0, of fewer than 16 bytes: an LZ4 frame's header checksum."""
    word = 0xFFFFFFFF
    primes = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)

    def rotate(value: int, by: int) -> int:
        value &= word
        return (value << by | value >> 32 - by) & word

    total = primes[4] + len(data)
    whole = len(data) // 4 * 4
    for (lane,) in struct.iter_unpack("<I", data[:whole]):
        total = rotate(total + lane * primes[2], 17) * primes[3]
    for byte in data[whole:]:
        total = rotate(total + byte * primes[4], 11) * primes[0]
    total &= word
    total = (total ^ total >> 15) * primes[1] & word
    total = (total ^ total >> 13) * primes[2] & word
    return total ^ total >> 16
