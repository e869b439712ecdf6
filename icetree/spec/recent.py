"""A small memory of what was met last, for many threads."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Values by key, at most so many: the least recently used goes first."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._held: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: K) -> V | None:
        """Return what is held for the key, if anything."""
        with self._lock:
            return self._used(key) if key in self._held else None

    def first(self, fits: Callable[[K], bool]) -> V | None:
        """Return what is held for the most recently used key that fits, if any does."""
        with self._lock:
            for key in reversed(self._held):
                if fits(key):
                    return self._used(key)
        return None

    def put(self, key: K, value: V) -> None:
        """Hold a value, in place of the one that was held for the key before."""
        with self._lock:
            self._held[key] = value
            self._held.move_to_end(key)
            if len(self._held) > self._most:
                self._held.popitem(last=False)

    def _used(self, key: K) -> V:
        self._held.move_to_end(key)
        return self._held[key]
