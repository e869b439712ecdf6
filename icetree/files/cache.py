"""A cache of immutable files, least recently used first out, bounded in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

DEFAULT_LIMIT_BYTES = 256 * 1024 * 1024

#: Where a file is, and of which table, where that is told.
Location: TypeAlias = str | tuple[str | None, str]


class Cache:
    """Bytes by location. A file never changes once written, so an entry never goes stale.

    That is so of one table. Another may be made where it was, with files of the same names: `of`
    tells tables apart.
    """

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._size_bytes = 0
        self._held: OrderedDict[Location, bytes] = OrderedDict()
        self._derived: dict[str, OrderedDict[tuple[Any, ...], tuple[Any, int]]] = {}
        self._weights: dict[str, int] = {}
        self._lock = Lock()

    def of(self, table_uuid: str | None) -> TableCache:
        """Return the cache for the files of one table."""
        return TableCache(self, table_uuid)

    def get(self, location: Location, read: Callable[[], bytes]) -> bytes:
        """Return what is held for the location, reading it first where nothing is."""
        with self._lock:
            if location in self._held:
                self._held.move_to_end(location)
                return self._held[location]
        content = read()
        self.put(location, content)
        return content

    def peek(self, location: Location) -> bytes | None:
        """Return what is held for the location, if anything."""
        with self._lock:
            return self._held.get(location)

    def put(self, location: Location, content: bytes) -> None:
        """Hold a file that was just read or written; one over the limit is not held."""
        if len(content) > self._limit_bytes:
            return
        with self._lock:
            self._size_bytes += len(content) - len(self._held.pop(location, b""))
            self._held[location] = content
            while self._size_bytes > self._limit_bytes:
                _, dropped = self._held.popitem(last=False)
                self._size_bytes -= len(dropped)

    def recall(self, key: tuple[Any, ...]) -> Any:
        """Return what `derive` made before under the key; None where it would have to make it."""
        with self._lock:
            held = self._derived.get(key[0], OrderedDict())
            if key not in held:
                return None
            held.move_to_end(key)
            return held[key][0]

    def derive(
        self,
        key: tuple[Any, ...],
        make: Callable[[], T],
        *,
        most: int,
        weigh: Callable[[T], int] = lambda _: 1,
    ) -> T:
        """Return what was made of immutable files before, making it first where it was not.

        The first part of the key says what it is; of each kind those last used are kept, as many
        as weigh `most` together. One that weighs over a sixteenth of it is not worth its place.
        """
        found: T | None = self.recall(key)
        if found is not None:
            return found
        made = make()
        weight = weigh(made)
        if weight > max(1, most // 16):
            return made
        with self._lock:
            held = self._derived.setdefault(key[0], OrderedDict())
            self._weights[key[0]] = (
                self._weights.get(key[0], 0) + weight - held.pop(key, (None, 0))[1]
            )
            held[key] = (made, weight)
            while self._weights[key[0]] > most:
                _, (_, dropped) = held.popitem(last=False)
                self._weights[key[0]] -= dropped
        return made


@dataclass(frozen=True, slots=True)
class TableCache:
    """What a cache holds of one table; the limits are those of all tables together."""

    _whole: Cache
    _table_uuid: str | None

    def get(self, location: str, read: Callable[[], bytes]) -> bytes:
        """Do `Cache.get`."""
        return self._whole.get((self._table_uuid, location), read)

    def peek(self, location: str) -> bytes | None:
        """Do `Cache.peek`."""
        return self._whole.peek((self._table_uuid, location))

    def put(self, location: str, content: bytes) -> None:
        """Do `Cache.put`."""
        self._whole.put((self._table_uuid, location), content)

    def recall(self, key: tuple[Any, ...]) -> Any:
        """Do `Cache.recall`."""
        return self._whole.recall((key[0], self._table_uuid, *key[1:]))

    def derive(
        self,
        key: tuple[Any, ...],
        make: Callable[[], T],
        *,
        most: int,
        weigh: Callable[[T], int] = lambda _: 1,
    ) -> T:
        """Do `Cache.derive`."""
        key = (key[0], self._table_uuid, *key[1:])
        return self._whole.derive(key, make, most=most, weigh=weigh)
