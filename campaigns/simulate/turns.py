"""Who goes on: only ever one writer runs, until its step ends or it pauses.

Whoever is next follows from what the step drew, so the order of everything is the seed's. Writers
are greenlets: all in one thread, so that a lock which one holds while it pauses stops nobody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress

from greenlet import getcurrent, greenlet

from campaigns.simulate.script import Step


class Stopped(BaseException):
    """The simulation is over while a step was still under way."""


class Turns:
    """Carries out steps in their order, except where one lets another come in between."""

    def __init__(self, steps: tuple[Step, ...], carry_out: Callable[[Step], None]) -> None:
        self._waiting = deque(steps)
        self._carry_out = carry_out
        self._main = getcurrent()
        #: Steps under way, by writer.
        self._under_way: dict[int, greenlet] = {}
        self._last: int | None = None
        self._wish = 0
        self._over = False

    def run(self) -> None:
        """Run until every step is done; raise what the first one to fail raised."""
        try:
            while (writer := self._next()) is not None:
                self._last = writer
                self._under_way[writer].switch()
                if self._under_way[writer].dead:
                    del self._under_way[writer]
        finally:
            self._over = True
            for each in self._under_way.values():
                if not each.dead:
                    each.throw(Stopped)

    def pause(self, wish: int) -> None:
        """Let others come first: any of them, as the wish has it."""
        if self._over:
            raise Stopped
        self._wish = wish
        self._main.switch()

    @property
    def under_way(self) -> int:
        """How many steps have begun and not ended."""
        return len(self._under_way)

    def wish(self, wish: int) -> None:
        """Say who comes first when the step that is running has ended."""
        self._wish = wish

    def _next(self) -> int | None:
        """Return the writer whose turn it is; one that has no step under way begins the next."""
        wish, self._wish = self._wish, 0
        fresh = next((each for each in self._waiting if each.writer not in self._under_way), None)
        # Whoever paused does not go on at once, unless there is nobody else.
        paused = sorted(self._under_way)
        others = [each for each in paused if each != self._last] or paused
        choices = [*([None] if fresh is not None else []), *others]
        if not choices:
            return None
        chosen = choices[wish % len(choices)]
        if chosen is not None:
            return chosen
        assert fresh is not None
        self._waiting.remove(fresh)
        self._under_way[fresh.writer] = greenlet(lambda: self._live(fresh))
        return fresh.writer

    def _live(self, step: Step) -> None:
        with suppress(Stopped):
            self._carry_out(step)
