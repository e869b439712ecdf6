"""Surroundings in which nobody waits: time passes by waiting, and takes none."""

from __future__ import annotations

from typing_extensions import override

from icetree.surroundings import Machine


class Hasty(Machine):
    """The machine, on whose clock whatever is waited for passes at once."""

    def __init__(self) -> None:
        self._waited_s = 0.0

    @override
    def now_ms(self) -> int:
        return super().now_ms() + int(1000 * self._waited_s)

    @override
    def elapsed_s(self) -> float:
        return super().elapsed_s() + self._waited_s

    @override
    def wait(self, seconds: float) -> None:
        self._waited_s += seconds
