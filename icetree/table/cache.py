"""A cache of immutable files, least recently used first out, bounded in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

DEFAULT_LIMIT_BYTES = 256 * 1024 * 1024


class Cache:
    """Bytes by location. A file never changes once written, so an entry never goes stale."""

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._size_bytes = 0
        self._held: OrderedDict[str, bytes] = OrderedDict()
        self._lock = Lock()

    def get(self, location: str, read: Callable[[], bytes]) -> bytes:
        """Return what is held for the location, reading it first where nothing is."""
        with self._lock:
            if location in self._held:
                self._held.move_to_end(location)
                return self._held[location]
        content = read()
        self.put(location, content)
        return content

    def put(self, location: str, content: bytes) -> None:
        """Hold a file that was just read or written; one over the limit is not held."""
        if len(content) > self._limit_bytes:
            return
        with self._lock:
            self._size_bytes += len(content) - len(self._held.pop(location, b""))
            self._held[location] = content
            while self._size_bytes > self._limit_bytes:
                _, dropped = self._held.popitem(last=False)
                self._size_bytes -= len(dropped)
