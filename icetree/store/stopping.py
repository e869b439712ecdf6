"""A store for work that may have to end: it asks before each request whether to go on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from icetree.errors import Unavailable
from icetree.store.base import FileInfo, Store
from icetree.surroundings import clock


class Stop:
    """Whether some work is to end: after a time, or once somebody says so. Threads may share it."""

    def __init__(self) -> None:
        self._clock = clock()
        self._ends: dict[str, float] = {}
        self._why: str | None = None

    def after(self, seconds: float, why: str) -> None:
        """Have the work end in so many seconds from now, for a reason; said again, from then on."""
        # Another in its place, for those who look at it meanwhile.
        self._ends = {**self._ends, why: self._clock() + seconds}

    def now(self, why: str) -> None:
        """Have the work end at the next opportunity, for a reason."""
        self._why = self._why or why

    def check(self) -> None:
        """Return if the work is to go on; else Unavailable, with the reason."""
        if self._why is not None:
            raise Unavailable(self._why)
        now = self._clock()
        for why, end_s in self._ends.items():
            if now >= end_s:
                raise Unavailable(why)


class StoppingStore:
    """Does what another store does, as long as the work goes on; what was begun is finished."""

    def __init__(self, store: Store, stop: Stop) -> None:
        self._store = store
        self._stop = stop

    def read(self, location: str) -> bytes:
        return self._going_on().read(location)

    def read_range(self, location: str, *, offset: int, length: int) -> bytes:
        return self._going_on().read_range(location, offset=offset, length=length)

    def open(self, location: str) -> pa.NativeFile:
        return self._going_on().open(location)

    def size(self, location: str) -> int:
        return self._going_on().size(location)

    def exists(self, location: str) -> bool:
        return self._going_on().exists(location)

    def write_new(self, location: str, content: bytes) -> None:
        self._going_on().write_new(location, content)

    def write_many(self, files: Iterable[tuple[str, bytes]]) -> None:
        self._going_on().write_many(files)

    def delete(self, locations: Iterable[str]) -> None:
        self._going_on().delete(locations)

    def list(self, folder: str) -> Iterator[FileInfo]:
        return self._going_on().list(folder)

    def _going_on(self) -> Store:
        self._stop.check()
        return self._store
