"""`SET a = 1, b.c = 2`: what columns of a table are set to, in UPDATE and in MERGE."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, StructType
from pyspark.sql import Column
from pyspark.sql import functions as f

from icetree.errors import InvalidInput, Unsupported
from icetree.spark.complaints import plainly
from icetree.spark.names import as_column, column, quoted
from icetree.spark.tokens import Cursor
from icetree.spark.types import spark_type
from icetree.spark.write.fit import default


def assignment(text: str) -> tuple[list[str], str]:
    """Return the path and the value of `a.b = 1`."""
    cursor = Cursor(text)
    path = cursor.name()
    cursor.expect("=")
    cursor.accept("=")
    return path, cursor.rest()


class Assignments:
    """What one clause sets; `of` is what the table goes by among the rows."""

    def __init__(self, schema: Schema, *, of: str | None = None) -> None:
        self._schema, self._of = schema, of
        self._paths: list[tuple[str, ...]] = []
        #: The new value of each column that is set, in full or in part.
        self.values: dict[str, str | Column] = {}

    def add(self, path: Sequence[str], value: str) -> None:
        """Note what a column, or a field within one, is set to."""
        self._require_new(tuple(path))
        name, *within = path
        is_default = value.strip().upper() == "DEFAULT"
        if not within:
            self.values[name] = default(self._schema.find_field(name)) if is_default else value
            return
        if is_default:
            raise Unsupported(f"{'.'.join(path)} = DEFAULT: only whole columns have one")
        own = column(name) if self._of is None else column(self._of, name)
        with plainly():
            held = as_column(self.values.get(name, own))
            type = self._schema.find_field(name).field_type
            self.values[name] = _with(held, type, within, f.expr(value), path)

    def _require_new(self, path: tuple[str, ...]) -> None:
        """Refuse what was set before, as a whole or in part."""
        for before in self._paths:
            shared = min(len(path), len(before))
            if path[:shared] == before[:shared]:
                what = "column" if len(path) == 1 else "field"
                raise InvalidInput(f"{what} {'.'.join(path)!r} is set twice")
        self._paths.append(path)


def _with(
    held: Column, type: IcebergType, within: Sequence[str], value: Column, path: Sequence[str]
) -> Column:
    """Return a struct with a field set; where it is null it is made, its other fields null."""
    name, *deeper = within
    if not isinstance(type, StructType):
        raise InvalidInput(f"{'.'.join(path)} is no field: {name!r} is below a {type}")
    inner = next((field for field in type.fields if field.name == name), None)
    if inner is None:
        known = ", ".join(field.name for field in type.fields)
        raise InvalidInput(f"no field {'.'.join(path)!r} to set: its struct has {known}")
    whole = f.coalesce(held, _of_nulls(type))
    new = value
    if deeper:
        new = _with(whole.getField(name), inner.field_type, deeper, value, path)
    return whole.withField(quoted(name), new)


def _of_nulls(type: StructType) -> Column:
    # Required fields too: whether they are null is told when the row is written.
    fields = [
        f.lit(None).cast(spark_type(each.field_type)).alias(each.name) for each in type.fields
    ]
    return f.struct(*fields)
