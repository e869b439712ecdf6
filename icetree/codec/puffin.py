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
from pyroaring import BitMap, BitMap64

from icetree.codec import bitmap, limits
from icetree.codec.json_text import require_modest
from icetree.codec.unpack import UNREADABLE, OverLimit, lz4
from icetree.errors import CorruptTable, InvalidInput

MAGIC: Final = b"PFA1"

DELETION_VECTOR: Final = "deletion-vector-v1"
REFERENCED_DATA_FILE: Final = "referenced-data-file"
CARDINALITY: Final = "cardinality"

#: Returns `length` bytes of the file from `offset`.
ReadRange: TypeAlias = Callable[[int, int], bytes]

_DV_MAGIC = bytes.fromhex("d1d33964")
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
    """A blob to be written, as it is."""

    type: str
    payload: bytes
    fields: tuple[int, ...] = ()
    snapshot_id: int = _NO_ID
    sequence_number: int = _NO_ID
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PuffinFile:
    """A whole file, and where each blob stands in it, in the order they were given."""

    data: bytes
    blobs: tuple[Blob, ...]


class WrongChecksum(CorruptTable):
    """Stored bytes are not those that were written."""


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
        raise WrongChecksum(file, "deletion vector does not match its checksum")
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


def write(blobs: Sequence[NewBlob], *, properties: Mapping[str, str] | None = None) -> PuffinFile:
    """Return a file of these blobs, in this order, with a plain footer that every reader knows."""
    parts = [MAGIC]
    at = len(MAGIC)
    placed = []
    for new in blobs:
        blob = Blob(
            type=new.type,
            fields=new.fields,
            snapshot_id=new.snapshot_id,
            sequence_number=new.sequence_number,
            offset=at,
            length=len(new.payload),
            properties=dict(new.properties),
        )
        if broken := _broken_rule(blob, end=at + len(new.payload)):
            raise InvalidInput(broken)
        parts.append(new.payload)
        placed.append(blob)
        at += len(new.payload)

    footer = Footer(blobs=tuple(placed), properties=dict(properties or {}))
    payload = msgspec.json.encode(footer)
    parts += [MAGIC, payload, _TAIL.pack(len(payload), bytes(4), MAGIC)]
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
        payload = _decompress(payload, file)
    return _parse(payload, end=footer_at, file=file)


def _read(read_range: ReadRange, offset: int, length: int, file: str) -> bytes:
    found = read_range(offset, length)
    if len(found) != length:
        rule = f"{length} bytes were expected at {offset}, but there are {len(found)}"
        raise CorruptTable(file, rule)
    return found


def _parse(payload: bytes, *, end: int, file: str) -> Footer:
    require_modest(payload, file=file)
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


def _decompress(stored: bytes, file: str) -> bytes:
    def corrupt(why: object) -> NoReturn:
        raise CorruptTable(file, f"bytes do not decompress with 'lz4': {why}")

    # The stream takes no bytes at all for no frame at all.
    if not stored:
        corrupt("there are none")
    try:
        return lz4(stored, limits.METADATA.bytes)
    except OverLimit:
        raise limits.METADATA.exceeded(file, "its footer unpacks to more") from None
    except UNREADABLE as err:
        corrupt(err)
