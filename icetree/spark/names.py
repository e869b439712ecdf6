"""Names and expressions in Spark's SQL."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as f


def quoted(name: str) -> str:
    """Return a name that may hold anything, as SQL."""
    return f"`{name.replace('`', '``')}`"


def as_column(value: str | Column) -> Column:
    """Return an expression, given as SQL or as a column."""
    return f.expr(value) if isinstance(value, str) else value
