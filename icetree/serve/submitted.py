"""Plans that take long: they go on when their request is answered, and are asked for by an id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, Generic, TypeVar

from icetree.serve.held import Held
from icetree.serve.workers import Workers
from icetree.store.stopping import Stop
from icetree.surroundings import new_pool, random_bits

T = TypeVar("T")

#: How long a plan waits to be asked for: the slowest clients ask once a minute.
HOLD_S: Final = 300.0
#: Plans that go on beside requests, of all clients and of one: each has a place at work.
_MOST: Final = 8
_MOST_OF_ONE: Final = 4
#: Plans that are made, asked for by requests that wait.
_THREADS: Final = 64
#: Bytes of what was asked, of all plans that have an id and of one: those that are made have room for sure.
_MOST_BYTES: Final = 32 << 20
_MOST_BYTES_OF_ONE: Final = 1 << 20
_ID_BITS: Final = 128
_UNASKED: Final = f"nobody has asked for the plan in {HOLD_S:g} s"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Work(Generic[T]):
    """A plan that is being made, or was."""

    stop: Stop
    came_to: Future[T]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Ticket(Generic[T]):
    """What an id stands for: a plan that was asked for, and its work; none once it is cancelled."""

    asked: Any = None
    work: Work[T] | None = None


class Submitted(Generic[T]):
    """Makes plans in threads of their own, and keeps those by id that take long.

    An id is known to who asked for the plan, and means nothing to others, nor of another table.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._pool = new_pool(_THREADS, "plan")
        self._tickets: Held[Ticket[T]] = Held(most_bytes=_MOST_BYTES, hold_s=HOLD_S)
        self._lock = Lock()
        self._under_way: Counter[str] = Counter()
        self._stops: set[Stop] = set()

    def start(self, make: Callable[[], T], stop: Stop) -> Work[T]:
        """Have a plan made, which ends when `stop` says so."""
        # Threads of a pool have surroundings of their own.
        run = copy_context().run
        return Work(stop=stop, came_to=self._pool.submit(run, self._made, make))

    def _made(self, make: Callable[[], T]) -> T:
        with self._workers.at_work():
            return make()

    def ends(self, work: Work[T], *, within_s: float | None = None) -> bool:
        """Wait for work to end, so many seconds at most, and tell whether it has."""
        if work.came_to.done():
            return True
        with self._workers.waiting():
            return bool(wait([work.came_to], within_s).done)

    def keep(
        self, work: Work[T], asked: Any, size_bytes: int, who: str, *key: object
    ) -> str | None:
        """Return an id that work goes on under; None where there are too many, or it is too large."""
        if size_bytes > _MOST_BYTES_OF_ONE:
            return None
        with self._lock:
            if self._under_way[who] >= _MOST_OF_ONE or self._under_way.total() >= _MOST:
                return None
            self._under_way[who] += 1
            self._stops.add(work.stop)
        work.came_to.add_done_callback(lambda _: self._ended(work.stop, who))
        work.stop.after(HOLD_S, _UNASKED)
        id = f"{random_bits(_ID_BITS):032x}"
        self._tickets.put(Ticket(asked=asked, work=work), size_bytes, who, *key, id)
        return id

    def find(self, id: str, who: str, *key: object) -> Ticket[T] | None:
        """Return what an id stands for, which goes on being held; None for what nobody asked for."""
        found = self._tickets.get(who, *key, id)
        if found is not None and found.work is not None:
            found.work.stop.after(HOLD_S, _UNASKED)
        return found

    def cancel(self, id: str, who: str, *key: object) -> bool:
        """End the work under an id; tell whether there is such an id."""
        found = self._tickets.get(who, *key, id)
        if found is None:
            return False
        if found.work is not None:
            found.work.stop.now("its client has cancelled it")
            self._tickets.put(Ticket(), 0, who, *key, id)
        return True

    def close(self) -> None:
        """End all that goes on beside requests, and wait for that."""
        with self._lock:
            for each in self._stops:
                each.now("the server stops")
        self._pool.shutdown()

    def _ended(self, stop: Stop, who: str) -> None:
        with self._lock:
            self._stops.discard(stop)
            self._under_way[who] -= 1
            if not self._under_way[who]:
                del self._under_way[who]
