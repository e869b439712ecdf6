"""What the engine is at, for people who wait: in Spark's interface, and as a line of the log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

from icetree.table.progress import Progress
from icetree.visible import log_of

log = log_of(__name__)

_DESCRIPTION: Final = "spark.job.description"
#: Seconds between two lines on the same work.
_EVERY_S: Final = 5.0


@contextmanager
def telling(spark: SparkSession, what: str) -> Iterator[Progress]:
    """Name the jobs that are run meanwhile, and log how long it all took; yields what tells of it."""
    context = spark.sparkContext
    before = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, f"icetree: {what}")
    started = time.perf_counter()
    try:
        yield _Lines(spark, what)
    except BaseException:
        log.info("%s failed after %.1f s", what, time.perf_counter() - started)
        raise
    else:
        log.info("%s took %.1f s", what, time.perf_counter() - started)
    finally:
        context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]


class _Lines:
    """Progress as lines of the log and in the names of jobs: now and then, and at the end."""

    def __init__(self, spark: SparkSession, what: str) -> None:
        self._context, self._what = spark.sparkContext, what
        self._last: float | None = None

    def __call__(self, step: str, done: int, total: int) -> None:
        now = time.perf_counter()
        if done < total and self._last is not None and now - self._last < _EVERY_S:
            return
        self._last = now
        text = f"{self._what}: {step}: {done:,} of {total:,}"
        self._context.setLocalProperty(_DESCRIPTION, f"icetree: {text}")
        log.info("%s", text)
