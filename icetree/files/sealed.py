"""Files read as they were before they were encrypted; one without key metadata is as it is."""

from __future__ import annotations

import pyarrow as pa

from icetree.codec.encryption import key_metadata
from icetree.codec.encryption.stream import Stream, StreamFile, decrypt
from icetree.store.base import Store


def read_whole(store: Store, location: str, key: bytes | None) -> bytes:
    """Return a file; `key` is its key metadata, None where it is plain."""
    content = store.read(location)
    if key is None:
        return content
    return decrypt(content, key_metadata.decode(key, file=location), file=location)


def read_part(store: Store, location: str, key: bytes | None, *, offset: int, length: int) -> bytes:
    """Return a range of a file; of an encrypted one only the blocks that hold it are read."""
    if key is None:
        return store.read_range(location, offset=offset, length=length)
    return _stream(store, location, key).read(offset, length)


def size_of(store: Store, location: str, key: bytes | None) -> int:
    """Return how many bytes a file has, once it is decrypted."""
    return store.size(location) if key is None else _stream(store, location, key).text_bytes


def open_ranges(store: Store, location: str, key: bytes | None) -> pa.NativeFile:
    """Return a file for random access: only the ranges, or blocks, that are asked for are read."""
    if key is None:
        return store.open(location)
    return pa.PythonFile(StreamFile(_stream(store, location, key)), mode="r")


def _stream(store: Store, location: str, key: bytes) -> Stream:
    return Stream(
        lambda at, count: store.read_range(location, offset=at, length=count),
        key_metadata.decode(key, file=location),
        file=location,
    )
