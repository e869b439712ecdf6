"""What the engine is at, for people who wait: in Spark's interface, and as a line of the log."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_DESCRIPTION: Final = "spark.job.description"


@contextmanager
def telling(spark: SparkSession, what: str) -> Iterator[None]:
    """Name the jobs that are run meanwhile, and log how long it all took."""
    context = spark.sparkContext
    before = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, f"icetree: {what}")
    started = time.perf_counter()
    try:
        yield
    except BaseException:
        log.info("%s failed after %.1f s", what, time.perf_counter() - started)
        raise
    else:
        log.info("%s took %.1f s", what, time.perf_counter() - started)
    finally:
        context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]
