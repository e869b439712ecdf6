"""How many requests are worked on at a time; one that waits for what another does is not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class Workers:
    """Places at work. There is no end of them until somebody says how many there are."""

    def __init__(self) -> None:
        self._free: int | None = None
        self._changed = Condition()

    def allow(self, most: int) -> None:
        """Say how many may be at work, before anybody is."""
        self._free = most

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Take a place, as soon as one is free."""
        self._take()
        try:
            yield
        finally:
            self._give()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Give one's place to others for the time of a wait."""
        self._give()
        try:
            yield
        finally:
            self._take()

    def _take(self) -> None:
        with self._changed:
            if self._free is None:
                return
            self._changed.wait_for(lambda: self._free)
            self._free -= 1

    def _give(self) -> None:
        with self._changed:
            if self._free is not None:
                self._free += 1
                self._changed.notify()
