"""Names and expressions in Spark's SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyiceberg.schema import Schema
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f

from icetree.spark.functions.calls import with_functions


def quoted(name: str) -> str:
    """Return a name that may hold anything, as SQL."""
    return f"`{name.replace('`', '``')}`"


def path_sql(*names: str) -> str:
    """Return the names that lead to a column, which may hold anything, as SQL."""
    return ".".join(map(quoted, names))


def column(*names: str) -> Column:
    """Return a column by its name, or by all names that lead to it; they may hold anything."""
    text = path_sql(*names)
    # What reads the names of columns knows no backtick within one; SQL does.
    return f.expr(text) if "``" in text else f.col(text)


def names_of(path: str, schema: Schema) -> Iterator[str]:
    """Yield the names on the way to a field; a name may hold a dot itself."""
    fields, rest = schema.fields, path
    while rest:
        for field in fields:
            if rest == field.name or rest.startswith(field.name + "."):
                yield field.name
                rest = rest[len(field.name) + 1 :]
                fields = getattr(field.field_type, "fields", ())
                break
        else:
            yield rest
            return


def as_value(value: Any) -> Column:
    """Return a new value: a text is an expression, any other value is itself."""
    return as_column(value) if isinstance(value, str | Column) else f.lit(value)


def as_column(value: str | Column) -> Column:
    """Return an expression, given as SQL or as a column."""
    if not isinstance(value, str):
        return value
    return f.expr(with_functions(value, SparkSession.active()))
