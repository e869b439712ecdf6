"""A store that fails as told: for tests of what a caller does about it.

Run once without faults and look at `steps`; then run again once for each step, failing there.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import count
from threading import Lock
from typing import TypeVar

from icetree.errors import Unavailable
from icetree.store.base import Store, in_turn
from icetree.store.local import TEMPORARY
from icetree.surroundings import wait
from tests.store.wrapped import Request, WrappedStore

T = TypeVar("T")


class How(Enum):
    """What goes wrong."""

    BEFORE = "the request never arrives"
    AFTER = "the request is carried out, its answer lost"
    PARTIAL = "the writer dies half-way: half of the content, under a temporary name"
    DELAY = "the answer takes long"
    KILL_BEFORE = "the process is killed as it asks"
    KILL_AFTER = "the process is killed before it hears the answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Strikes once: at step number `at`, counted from 0 among those of `operation` if given."""

    at: int
    how: How
    operation: str | None = None
    delay_s: float = 0.05
    error: Callable[[str], Exception] = Unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A request as it was counted."""

    number: int
    operation: str
    location: str


class FlakyStore(WrappedStore):
    """Counts every request as a step and fails at those that the faults name.

    `write_many` writes one after the other, so that the steps of a run are always the same. As
    agreed, a failure does not keep the files after it from being written; a kill does.
    """

    def __init__(self, store: Store, faults: Sequence[Fault] = ()) -> None:
        super().__init__(store)
        self._faults = faults
        self._lock = Lock()
        self._steps: list[Step] = []

    @property
    def steps(self) -> list[Step]:
        """The requests so far."""
        with self._lock:
            return [*self._steps]

    def write_many(self, files: Iterable[tuple[str, bytes]]) -> None:
        in_turn(self.write_new, files)

    def _pass(self, request: Request, effect: Callable[[], T]) -> T:
        fault = self._count(request)
        if fault is None:
            return effect()
        said = f"{request.operation} {request.location}: {fault.how.value}"
        match fault.how:
            case How.BEFORE:
                raise fault.error(said)
            case How.AFTER:
                effect()
                raise fault.error(said)
            case How.PARTIAL:
                self._leave_half(request)
                raise fault.error(said)
            case How.DELAY:
                wait(fault.delay_s)
                return effect()
            case How.KILL_BEFORE:
                os.kill(os.getpid(), signal.SIGKILL)
            case How.KILL_AFTER:
                effect()
                os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("killed")

    def _count(self, request: Request) -> Fault | None:
        with self._lock:
            number = len(self._steps)
            among = sum(step.operation == request.operation for step in self._steps)
            self._steps.append(
                Step(number=number, operation=request.operation, location=request.location)
            )
        for fault in self._faults:
            if fault.operation is None and fault.at == number:
                return fault
            if fault.operation == request.operation and fault.at == among:
                return fault
        return None

    def _leave_half(self, request: Request) -> None:
        folder = request.location.rpartition("/")[0]
        names = (f"{folder}/{TEMPORARY}half{number}.tmp" for number in count())
        free = next(name for name in names if not self.store.exists(name))
        self.store.write_new(free, request.content[: len(request.content) // 2])
