"""A store whose new files are kept in memory, until somebody wants them stored or nobody does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from icetree.errors import AlreadyExists
from icetree.store.base import FileInfo, Store, check_range, in_turn


class AsideStore:
    """Reads what another store has, and what was written here; that one sees none of it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._new: dict[str, bytes] = {}

    @property
    def beneath(self) -> Store:
        """The store that has all else."""
        return self._store

    @property
    def new(self) -> Mapping[str, bytes]:
        """What was written here and not deleted since, by location."""
        return self._new

    def read(self, location: str) -> bytes:
        content = self._new.get(location)
        return self._store.read(location) if content is None else content

    def read_range(self, location: str, *, offset: int, length: int) -> bytes:
        content = self._new.get(location)
        if content is None:
            return self._store.read_range(location, offset=offset, length=length)
        check_range(location, offset, length)
        return content[offset : offset + length]

    def open(self, location: str) -> pa.NativeFile:
        content = self._new.get(location)
        return self._store.open(location) if content is None else pa.BufferReader(content)

    def size(self, location: str) -> int:
        content = self._new.get(location)
        return self._store.size(location) if content is None else len(content)

    def exists(self, location: str) -> bool:
        return location in self._new or self._store.exists(location)

    def write_new(self, location: str, content: bytes) -> None:
        # Whether the other store has such a file is seen when it is stored there.
        if location in self._new:
            raise AlreadyExists(f"{location} already exists")
        self._new[location] = bytes(content)

    def write_many(self, files: Iterable[tuple[str, bytes]]) -> None:
        in_turn(self.write_new, files)

    def delete(self, locations: Iterable[str]) -> None:
        for location in locations:
            self._new.pop(location, None)

    def list(self, folder: str) -> Iterator[FileInfo]:
        return self._store.list(folder)
