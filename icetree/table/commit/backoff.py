"""How long a writer waits before it tries again, and when it gives up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from icetree.spec.properties.values import whole_number
from icetree.surroundings import between, elapsed_s, wait

NUM_RETRIES = "commit.retry.num-retries"
MIN_WAIT = "commit.retry.min-wait-ms"
MAX_WAIT = "commit.retry.max-wait-ms"
TOTAL_TIMEOUT = "commit.retry.total-timeout-ms"
STATUS_CHECKS = "commit.status-check.num-retries"
STATUS_MIN_WAIT = "commit.status-check.min-wait-ms"
STATUS_MAX_WAIT = "commit.status-check.max-wait-ms"
STATUS_TIMEOUT = "commit.status-check.total-timeout-ms"

#: What `between_tries` and `between_questions` read.
TRIES = (NUM_RETRIES, MIN_WAIT, MAX_WAIT, TOTAL_TIMEOUT)
QUESTIONS = (STATUS_CHECKS, STATUS_MIN_WAIT, STATUS_MAX_WAIT, STATUS_TIMEOUT)


class Backoff:
    """Yields a pause for each try: the first at once, later ones after a growing, random wait."""

    def __init__(self, *, retries: int, min_ms: int, max_ms: int, total_ms: int) -> None:
        self._retries = retries
        self._min_ms = min_ms
        self._max_ms = max_ms
        self._total_ms = total_ms

    def __iter__(self) -> Iterator[Callable[[], None]]:
        give_up = elapsed_s() + self._total_ms / 1000
        for attempt in range(self._retries + 1):
            yield partial(self._pause, attempt)
            if elapsed_s() > give_up:
                return

    def _pause(self, attempt: int) -> None:
        wait(self.wait_ms(attempt) / 1000)

    def wait_ms(self, attempt: int) -> float:
        """Return a random wait whose ceiling doubles with every try."""
        ceiling = min(self._max_ms, self._min_ms * 2 ** min(attempt, 30))
        return between(0, ceiling)


def between_tries(properties: Mapping[str, str]) -> Backoff:
    """Return the waits of a commit that others were faster than.

    Iceberg's property names. Its default of four retries is too few for many writers a second. A
    retry here costs one root, so there may be a thousand: it is time that ends them.
    """
    return Backoff(
        retries=whole_number(properties, NUM_RETRIES, default=1_000),
        min_ms=whole_number(properties, MIN_WAIT, default=10),
        max_ms=whole_number(properties, MAX_WAIT, default=2_000),
        total_ms=whole_number(properties, TOTAL_TIMEOUT, default=1_800_000),
    )


def between_questions(properties: Mapping[str, str]) -> Backoff:
    """Return the waits of a commit whose answer was lost, which asks what became of it.

    Iceberg's property names. A minute outlasts a restart and most failovers of a catalog.
    """
    return Backoff(
        retries=whole_number(properties, STATUS_CHECKS, default=100),
        min_ms=whole_number(properties, STATUS_MIN_WAIT, default=100),
        max_ms=whole_number(properties, STATUS_MAX_WAIT, default=5_000),
        total_ms=whole_number(properties, STATUS_TIMEOUT, default=60_000),
    )
