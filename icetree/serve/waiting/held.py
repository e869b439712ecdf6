"""What is kept for a while, for who comes back for it: bounded in bytes and in time."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Final, Generic, TypeVar

from icetree.surroundings import elapsed_s

T = TypeVar("T")

#: Bytes that are held; the least recently used go first.
MOST_BYTES: Final = 256 << 20
#: How long something is held that nobody asks for.
HOLD_S: Final = 600.0
#: What each takes beside what it weighs.
_EACH_BYTES: Final = 16 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _One(Generic[T]):
    value: T
    weight: int
    #: When it was asked for last.
    at_s: float


class Held(Generic[T]):
    """Values by key. Each can be made again, so that one which is dropped costs time alone."""

    def __init__(self, *, most_bytes: int = MOST_BYTES, hold_s: float = HOLD_S) -> None:
        self._most_bytes, self._hold_s = most_bytes, hold_s
        self._held: OrderedDict[tuple[Any, ...], _One[T]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    @property
    def size_bytes(self) -> int:
        """How much is held."""
        return self._bytes

    def get(self, *key: Any) -> T | None:
        """Return what is held under the key, if anything."""
        with self._lock:
            self._expire()
            found = self._held.pop(key, None)
            if found is None:
                return None
            self._held[key] = replace(found, at_s=elapsed_s())
            return found.value

    def put(self, value: T, size_bytes: int, *key: Any) -> None:
        """Hold a value of a size; one that is too large is not held."""
        one = _One(value=value, weight=size_bytes + _EACH_BYTES, at_s=elapsed_s())
        with self._lock:
            self._drop(key)
            if one.weight > self._most_bytes:
                return
            self._held[key] = one
            self._bytes += one.weight
            self._expire()
            while self._bytes > self._most_bytes:
                self._drop(next(iter(self._held)))

    def drop(self, *key: Any) -> bool:
        """Forget a value; tell whether it was held."""
        with self._lock:
            return self._drop(key)

    def _expire(self) -> None:
        now = elapsed_s()
        while self._held:
            key, oldest = next(iter(self._held.items()))
            if now - oldest.at_s < self._hold_s:
                return
            self._drop(key)

    def _drop(self, key: tuple[Any, ...]) -> bool:
        found = self._held.pop(key, None)
        if found is None:
            return False
        self._bytes -= found.weight
        return True
