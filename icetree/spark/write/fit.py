"""A DataFrame as rows of a table: by name, with the casts that SQL makes on its own."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as sql

from icetree.errors import InvalidInput, Unsupported
from icetree.spark.names import quoted
from icetree.spark.types import default_literal, spark_type
from icetree.table.arrow_fit import fitted


def fit(rows: DataFrame, schema: Schema, *, table: str, extra: tuple[str, ...] = ()) -> DataFrame:
    """Return the rows with the table's types; what does not fit is refused before a job starts.

    A column that is missing has its default, or nulls. `extra` are columns that are no part of
    the table and stay as they are.
    """
    own = {field.name: field for field in schema.fields}
    folded: dict[str, list[str]] = {}
    for name in own:
        folded.setdefault(name.lower(), []).append(name)
    columns: list[Column] = []
    seen: list[pa.Field] = []
    for field in rows.schema:
        if field.name in extra:
            columns.append(f.col(quoted(field.name)))
            continue
        alike = folded.get(field.name.lower(), [])
        name = field.name if field.name in own else alike[0] if len(alike) == 1 else field.name
        column, type = _assigned(field, own.get(name))
        columns.append(column.alias(name))
        seen.append(pa.field(name, _arrow(type, name)))
    _require_fit(pa.schema(seen), schema, table)
    names = {field.name for field in seen}
    missing = [field for field in schema.fields if field.name not in names]
    return rows.select(*columns, *(default(field).alias(field.name) for field in missing))


def default(field: NestedField) -> Column:
    """Return what a new row has in a column that nobody gave a value for."""
    if field.write_default is not None and field.field_type.is_primitive:
        return f.expr(default_literal(field.write_default, field))
    return f.lit(None).cast(spark_type(field.field_type, column=field.name))


def _assigned(field: sql.StructField, to: NestedField | None) -> tuple[Column, sql.DataType]:
    """Return the column in the table's type, where SQL assigns one to the other by itself."""
    column = f.col(quoted(field.name))
    if to is None:
        return column, field.dataType
    try:
        want = spark_type(to.field_type)
    except Unsupported:
        return column, field.dataType
    if field.dataType == want or not _assigns(field.dataType, want):
        return column, field.dataType
    return column.cast(want), want


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


def _require_fit(seen: pa.Schema, schema: Schema, table: str) -> None:
    """Refuse types and columns that the table does not take."""
    from icetree.spark.write.sink import restored_type

    types = {field.name: field.field_type for field in schema.fields}
    like = [
        field.with_type(restored_type(field.type, types[field.name]))
        if field.name in types
        else field
        for field in seen
    ]
    names = [field.name for field in like]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(f"the data has two columns named {twice!r}")
    list(fitted(pa.schema(like).empty_table(), schema.fields, table=table))
