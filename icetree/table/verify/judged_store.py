"""A store as verification sees it: a name that it cannot take is a broken rule like others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import pyarrow as pa

from icetree.errors import CorruptTable, InvalidInput, Unsupported
from icetree.store.base import FileInfo, Store

T = TypeVar("T")


class JudgedStore:
    """Raises `CorruptTable` where the store refuses a name: it was a table's file that gave it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self, location: str) -> bytes:
        return _judged(location, lambda: self._store.read(location))

    def read_range(self, location: str, *, offset: int, length: int) -> bytes:
        return _judged(
            location, lambda: self._store.read_range(location, offset=offset, length=length)
        )

    def open(self, location: str) -> pa.NativeFile:
        return _judged(location, lambda: self._store.open(location))

    def size(self, location: str) -> int:
        return _judged(location, lambda: self._store.size(location))

    def exists(self, location: str) -> bool:
        return _judged(location, lambda: self._store.exists(location))

    def list(self, folder: str) -> Iterator[FileInfo]:
        return self._store.list(folder)

    def write_new(self, location: str, content: bytes) -> None:
        self._store.write_new(location, content)

    def write_many(self, files: Iterable[tuple[str, bytes]]) -> None:
        self._store.write_many(files)

    def delete(self, locations: Iterable[str]) -> None:
        self._store.delete(locations)


def _judged(location: str, ask: Callable[[], T]) -> T:
    try:
        return ask()
    except (InvalidInput, Unsupported) as error:
        raise CorruptTable(location, str(error)) from None
