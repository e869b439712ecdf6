"""`SET a = 1, b.c = 2`: what columns of a table are set to, in UPDATE and in MERGE."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.schema import Schema
from pyspark.sql import Column
from pyspark.sql import functions as f

from icetree.errors import InvalidInput, Unsupported
from icetree.spark.complaints import plainly
from icetree.spark.names import as_column, column, quoted
from icetree.spark.sql.tokens import Cursor
from icetree.spark.write.fit import default


def assignment(text: str) -> tuple[list[str], str]:
    """Return the path and the value of `a.b = 1`."""
    cursor = Cursor(text)
    path = cursor.name()
    cursor.expect("=")
    cursor.accept("=")
    return path, cursor.rest()


def assign(
    values: dict[str, str | Column],
    path: Sequence[str],
    value: str,
    schema: Schema,
    *,
    of: str | None = None,
) -> None:
    """Note what a column, or a field within one, is set to; `of` is what the table goes by."""
    name, *within = path
    is_default = value.strip().upper() == "DEFAULT"
    if within:
        if is_default:
            raise Unsupported(f"{'.'.join(path)} = DEFAULT: only whole columns have one")
        own = column(name) if of is None else column(of, name)
        with plainly():
            held = as_column(values.get(name, own))
            values[name] = held.withField(".".join(map(quoted, within)), f.expr(value))
    elif name in values:
        raise InvalidInput(f"column {name!r} is set twice")
    else:
        values[name] = default(schema.find_field(name)) if is_default else value
