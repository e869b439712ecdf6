"""Files read as they were before they were encrypted; one without key metadata is as it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from icetree.codec.encryption import key_metadata
from icetree.codec.encryption.stream import Stream, StreamFile, decrypt
from icetree.errors import NotFound
from icetree.store.base import Store


def read_whole(store: Store, location: str, key: bytes | None) -> bytes:
    """Return a file; `key` is its key metadata, None where it is plain."""
    with _told(location):
        content = store.read(location)
    if key is None:
        return content
    return decrypt(content, key_metadata.decode(key, file=location), file=location)


def read_part(store: Store, location: str, key: bytes | None, *, offset: int, length: int) -> bytes:
    """Return a range of a file; of an encrypted one only the blocks that hold it are read."""
    if key is None:
        with _told(location):
            return store.read_range(location, offset=offset, length=length)
    return _stream(store, location, key).read(offset, length)


def size_of(store: Store, location: str, key: bytes | None) -> int:
    """Return how many bytes a file has, once it is decrypted."""
    with _told(location):
        return store.size(location) if key is None else _stream(store, location, key).text_bytes


def open_ranges(store: Store, location: str, key: bytes | None) -> pa.NativeFile:
    """Return a file for random access: only the ranges, or blocks, that are asked for are read."""
    if key is None:
        with _told(location):
            return store.open(location)
    return pa.PythonFile(StreamFile(_stream(store, location, key)), mode="r")


def _stream(store: Store, location: str, key: bytes) -> Stream:
    def read_range(at: int, count: int) -> bytes:
        with _told(location):
            return store.read_range(location, offset=at, length=count)

    return Stream(
        read_range,
        key_metadata.decode(key, file=location),
        file=location,
    )


@contextmanager
def _told(location: str) -> Iterator[None]:
    """Say of a file that is not there why that may be, and what to do."""
    try:
        yield
    except NotFound:
        raise NotFound(
            f"{location} is gone: if its snapshot has expired since the table was loaded, refresh the "
            "table; otherwise it is lost, and verify tells what else is"
        ) from None
