"""The processes of writers; one is killed now and then, and another takes its place."""

from __future__ import annotations

import multiprocessing
import os
import signal
from typing import Any, Final

from campaigns.soak.place import Place
from campaigns.soak.writer import write

PROCESSES: Final = 2


class Company:
    """Starts writers, tells how far they are, kills the last."""

    def __init__(self, place: Place, commits: int) -> None:
        self._spawn = multiprocessing.get_context("spawn")
        self.count = self._spawn.Value("q", 0)
        self._place, self._commits = place, commits
        # Without a lock, which one that is killed might hold.
        self._rss = [self._spawn.RawValue("q", 0) for _ in range(PROCESSES)]
        self._processes = [self._start(number) for number in range(PROCESSES)]

    def _start(self, number: int) -> Any:
        process = self._spawn.Process(
            target=write,
            args=(self._place, number, self._commits, self.count, self._rss[number]),
        )
        process.start()
        return process

    def resident_kib(self) -> int:
        """Return the memory of the first writer, which is never killed."""
        return int(self._rss[0].value)

    def is_working(self) -> bool:
        return any(process.is_alive() for process in self._processes)

    def kill_one(self) -> bool:
        """End the last process at whatever it is doing, unless it is just counting."""
        victim = self._processes[-1]
        if not victim.is_alive():
            return False
        with self.count.get_lock():
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()
        self._processes[-1] = self._start(PROCESSES - 1)
        return True

    def failed(self) -> list[str]:
        codes = [process.exitcode for process in self._processes]
        return [f"writer {n} ended with {code}" for n, code in enumerate(codes) if code != 0]
