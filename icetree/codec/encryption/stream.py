"""AES-GCM streams (AGS1): any file, cut into blocks that are encrypted one by one.

Magic, the length of a block, then the blocks, each with its nonce and tag. What is authenticated with
a block is the file's prefix and the block's number, so that blocks cannot change places, and no file can
take another's. How long the stream is comes from the key metadata: a block cut off is found missing.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from typing_extensions import Buffer

from icetree.codec import limits
from icetree.codec.encryption import key_metadata
from icetree.codec.encryption.gcm import OVERHEAD, Cipher, NotAuthentic
from icetree.codec.encryption.key_metadata import FileKey, new_file_key
from icetree.codec.seeking import Seeking
from icetree.errors import CorruptTable

MAGIC: Final = b"AGS1"
#: That of Iceberg Java, which reads no other.
BLOCK_BYTES: Final = 1024 * 1024
_HEAD: Final = struct.Struct("<4si")
_NUMBER: Final = struct.Struct("<i")

#: Returns `length` bytes of the stored file from `offset`.
ReadRange: TypeAlias = Callable[[int, int], bytes]


def seal(text: bytes, key_bytes: int | None) -> tuple[bytes, bytes | None]:
    """Return a file as it is stored, and the key metadata that opens it; plain without a key."""
    if key_bytes is None:
        return text, None
    key = new_file_key(key_bytes)
    stored = encrypt(text, key)
    return stored, key_metadata.encode(replace(key, length=len(stored)))


def encrypt(text: bytes, key: FileKey) -> bytes:
    """Return a file as an AES-GCM stream."""
    cipher = Cipher(key.key)
    parts = [_HEAD.pack(MAGIC, BLOCK_BYTES)]
    # An empty file has one empty block, which says that nothing is missing.
    for number, start in enumerate(range(0, len(text) or 1, BLOCK_BYTES)):
        block = text[start : start + BLOCK_BYTES]
        parts.append(cipher.encrypt(block, key.aad_prefix + _NUMBER.pack(number)))
    return b"".join(parts)


def decrypt(stored: bytes, key: FileKey, *, file: str) -> bytes:
    """Return the file that a stream holds; CorruptTable for bytes that are not as they were written."""
    if len(stored) != _length(key, file):
        raise CorruptTable(
            file, f"it has {len(stored)} bytes, its key metadata says {key.length}: it is not whole"
        )
    stream = Stream(lambda at, count: stored[at : at + count], key, file=file)
    return stream.read(0, stream.text_bytes)


@dataclass(slots=True)
class Stream:
    """An AES-GCM stream of which only the blocks are read that are asked for; the last is kept."""

    read_range: ReadRange
    key: FileKey
    file: str = field(kw_only=True)
    text_bytes: int = field(init=False)
    _cipher: Cipher = field(init=False)
    _block_bytes: int = field(init=False)
    _kept: tuple[int, bytes] = field(init=False, default=(-1, b""))

    def __post_init__(self) -> None:
        length = _length(self.key, self.file)
        head = self.read_range(0, _HEAD.size)
        if len(head) < _HEAD.size or head[: len(MAGIC)] != MAGIC:
            raise CorruptTable(self.file, "it is not encrypted as an AES-GCM stream")
        self._block_bytes = _HEAD.unpack(head)[1]
        if self._block_bytes <= 0:
            raise CorruptTable(self.file, f"its blocks have {self._block_bytes} bytes")
        limits.METADATA.require(self._block_bytes, file=self.file, what="one of its blocks")
        self._cipher = Cipher(self.key.key)
        whole, rest = divmod(length - _HEAD.size, self._block_bytes + OVERHEAD)
        if rest and rest < OVERHEAD:
            raise CorruptTable(self.file, "its last block is too short")
        self.text_bytes = whole * self._block_bytes + max(0, rest - OVERHEAD)

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes of the file from an offset on, fewer where it ends before."""
        end = min(offset + length, self.text_bytes)
        if offset >= end:
            # An empty file is one block as well, that must be authentic.
            return self._block(0)[:0] if self.text_bytes == 0 else b""
        first, last = offset // self._block_bytes, (end - 1) // self._block_bytes
        blocks = b"".join(self._block(number) for number in range(first, last + 1))
        start = first * self._block_bytes
        return blocks[offset - start : end - start]

    def _block(self, number: int) -> bytes:
        if self._kept[0] == number:
            return self._kept[1]
        stored_bytes = self._block_bytes + OVERHEAD
        at = _HEAD.size + number * stored_bytes
        assert self.key.length is not None
        stored = self.read_range(at, min(stored_bytes, self.key.length - at))
        try:
            text = self._cipher.decrypt(stored, self.key.aad_prefix + _NUMBER.pack(number))
        except NotAuthentic:
            raise CorruptTable(
                self.file,
                f"block {number} is not what was encrypted with its key: it is damaged, or another's",
            ) from None
        self._kept = (number, text)
        return text


def _length(key: FileKey, file: str) -> int:
    if key.length is None:
        raise CorruptTable(file, "its key metadata does not say how long it is")
    if key.length < _HEAD.size + OVERHEAD:
        raise CorruptTable(file, f"{key.length} bytes are too few for an AES-GCM stream")
    return key.length


class StreamWriter(io.RawIOBase):
    """A stream that is being made, a block at a time, by who writes a file to it."""

    def __init__(self, write: Callable[[bytes], object], key: FileKey) -> None:
        self._write = write
        self._key = key
        self._cipher = Cipher(key.key)
        self._held = bytearray()
        self._number = 0
        write(_HEAD.pack(MAGIC, BLOCK_BYTES))
        self._length = _HEAD.size

    def writable(self) -> bool:
        return True

    def write(self, text: Buffer) -> int:
        self._held += text
        while len(self._held) > BLOCK_BYTES:
            self._put(bytes(self._held[:BLOCK_BYTES]))
            del self._held[:BLOCK_BYTES]
        return memoryview(text).nbytes

    def finish(self) -> FileKey:
        """Write what is left, and return the key of the whole file."""
        self._put(bytes(self._held))
        self._held.clear()
        return replace(self._key, length=self._length)

    def _put(self, block: bytes) -> None:
        aad = self._key.aad_prefix + _NUMBER.pack(self._number)
        stored = self._cipher.encrypt(block, aad)
        self._write(stored)
        self._length += len(stored)
        self._number += 1


class StreamFile(Seeking):
    """A stream as a file that Python, and Arrow through it, reads ranges of."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream.text_bytes)
        self._stream = stream

    def read(self, size: int | None = -1, /) -> bytes:
        found = self._stream.read(self._at, self._length(size))
        self._at += len(found)
        return found

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        found = self.read(len(view))
        view[: len(found)] = found
        return len(found)
