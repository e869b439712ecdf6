"""A commit's place among the others that want to commit to the same table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from icetree.catalog.base import Catalog, TableName
from icetree.catalog.patience import TURN_TIMEOUT_S


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
        self._had = self.enter_context(self._catalog.turn(self._name, wait_s=TURN_TIMEOUT_S))
