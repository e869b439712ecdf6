"""Requests that wait for each other: who has its turn does what all that wait have asked for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from threading import Condition, Event, Lock
from typing import Any, Final, Generic, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from icetree.surroundings import elapsed_s

T = TypeVar("T")
R = TypeVar("R")

#: What does all that was asked for, and tells what each came to or was refused with.
CarryOut: TypeAlias = Callable[[Sequence[T]], Sequence[R | BaseException]]

#: How many are done at once.
_AT_ONCE: Final = 64
#: What part of the time that the last group took those are waited for who were in it; and at most.
_PATIENCE: Final = 0.5
PATIENCE_S: Final = 0.5
#: Of how many keys it is known how large their last group was.
_KNOWN: Final = 1_000


@dataclass(slots=True, eq=False)
class _Asked(Generic[T, R]):
    """One request: what it asks for, and what it came to."""

    what: T
    is_done: bool = False
    came_to: R | BaseException | None = None
    #: Set when it is done, or is the one to go on.
    woken: Event = field(default_factory=Event)


@dataclass(eq=False)
class _Line:
    """Those who ask for the same table."""

    is_busy: bool = False
    waiting: list[_Asked[Any, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Last:
    """The last group of a key: how many they were, how long it took them, and when they were done."""

    count: int
    took_s: float
    at_s: float


class Groups(Generic[T, R]):
    """Brings together what several threads ask for at the same time, by key.

    While one is at work the others gather; then the first of them does what all of them want, and
    those that are done go their way. `aside` surrounds a wait. With `patience`, in seconds, who has its turn
    gives those a moment to come back who were together the last time: else the one that came while
    they were busy would go alone, and they without it, again and again. Who was alone waits for nobody.
    """

    def __init__(
        self,
        aside: Callable[[], AbstractContextManager[None]] = nullcontext,
        *,
        patience: float = 0.0,
    ) -> None:
        self._lock = Lock()
        self._came = Condition(self._lock)
        self._aside = aside
        self._patience = patience
        self._last: OrderedDict[object, _Last] = OrderedDict()
        # A line is there as long as somebody stands in it.
        self._lines: WeakValueDictionary[object, _Line] = WeakValueDictionary()

    def join(self, key: object, what: T, carry_out: CarryOut[T, R]) -> R:
        """Have something done, together with what others want; raise what it was refused with."""
        mine: _Asked[T, R] = _Asked(what)
        with self._lock:
            line = self._lines.setdefault(key, _Line())
            line.waiting.append(mine)
            self._came.notify_all()
            is_mine = not line.is_busy
            line.is_busy = True
        if not is_mine:
            with self._aside():
                mine.woken.wait()
        if not mine.is_done:
            self._gather(key, line)
            self._go_on(key, line, carry_out)
        if isinstance(mine.came_to, BaseException):
            raise mine.came_to
        return mine.came_to  # type: ignore[return-value]  # done, and not refused

    def _gather(self, key: object, line: _Line) -> None:
        """Wait until as many are there as the last time, for a part of the time that they took."""
        with self._lock:
            last = self._last.get(key)
            if last is None or len(line.waiting) >= last.count:
                return
        until_s = last.at_s + min(last.took_s * _PATIENCE, self._patience)
        left_s = until_s - elapsed_s()
        if left_s > 0:
            with self._aside(), self._came:
                self._came.wait_for(lambda: len(line.waiting) >= last.count, left_s)

    def _go_on(self, key: object, line: _Line, carry_out: CarryOut[T, R]) -> None:
        """Do what the first in line ask for, oneself before all; then it is the next one's turn."""
        with self._lock:
            group = line.waiting[:_AT_ONCE]
            del line.waiting[:_AT_ONCE]
        began_s = elapsed_s()
        _carry_out(group, carry_out)
        ended_s = elapsed_s()
        with self._lock:
            self._last[key] = _Last(count=len(group), took_s=ended_s - began_s, at_s=ended_s)
            self._last.move_to_end(key)
            if len(self._last) > _KNOWN:
                self._last.popitem(last=False)
            following = line.waiting[:1]
            line.is_busy = bool(following)
        for each in (*following, *group):
            each.woken.set()


def _carry_out(group: Sequence[_Asked[T, R]], carry_out: CarryOut[T, R]) -> None:
    results: Sequence[R | BaseException]
    try:
        results = carry_out([each.what for each in group])
    except BaseException as error:
        results = [error] * len(group)
    for each, result in zip(group, results, strict=True):
        each.came_to, each.is_done = result, True
