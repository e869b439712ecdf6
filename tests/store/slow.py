"""A store as slow as one far away: for benchmarks, and to count what a commit asks of a store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar

from icetree.store.base import Store
from icetree.surroundings import elapsed_s, wait
from tests.store.wrapped import Request, WrappedStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A request that was answered, with what it moved and when, by `elapsed_s`."""

    operation: str
    location: str
    size_bytes: int
    started_s: float
    ended_s: float


class SlowStore(WrappedStore):
    """Sleeps for each request as an object store would, and keeps a log of them.

    With a latency of 0 and no bandwidth it is only the log.
    """

    def __init__(
        self,
        store: Store,
        *,
        latency_ms: float = 25.0,
        bytes_per_s: float | None = 80e6,
    ) -> None:
        super().__init__(store)
        self._latency_ms = latency_ms
        self._bytes_per_s = bytes_per_s
        self._lock = Lock()
        self._answered: list[Answered] = []

    @property
    def answered(self) -> list[Answered]:
        """The requests so far, in the order of their answers."""
        with self._lock:
            return [*self._answered]

    def forget(self) -> None:
        """Start the log anew."""
        with self._lock:
            self._answered.clear()

    def rounds(self) -> int:
        """Return how many requests had to wait for one another: the longest chain in time."""
        rounds, ended_s = 0, float("-inf")
        for each in sorted(self.answered, key=lambda each: each.ended_s):
            if each.started_s >= ended_s:
                rounds, ended_s = rounds + 1, each.ended_s
        return rounds

    def _pass(self, request: Request, effect: Callable[[], T]) -> T:
        started_s = elapsed_s()
        result = effect()
        size_bytes = len(request.content) + (len(result) if isinstance(result, bytes) else 0)
        wait_s = self._latency_ms / 1000
        if self._bytes_per_s:
            wait_s += size_bytes / self._bytes_per_s
        wait(max(0.0, started_s + wait_s - elapsed_s()))
        answered = Answered(
            operation=request.operation,
            location=request.location,
            size_bytes=size_bytes,
            started_s=started_s,
            ended_s=elapsed_s(),
        )
        with self._lock:
            self._answered.append(answered)
        return result
