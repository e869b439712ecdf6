"""What icetree takes from its surroundings beside files: the time, chance, waiting and threads.

No room below `spark` takes them from elsewhere, so that all else follows from arguments and files:
a test of the rooms' imports sees to it. Where surroundings of one's own are set, as a simulation does,
they decide everything that happens, and what happened can happen again.
"""

from __future__ import annotations

import random
import secrets
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Surroundings(Protocol):
    """Where the time, chance, waiting and threads come from."""

    def now_ms(self) -> int:
        """Return the time of day, in milliseconds since 1970."""
        ...

    def elapsed_s(self) -> float:
        """Return seconds since some moment; they never run backwards."""
        ...

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        ...

    def random_bits(self, count: int) -> int:
        """Return a number of so many bits that nobody can guess, nor meet twice."""
        ...

    def pool(self, workers: int, name: str) -> Executor:
        """Return what carries out calls, so many at a time; `name` starts the threads' names."""
        ...


class Machine:
    """The surroundings of every program that sets no others: those of the machine it runs on."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def elapsed_s(self) -> float:
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def random_bits(self, count: int) -> int:
        return secrets.randbits(count)

    def pool(self, workers: int, name: str) -> Executor:
        return ThreadPoolExecutor(workers, thread_name_prefix=name)


class InTurn(Executor):
    """Carries out each call at once, where it is asked for: a pool without threads."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except BaseException as error:
            done.set_exception(error)
        return done


_SET: ContextVar[Surroundings] = ContextVar("surroundings", default=Machine())  # noqa: B039


@contextmanager
def within(surroundings: Surroundings) -> Iterator[None]:
    """Take everything from these, in this thread, until the block ends."""
    before = _SET.set(surroundings)
    try:
        yield
    finally:
        _SET.reset(before)


def now_ms() -> int:
    """Return the time of day, in milliseconds since 1970."""
    return _SET.get().now_ms()


def elapsed_s() -> float:
    """Return seconds since some moment; they never run backwards."""
    return _SET.get().elapsed_s()


def clock() -> Callable[[], float]:
    """Return what tells `elapsed_s` of these surroundings, in whichever thread it is asked."""
    return _SET.get().elapsed_s


def wait(seconds: float) -> None:
    """Let time pass."""
    _SET.get().wait(seconds)


def random_bits(count: int) -> int:
    """Return a number of so many bits that nobody can guess, nor meet twice."""
    return _SET.get().random_bits(count)


def new_uuid() -> str:
    """Return a name that nothing else has."""
    return str(uuid.UUID(int=random_bits(128), version=4))


def between(low: float, high: float) -> float:
    """Return a number from a range, all alike likely; nothing that must be hard to guess."""
    return random.Random(random_bits(64)).uniform(low, high)


def new_pool(workers: int, name: str) -> Executor:
    """Return what carries out calls, so many at a time; `name` starts the threads' names."""
    return _SET.get().pool(workers, name)
