"""Turns: writers that lost a race wait for each other instead of racing on.

Advice alone: a swap is decided by the head it expects, whoever has a turn. It saves the work of
tries that would lose, and keeps a quick writer from always being first.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from icetree.surroundings import between, elapsed_s, wait

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has none, and its writers race
    fcntl = None  # type: ignore[assignment]

_LONGEST_PAUSE_S = 0.02
#: Only Linux has locks of opened files; elsewhere writers race.
_LOCK = getattr(fcntl, "F_OFD_SETLK", None)


def number_of(*key: str) -> int:
    """Return a number of 63 bits for a table; that two share one costs a needless wait."""
    digest = blake2b("\0".join(key).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


@contextmanager
def patiently(
    take: Callable[[], bool], give_back: Callable[[], None], *, wait_s: float
) -> Iterator[bool]:
    """Ask until a turn is had or the time is over; yields whether it was."""
    give_up = elapsed_s() + wait_s
    longest = 0.001
    while not (had := take()) and elapsed_s() < give_up:
        wait(between(0, longest))
        longest = min(2 * longest, _LONGEST_PAUSE_S)
    try:
        yield had
    finally:
        if had:
            give_back()


@contextmanager
def by_file(path: Path, number: int, *, wait_s: float) -> Iterator[bool]:
    """Yield whether a turn was had among all who use this file, in any process of the machine."""
    with _opened(path) as file, patiently(
        lambda: file is not None and _lock(file, number), lambda: None,
        wait_s=wait_s if file is not None else 0,
    ) as had:  # fmt: skip
        yield had


def taken_by_file(path: Path, number: int) -> bool:
    """Tell whether another has the turn."""
    with _opened(path) as file:
        return file is not None and not _lock(file, number)


@contextmanager
def _opened(path: Path) -> Iterator[int | None]:
    """Open the file that turns are locks of; None where there can be none."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666) if _LOCK is not None else None
    except OSError:
        file = None
    try:
        yield file
    finally:
        if file is not None:
            os.close(file)


def _lock(file: int, number: int) -> bool:
    """Take a lock that belongs to the opened file: threads have one each, and it ends with it."""
    try:
        fcntl.fcntl(
            file, _LOCK or 0, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, number, 1, 0)
        )
    except OSError:
        return False
    return True
