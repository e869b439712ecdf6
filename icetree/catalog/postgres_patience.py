"""A connection to PostgreSQL that waits for no answer for ever."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

import psycopg
from psycopg.rows import Row
from typing_extensions import override

from icetree.surroundings import elapsed_s

T = TypeVar("T")


class PatientConnection(psycopg.Connection[Row]):
    """Gives an answer `patience_s`; one that stays out ends the connection.

    The server's own `statement_timeout` does not help when the server is frozen, nor do keepalives:
    its kernel answers those.
    """

    patience_s: float = 30.0
    was_silent: bool = False

    @override
    def wait(self, gen: Generator[Any, Any, T], *how: Any, **more: Any) -> T:
        """Wait for an answer; OperationalError when it takes too long."""
        return super().wait(self._in_time(gen), *how, **more)

    def _in_time(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        # The driver looks in a few times a second, ready or not: that is when time is looked at.
        give_up = elapsed_s() + self.patience_s
        ready = None
        while True:
            try:
                wanted = gen.send(ready)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            ready = yield wanted
            if not ready and elapsed_s() > give_up:
                self.was_silent = True
                self.close()
                raise psycopg.OperationalError(f"there was no answer for {self.patience_s:g} s")
