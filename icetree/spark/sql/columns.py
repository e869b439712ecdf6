"""Columns as statements define them, as columns of a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from itertools import count
from typing import Any, Final

from pyiceberg import types as iceberg
from pyiceberg.schema import Schema
from pyspark.sql import SparkSession
from pyspark.sql import types as sql

from icetree.errors import InvalidInput, Unsupported
from icetree.spark.complaints import plainly
from icetree.spark.trees import option, seq
from icetree.spec.schema.types import VariantType
from icetree.spec.texts import did_you_mean

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_PLAIN: Final[dict[type[sql.DataType], iceberg.IcebergType]] = {
    sql.BooleanType: iceberg.BooleanType(),
    sql.ByteType: iceberg.IntegerType(),
    sql.ShortType: iceberg.IntegerType(),
    sql.IntegerType: iceberg.IntegerType(),
    sql.LongType: iceberg.LongType(),
    sql.FloatType: iceberg.FloatType(),
    sql.DoubleType: iceberg.DoubleType(),
    sql.DateType: iceberg.DateType(),
    sql.TimestampType: iceberg.TimestamptzType(),
    sql.TimestampNTZType: iceberg.TimestampType(),
    sql.StringType: iceberg.StringType(),
    sql.CharType: iceberg.StringType(),
    sql.VarcharType: iceberg.StringType(),
    sql.BinaryType: iceberg.BinaryType(),
    sql.NullType: iceberg.UnknownType(),
    sql.TimeType: iceberg.TimeType(),
    sql.VariantType: VariantType(),
}


def new_schema(spark: SparkSession, columns: Any) -> Schema:
    """Return the schema of `CREATE TABLE t (…)`."""
    fields = []
    for at, column in enumerate(seq(columns), 1):
        if option(column.generationExpression()) or option(column.identityColumnSpec()):
            raise Unsupported(
                f"column {column.name()!r}: generated columns are not part of the format; "
                "partition by a transform instead"
            )
        type = java_type(column.dataType(), column.name())
        default = default_value(spark, option(column.defaultValue()), column.dataType())
        fields.append(
            iceberg.NestedField(
                field_id=at,
                name=column.name(),
                field_type=type,
                required=not column.nullable(),
                doc=option(column.comment()),
                initial_default=default,
                write_default=default,
            )
        )
    # Ids below the top are given when the table is made.
    return Schema(*fields)


def java_type(type: Any, column: str) -> iceberg.IcebergType:
    """Return a type of Spark's parser as one of the format's."""
    return iceberg_type(sql._parse_datatype_json_value(json.loads(type.json())), column)  # noqa: SLF001


def iceberg_type(type: sql.DataType, column: str) -> iceberg.IcebergType:
    """Return a type of Spark's as one of the format's; ids in it mean nothing."""
    return _type(type, column, count(100_000))


def _type(type: sql.DataType, column: str, ids: Any) -> iceberg.IcebergType:
    match type:
        case sql.StructType():
            return iceberg.StructType(
                *(
                    iceberg.NestedField(
                        field_id=next(ids),
                        name=each.name,
                        field_type=_type(each.dataType, f"{column}.{each.name}", ids),
                        required=not each.nullable,
                        doc=each.metadata.get("comment"),
                    )
                    for each in type
                )
            )
        case sql.ArrayType():
            return iceberg.ListType(
                element_id=next(ids),
                element_type=_type(type.elementType, f"{column}.element", ids),
                element_required=not type.containsNull,
            )
        case sql.MapType():
            return iceberg.MapType(
                key_id=next(ids),
                key_type=_type(type.keyType, f"{column}.key", ids),
                value_id=next(ids),
                value_type=_type(type.valueType, f"{column}.value", ids),
                value_required=not type.valueContainsNull,
            )
        case sql.DecimalType():
            return iceberg.DecimalType(type.precision, type.scale)
    found = _PLAIN.get(type.__class__)
    if found is None:
        raise Unsupported(f"column {column!r}: {type.simpleString()} is no type of the format")
    return found


def default_value(spark: SparkSession, given: Any, type: Any) -> Any:
    """Return what `DEFAULT …` says, or None for no default."""
    if given is None:
        return None
    text, name = given.originalSQL(), type.sql()
    value = f"CAST(({text}) AS {name})"
    zoned = name == "TIMESTAMP"
    with plainly():
        [[found]] = spark.sql(f"SELECT {f'unix_micros({value})' if zoned else value}").collect()
    if name == "VARIANT" and found is not None:
        raise InvalidInput(f"DEFAULT {text}: columns of variants have no default but null")
    if zoned and found is not None:
        return _EPOCH + timedelta(microseconds=found)
    return bytes(found) if isinstance(found, bytearray) else found


def no_column(whose: object, name: str, schema: Schema) -> InvalidInput:
    """Return the refusal of a column that a table or a view has not."""
    return InvalidInput(f"{whose} has no column {name!r}{did_you_mean(name, schema.column_names)}")


def own_path(schema: Schema, path: Iterable[str]) -> tuple[str, ...]:
    """Return a column's path as the table spells it: SQL has names in any case."""
    fields: Sequence[iceberg.NestedField] = schema.fields
    found: list[str] = []
    for name in path:
        alike = [field for field in fields if field.name == name] or [
            field for field in fields if field.name.lower() == name.lower()
        ]
        if len(alike) > 1:
            raise InvalidInput(f"{name!r} is several columns: spell it as the table does")
        found.append(alike[0].name if alike else name)
        inner = alike[0].field_type if alike else None
        match inner:
            case iceberg.ListType():
                fields = [inner.element_field]
            case iceberg.MapType():
                fields = [inner.key_field, inner.value_field]
            case iceberg.StructType():
                fields = inner.fields
            case _:
                fields = []
    return tuple(found)


def own_name(schema: Schema, name: str) -> str:
    """Return a top-level column's name as the table spells it."""
    return own_path(schema, [name])[0]
