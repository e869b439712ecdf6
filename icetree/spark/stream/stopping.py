"""A batch that is cut off by its query's stop, told to Spark in words that it knows.

Spark stops a query by an interrupt, and then looks whether what its thread died of was that: in what
Python says of an error, by a regular expression that needs a level of Java's stack for each character.
A stack in the text, of Java or of Python, overflows it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

#: What Spark looks for: the beginning of an error of Java's, and later on an interrupt's name.
_WORDS: Final = "py4j.protocol.Py4JJavaError: An error occurred while calling"
_INTERRUPT: Final = "java.lang.InterruptedException"
_MOST: Final = 200


class Interrupted(Exception):
    """A batch was cut off, and nothing of it was committed."""


def quietly() -> None:
    """Have `Interrupted` not logged as an error, with its stack, by what calls Python from Java."""
    logging.getLogger("py4j.clientserver").addFilter(_is_no_interrupt)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], Interrupted))


@contextmanager
def ending_with(spark: SparkSession, query_id: str) -> Iterator[None]:
    """Raise `Interrupted` for whatever fails once the query has been stopped."""
    try:
        yield
    except Exception as error:
        if not _is_stopped(spark, query_id):
            raise
        first = str(error).partition("\n")[0][:_MOST]
        raise Interrupted(f"{_WORDS} a batch of a stopped query: {first}: {_INTERRUPT}") from None


def _is_stopped(spark: SparkSession, query_id: str) -> bool:
    try:
        query = spark.streams.get(query_id)
        return query is None or not query.isActive
    except Exception:  # the interrupt may meet the question, too
        return True
