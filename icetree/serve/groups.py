"""Requests that wait for each other: who has its turn does what all that wait have asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
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


@dataclass(eq=False)
class _Line:
    """Those who ask for the same table."""

    turn: Lock = field(default_factory=Lock)
    waiting: list[_Asked[Any, Any]] = field(default_factory=list)


class Groups(Generic[T, R]):
    """Brings together what several threads ask for at the same time, by key.

    While one is at work the others gather; the next does what all of them want.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        # A line is there as long as somebody stands in it.
        self._lines: WeakValueDictionary[object, _Line] = WeakValueDictionary()

    def join(self, key: object, what: T, carry_out: CarryOut[T, R]) -> R:
        """Have something done, together with what others want; raise what it was refused with."""
        mine: _Asked[T, R] = _Asked(what)
        with self._lock:
            line = self._lines.setdefault(key, _Line())
            line.waiting.append(mine)
        with line.turn:
            if not mine.is_done:
                _carry_out(self._taken(line, mine), carry_out)
        if isinstance(mine.came_to, BaseException):
            raise mine.came_to
        return mine.came_to  # type: ignore[return-value]  # done, and not refused

    def _taken(self, line: _Line, mine: _Asked[T, R]) -> list[_Asked[T, R]]:
        """Take those who wait out of the line: in the order they came, oneself among them."""
        with self._lock:
            line.waiting.remove(mine)
            some = [*line.waiting[: _AT_ONCE - 1], mine]
            del line.waiting[: _AT_ONCE - 1]
            return some


def _carry_out(group: Sequence[_Asked[T, R]], carry_out: CarryOut[T, R]) -> None:
    results: Sequence[R | BaseException]
    try:
        results = carry_out([each.what for each in group])
    except BaseException as error:
        results = [error] * len(group)
    for each, result in zip(group, results, strict=True):
        each.came_to, each.is_done = result, True
