"""Surroundings of a writer in the simulation: its own clock, chance of its step, and no threads."""

from __future__ import annotations

import random
from concurrent.futures import Executor

from campaigns.simulate.line import Line
from icetree.surroundings import InTurn

_START_MS = 1_750_000_000_000


class Clock:
    """The one time of the world; it passes by calls and by waiting."""

    def __init__(self) -> None:
        self.ms = _START_MS


class Surroundings:
    """What a writer takes for the time, and for chance."""

    def __init__(self, clock: Clock, line: Line, *, skew_ms: int) -> None:
        self._clock = clock
        self._line = line
        self._skew_ms = skew_ms
        self.chance = random.Random(0)

    def now_ms(self) -> int:
        return self._clock.ms + self._skew_ms

    def elapsed_s(self) -> float:
        return self._clock.ms / 1000

    def wait(self, seconds: float) -> None:
        self._line.wait(seconds)

    def random_bits(self, count: int) -> int:
        return self.chance.getrandbits(count)

    def pool(self, workers: int, name: str) -> Executor:  # noqa: ARG002  # whatever is asked for
        return InTurn()
