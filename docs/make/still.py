"""Surroundings in which nothing is left to chance, so that what is made can be made again."""

from __future__ import annotations

import random
from concurrent.futures import Executor
from typing import Final

from icetree.catalog.memory import MemoryCatalog
from icetree.store.memory import MemoryStore
from icetree.surroundings import InTurn
from icetree.table.lake import Lake

_START_MS: Final = 1_767_225_600_000  # 2026 begins


class Still:
    """A clock that goes on by a second whenever it is looked at, and chance from a seed."""

    def __init__(self, seed: str) -> None:
        self._chance = random.Random(seed)
        self._ms = _START_MS

    def now_ms(self) -> int:
        """Return the next second."""
        self._ms += 1000
        return self._ms

    def elapsed_s(self) -> float:
        """Return how long it is since the beginning."""
        return (self._ms - _START_MS) / 1000

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._ms += int(seconds * 1000)

    def random_bits(self, count: int) -> int:
        """Return the next number of the seed; ids of snapshots stay short enough for JSON."""
        return self._chance.getrandbits(min(count, 52) if count < 128 else count)

    def pool(self, workers: int, name: str) -> Executor:  # noqa: ARG002  # whatever is asked for
        """Return what does one after the other."""
        return InTurn()


def lake_in_memory() -> Lake:
    """Return a lake that leaves nothing behind."""
    lake = Lake(catalog=MemoryCatalog("vectors"), store=MemoryStore(), warehouse="memory://lake")
    lake.create_namespace("db")
    return lake
