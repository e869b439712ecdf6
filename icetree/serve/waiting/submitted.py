"""Plans that take long: they go on when their request is answered, and are asked for by an id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from dataclasses import dataclass, replace
from threading import TIMEOUT_MAX, Lock
from typing import Any, Final, Generic, TypeVar

from icetree.errors import IcetreeError
from icetree.serve.waiting.held import Held
from icetree.serve.waiting.workers import Workers
from icetree.store.stopping import Stop
from icetree.surroundings import new_pool, random_bits
from icetree.visible import log_of

T = TypeVar("T")
log = log_of(__name__)

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
    """What an id stands for: a plan that was asked for, and what became of it.

    Of one that was made nothing but that is known: it is held with all others, and accounted for there.
    """

    asked: Any = None
    size_bytes: int = 0
    #: None once it has ended, or is cancelled.
    work: Work[T] | None = None
    #: What it was refused with.
    error: BaseException | None = None
    is_cancelled: bool = False


class Submitted(Generic[T]):
    """Makes plans in threads of their own, and keeps those by id that take long.

    An id is known to who asked for the plan, and means nothing to others, nor of another table.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._pool = new_pool(_THREADS, "plan")
        # As many as go on have room for sure: no id is forgotten that somebody asks for meanwhile.
        self._going: Held[Ticket[T]] = Held(most_bytes=_MOST_BYTES, hold_s=HOLD_S)
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
        # Whoever is to wait for ever has a number, too.
        most_s = None if within_s is None else min(within_s, TIMEOUT_MAX)
        with self._workers.waiting():
            return bool(wait([work.came_to], most_s).done)

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
            id = f"{random_bits(_ID_BITS):032x}"
            ticket = Ticket(asked=asked, size_bytes=size_bytes, work=work)
            self._going.put(ticket, size_bytes, who, *key, id)
        work.stop.after(HOLD_S, _UNASKED)
        work.came_to.add_done_callback(lambda _: self._ended(work, who, *key, id))
        return id

    def find(self, id: str, who: str, *key: object) -> Ticket[T] | None:
        """Return what an id stands for, which goes on being held; None for what nobody asked for."""
        found = self._get(who, *key, id)
        if found is not None and found.work is not None:
            found.work.stop.after(HOLD_S, _UNASKED)
        return found

    def _get(self, *key: object) -> Ticket[T] | None:
        # What ends goes from one to the other.
        with self._lock:
            return self._going.get(*key) or self._tickets.get(*key)

    def cancel(self, id: str, who: str, *key: object) -> bool:
        """End the work under an id; tell whether there is such an id."""
        with self._lock:
            going = self._going.get(who, *key, id)
            if going is not None and going.work is not None:
                going.work.stop.now("its client has cancelled it")
                self._going.put(Ticket(is_cancelled=True), 0, who, *key, id)
            elif going is None and self._tickets.get(who, *key, id) is None:
                return False
            elif going is None:
                self._tickets.put(Ticket(is_cancelled=True), 0, who, *key, id)
        return True

    def close(self) -> None:
        """End all that goes on beside requests, and wait for that."""
        with self._lock:
            for each in self._stops:
                each.now("the server stops")
        self._pool.shutdown()

    def _ended(self, work: Work[T], who: str, *key: object) -> None:
        error = work.came_to.exception()
        if error is not None:
            if not isinstance(error, IcetreeError):
                log.error("a plan failed", exc_info=error)
            _forget_frames(error)
        with self._lock:
            self._stops.discard(work.stop)
            self._under_way[who] -= 1
            if not self._under_way[who]:
                del self._under_way[who]
            found = self._going.get(who, *key)
            if found is not None:
                self._going.drop(who, *key)
                ended = replace(found, work=None, error=error)
                self._tickets.put(ended, found.size_bytes, who, *key)


def _forget_frames(error: BaseException) -> None:
    """Take from an error, and from what led to it, all that was at hand where it was raised."""
    left: list[BaseException | None] = [error]
    while left:
        each = left.pop()
        if each is not None and each.__traceback__ is not None:
            each.__traceback__ = None
            left += [each.__cause__, each.__context__]
