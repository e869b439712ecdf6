"""A commit's place among the others that want to commit to the same table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from icetree.catalog.base import Catalog, TableName
from icetree.catalog.patience import LINE_TIMEOUT_S, TURN_TIMEOUT_S
from icetree.errors import NotFound, Unavailable
from icetree.surroundings import elapsed_s


class Turn(ExitStack):
    """Waits where waiting is better than racing: once a race was lost, or where others wait.

    Most commits meet nobody, and only ask whether others do. What was had ends with the block.
    """

    def __init__(self, catalog: Catalog, name: TableName) -> None:
        super().__init__()
        self._catalog = catalog
        self._name = name
        self._had = False

    def wait_with_others(self) -> bool:
        """Wait if others do; tell whether that was so."""
        waits = self._catalog.turn_taken(self._name)
        if waits:
            self._take()
        return waits

    def wait_after_losing(self, pause: Callable[[], None]) -> None:
        """Wait for a turn, and keep it; who cannot have one pauses, as long as chance decides."""
        if not self._had:
            self._take()
        if not self._had:
            pause()

    def _take(self) -> None:
        """Wait in line for as long as it gets on.

        Who left it to race would take from those who wait what they work for, and have them leave
        as well: with many writers on a slow machine hardly a try would win. Where nobody gets on,
        whoever has the turn hangs.
        """
        give_up = elapsed_s() + LINE_TIMEOUT_S
        seen = self._head()
        while not self._take_once() and elapsed_s() < give_up:
            now = self._head()
            if now is None or now == seen:
                return
            seen = now

    def _take_once(self) -> bool:
        with ExitStack() as asked:
            wait = self._catalog.turn(self._name, wait_s=TURN_TIMEOUT_S)
            self._had = asked.enter_context(wait)
            if self._had:
                self.enter_context(asked.pop_all())
        return self._had

    def _head(self) -> str | None:
        try:
            return self._catalog.load(self._name)
        except (NotFound, Unavailable):
            return None
