"""What Java logs while a test looks: the session that tests share logs next to nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from icetree.spark.jvm import java_of
from icetree.spark.session import LOCAL_SETTINGS

_NAME = "icetree-tests"


@contextmanager
def java_log(spark: SparkSession) -> Iterator[Callable[[], str]]:
    """Return what tells what Java has logged as an error, stacks included."""
    java: Any = java_of(spark)
    log4j = java.org.apache.logging.log4j
    written = java.java.io.StringWriter()
    appender = log4j.core.appender.WriterAppender.createAppender(
        None, None, written, _NAME, False, True
    )
    appender.start()
    root = log4j.LogManager.getContext(False).getConfiguration().getRootLogger()
    root.addAppender(appender, log4j.Level.ERROR, None)
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield lambda: str(written.toString())
    finally:
        spark.sparkContext.setLogLevel(LOCAL_SETTINGS["spark.log.level"])
        root.removeAppender(_NAME)
        appender.stop()
