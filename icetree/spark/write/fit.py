"""A DataFrame as rows of a table: by name, with the casts that SQL makes on its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as sql

from icetree.errors import InvalidInput, Unsupported
from icetree.rows.write.fit import fitted
from icetree.spark.names import column
from icetree.spark.restored import restored_type
from icetree.spark.types import default_literal, nullable, spark_type

_ANSI: Final = "spark.sql.ansi.enabled"


def fit(rows: DataFrame, schema: Schema, *, table: str, extra: tuple[str, ...] = ()) -> DataFrame:
    """Return the rows with the table's types; what does not fit is refused before a job starts.

    A column that is missing has its default, or nulls. `extra` are columns that are no part of
    the table and stay as they are.
    """
    given = {field.name: field.dataType for field in rows.schema if field.name not in extra}
    names = {name: like(name, [field.name for field in schema.fields]) or name for name in given}
    _require_once(names[field.name] for field in rows.schema if field.name not in extra)
    types = assigned({names[name]: type for name, type in given.items()}, schema.fields, table)
    columns = [
        column(name) if name in extra else cast(name, types[names[name]]).alias(names[name])
        for name in rows.columns
    ]
    missing = [field for field in schema.fields if field.name not in types]
    with raising_casts(rows.sparkSession):
        return rows.select(*columns, *(default(field).alias(field.name) for field in missing))


def like(name: str, names: Iterable[str]) -> str | None:
    """Return the one of the names that is the same, or else that differs in case alone."""
    alike = [each for each in names if each.lower() == name.lower()]
    return name if name in alike else alike[0] if len(alike) == 1 else None


def assigned(
    given: Mapping[str, sql.DataType], fields: Iterable[NestedField], table: str
) -> dict[str, sql.DataType | None]:
    """Return the type that values for columns are to be cast to; none, where they stay.

    Raises `InvalidInput` where SQL assigns no such value to such a column, and where a column of
    `fields` cannot be left out.
    """
    own = {field.name: field for field in fields}
    types = {name: _assigned(type, own.get(name)) for name, type in given.items()}
    seen = [pa.field(name, _arrow(types[name] or type, name)) for name, type in given.items()]
    _require_fit(pa.schema(seen), tuple(own.values()), table)
    return types


def cast(name: str, to: sql.DataType | None) -> Column:
    """Return a column in the type that `assigned` tells; see `raising_casts`."""
    found = column(name)
    return found if to is None else found.cast(to)


@contextmanager
def raising_casts(spark: SparkSession) -> Iterator[None]:
    """Have casts made here raise where a value does not fit, as SQL does when it assigns.

    Otherwise the session's mode decides, and in the older one they wrap around or are null.
    """
    was = spark.conf.get(_ANSI) or "true"
    spark.conf.set(_ANSI, "true")
    try:
        yield
    finally:
        spark.conf.set(_ANSI, was)


def default(field: NestedField) -> Column:
    """Return what a new row has in a column that nobody gave a value for."""
    if field.write_default is not None and field.field_type.is_primitive:
        return f.expr(default_literal(field.write_default, field))
    return f.lit(None).cast(spark_type(field.field_type, column=field.name))


def _assigned(have: sql.DataType, to: NestedField | None) -> sql.DataType | None:
    """Return the table's type, where SQL assigns a value of the other by casting it."""
    if to is None:
        return None
    try:
        # Whether a required field has a null is told when the row is written: no cast knows.
        want = nullable(spark_type(to.field_type))
    except Unsupported:
        return None
    have = nullable(have)
    return want if have != want and _assigns(have, want) else None


def _assigns(have: sql.DataType, want: sql.DataType) -> bool:
    match have, want:
        case sql.NullType(), _:
            return True
        case sql.NumericType(), sql.NumericType():
            return True
        case sql.DateType(), sql.TimestampType() | sql.TimestampNTZType():
            return True
        case sql.TimestampType(), sql.TimestampNTZType():
            return False
        case sql.AtomicType(), sql.StringType():
            return True
        case sql.StructType(), sql.StructType():
            if len(have) != len(want) or have.names != want.names:
                return False
            return all(_same(a.dataType, b.dataType) for a, b in zip(have, want, strict=True))
        case sql.ArrayType(), sql.ArrayType():
            return _same(have.elementType, want.elementType)
        case sql.MapType(), sql.MapType():
            return _same(have.keyType, want.keyType) and _same(have.valueType, want.valueType)
    return False


def _same(have: sql.DataType, want: sql.DataType) -> bool:
    return have == want or _assigns(have, want)


def _arrow(type: sql.DataType, name: str) -> pa.DataType:
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        return to_arrow_type(type)
    except PySparkException:
        raise InvalidInput(
            f"column {name!r} is {type.simpleString()}, which no table can hold: cast it first"
        ) from None


def _require_once(names: Iterable[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidInput(f"the data has two columns named {twice[0]!r}")


def _require_fit(seen: pa.Schema, fields: tuple[NestedField, ...], table: str) -> None:
    """Refuse types and columns that the table does not take."""
    types = {field.name: field.field_type for field in fields}
    restored = [
        field.with_type(restored_type(field.type, types[field.name]))
        if field.name in types
        else field
        for field in seen
    ]
    list(fitted(pa.schema(restored).empty_table(), fields, table=table))
