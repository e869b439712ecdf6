"""Requests that wait for each other: who has its turn does what all that wait have asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any, Final, Generic, TypeAlias, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")
R = TypeVar("R")

#: What does all that was asked for, and tells what each came to or was refused with.
CarryOut: TypeAlias = Callable[[Sequence[T]], Sequence[R | BaseException]]

#: How many are done at once.
_AT_ONCE: Final = 64


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


class Groups(Generic[T, R]):
    """Brings together what several threads ask for at the same time, by key.

    While one is at work the others gather; then the first of them does what all of them want, and
    those that are done go their way. `aside` surrounds a wait.
    """

    def __init__(self, aside: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._lock = Lock()
        self._aside = aside
        # A line is there as long as somebody stands in it.
        self._lines: WeakValueDictionary[object, _Line] = WeakValueDictionary()

    def join(self, key: object, what: T, carry_out: CarryOut[T, R]) -> R:
        """Have something done, together with what others want; raise what it was refused with."""
        mine: _Asked[T, R] = _Asked(what)
        with self._lock:
            line = self._lines.setdefault(key, _Line())
            line.waiting.append(mine)
            is_mine = not line.is_busy
            line.is_busy = True
        if not is_mine:
            with self._aside():
                mine.woken.wait()
        if not mine.is_done:
            self._go_on(line, carry_out)
        if isinstance(mine.came_to, BaseException):
            raise mine.came_to
        return mine.came_to  # type: ignore[return-value]  # done, and not refused

    def _go_on(self, line: _Line, carry_out: CarryOut[T, R]) -> None:
        """Do what the first in line ask for, oneself before all; then it is the next one's turn."""
        with self._lock:
            group = line.waiting[:_AT_ONCE]
            del line.waiting[:_AT_ONCE]
        _carry_out(group, carry_out)
        with self._lock:
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
