"""Files in a dict: for tests, examples and tables that need not outlive the process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from threading import Lock

import pyarrow as pa

from icetree.errors import AlreadyExists, InvalidInput, NotFound
from icetree.spec.location import prefix_of, scheme_of
from icetree.store.base import FileInfo, check_range, in_turn
from icetree.store.places import MEMORY
from icetree.surroundings import now_ms


class MemoryStore:
    """A store of `memory://name/…`; each instance has files of its own."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._files: dict[str, tuple[bytes, int]] = {}

    def read(self, location: str) -> bytes:
        return self._find(location)[0]

    def read_range(self, location: str, *, offset: int, length: int) -> bytes:
        check_range(location, offset, length)
        return self._find(location)[0][offset : offset + length] if length else b""

    def open(self, location: str) -> pa.NativeFile:
        return pa.BufferReader(self._find(location)[0])

    def size(self, location: str) -> int:
        return len(self._find(location)[0])

    def exists(self, location: str) -> bool:
        return _checked(location) in self._files

    def write_new(self, location: str, content: bytes) -> None:
        new = (bytes(content), now_ms())
        with self._lock:
            if self._files.setdefault(_checked(location), new) is not new:
                raise AlreadyExists(f"{location} already exists")

    def write_many(self, files: Iterable[tuple[str, bytes]]) -> None:
        in_turn(self.write_new, files)

    def delete(self, locations: Iterable[str]) -> None:
        with self._lock:
            in_turn(lambda each: self._files.pop(_checked(each), None), zip(locations))

    def list(self, folder: str) -> Iterator[FileInfo]:
        prefix = prefix_of(_checked(folder))
        with self._lock:
            found = [item for item in self._files.items() if item[0].startswith(prefix)]
        for location, (content, at_ms) in found:
            yield FileInfo(location=location, size_bytes=len(content), modified_at_ms=at_ms)

    def _find(self, location: str) -> tuple[bytes, int]:
        try:
            return self._files[_checked(location)]
        except KeyError:
            raise NotFound(f"{location} does not exist") from None


def _checked(location: str) -> str:
    if scheme_of(location) not in MEMORY:
        raise InvalidInput(f"{location!r} is no place in memory: give memory://name/path")
    return location
