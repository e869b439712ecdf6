"""Iceberg's types as Spark has them, and the schema to read files with.

Spark finds a column to read by its field id, but pushes a filter down by name: where a file has
another column under that name, rows vanish without a word. So a column is read under its own name
only while no other column of the table ever had it, and otherwise under a name that no file has.
The latter goes for floats too: to Spark a NaN is above all numbers, the statistics of Parquet
leave it out, and a pushed-down `x > 4` would skip it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)
from pyspark.sql import types as sql

from icetree.errors import Unsupported
from icetree.rows.schema import default_array
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.schema.default_values import default_json
from icetree.spec.schema.types import VariantType, type_text

#: Where Spark looks for a column's field id.
FIELD_ID: Final = "parquet.field.id"
#: Where Spark looks for the value of a column that a file lacks.
MISSING_VALUE: Final = "EXISTS_DEFAULT"
#: Where a column says which type of the table it has, of which Spark sees the bytes alone.
OWN_TYPE: Final = "icetree.type"

_PLAIN: Final[Mapping[type[IcebergType], sql.DataType]] = {
    BooleanType: sql.BooleanType(),
    IntegerType: sql.IntegerType(),
    LongType: sql.LongType(),
    FloatType: sql.FloatType(),
    DoubleType: sql.DoubleType(),
    DateType: sql.DateType(),
    TimestampType: sql.TimestampNTZType(),
    TimestamptzType: sql.TimestampType(),
    StringType: sql.StringType(),
    # As text: Spark has no type for it.
    UUIDType: sql.StringType(),
    BinaryType: sql.BinaryType(),
    FixedType: sql.BinaryType(),
    TimeType: sql.TimeType(6),
    # As nanoseconds since 1970: its own types end at microseconds.
    TimestampNanoType: sql.LongType(),
    TimestamptzNanoType: sql.LongType(),
    VariantType: sql.VariantType(),
    # Well-known binary.
    GeometryType: sql.BinaryType(),
    GeographyType: sql.BinaryType(),
    UnknownType: sql.NullType(),
}


def spark_type(type: IcebergType, *, column: str = "") -> sql.DataType:
    """Return the type that Spark reads values as; nested fields carry their ids."""
    match type:
        case StructType():
            return sql.StructType(
                [spark_field(each, column=f"{column}.{each.name}") for each in type.fields]
            )
        case ListType():
            element = spark_type(type.element_type, column=f"{column}.element")
            return sql.ArrayType(element, containsNull=not type.element_required)
        case MapType():
            key, value = (
                spark_type(each, column=f"{column}.{end}")
                for end, each in (("key", type.key_type), ("value", type.value_type))
            )
            return sql.MapType(key, value, valueContainsNull=not type.value_required)
        case DecimalType():
            return sql.DecimalType(type.precision, type.scale)
    found = _PLAIN.get(type.__class__)
    if found is None:
        raise Unsupported(
            f"column {column!r} is {type}, which Spark has no type for: leave it out with columns=, "
            "or read it with table.scan()"
        )
    return found


def nullable(type: sql.DataType) -> sql.DataType:
    """Return a type in which everything may be null, without ids."""
    match type:
        case sql.StructType():
            return sql.StructType(
                [sql.StructField(each.name, nullable(each.dataType)) for each in type]
            )
        case sql.ArrayType():
            return sql.ArrayType(nullable(type.elementType))
        case sql.MapType():
            return sql.MapType(nullable(type.keyType), nullable(type.valueType))
    return type


def spark_field(
    field: NestedField, *, name: str | None = None, column: str | None = None
) -> sql.StructField:
    """Return a column with its id, under a name of its own if one is given."""
    told: dict[str, Any] = {FIELD_ID: field.field_id}
    if isinstance(field.field_type, GeometryType | GeographyType):
        told[OWN_TYPE] = type_text(field.field_type)
    return sql.StructField(
        field.name if name is None else name,
        spark_type(field.field_type, column=column or field.name),
        not field.required,
        told,
    )


def is_known(field: NestedField) -> bool:
    """Tell whether Spark has a type for a column."""
    try:
        spark_type(field.field_type)
    except Unsupported:
        return False
    return True


def spark_schema(fields: Iterable[NestedField]) -> sql.StructType:
    """Return columns as Spark has them, with their ids."""
    return sql.StructType([spark_field(field) for field in fields])


def reader_schema(fields: Iterable[NestedField], names: Mapping[int, str]) -> sql.StructType:
    """Return the schema to read files with: columns by id, under names that are safe."""
    made = []
    for field in fields:
        spark = spark_field(field, name=names[field.field_id])
        spark.nullable = True
        if field.initial_default is not None:
            spark.metadata[MISSING_VALUE] = default_literal(field.initial_default, field)
        made.append(spark)
    return sql.StructType(made)


#: What Spark, and scans of ours, call what every row has beside the columns of its file.
_HIDDEN: Final = ("_metadata", "_tmp_metadata", "__icetree_")


def safe_names(fields: Iterable[NestedField], metadata: TableMetadata) -> dict[int, str]:
    """Return the name to read each column under, by id."""
    known = [each["schema-id"] for each in metadata.schemas]
    # A schema that was forgotten may have had any name.
    complete = len(known) == max(known) + 1
    owners: dict[str, set[int]] = {}
    for schema in metadata.schemas:
        for column in schema["fields"]:
            owners.setdefault(column["name"].lower(), set()).add(column["id"])
    nested = _reused_within(metadata.schemas)
    found = {}
    for field in fields:
        # A reserved column, or one that no other ever shared its name with.
        ids = owners.get(field.name.lower(), set())
        alone = complete and ids <= {field.field_id} and field.field_id not in nested
        own = alone and not _has_floats(field.field_type)
        own = own and not field.name.lower().startswith(_HIDDEN)
        found[field.field_id] = field.name if own else f"{field.name} #{field.field_id}"
    return found


def _has_floats(type: IcebergType) -> bool:
    match type:
        case StructType():
            return any(_has_floats(each.field_type) for each in type.fields)
        case ListType():
            return _has_floats(type.element_type)
        case MapType():
            return _has_floats(type.key_type) or _has_floats(type.value_type)
    return isinstance(type, FloatType | DoubleType)


def _reused_within(schemas: Iterable[Mapping[str, Any]]) -> set[int]:
    """Return the columns below which a path once meant another field."""
    owners: dict[tuple[int, str], set[int]] = {}
    for schema in schemas:
        for column in schema["fields"]:
            for path, id in _paths(column["type"], ""):
                owners.setdefault((column["id"], path.lower()), set()).add(id)
    return {column for (column, _), ids in owners.items() if len(ids) > 1}


def _paths(type: Any, above: str) -> Iterator[tuple[str, int]]:
    if not isinstance(type, dict):
        return
    if type["type"] == "struct":
        members = [(each["name"], each["id"], each["type"]) for each in type["fields"]]
    elif type["type"] == "list":
        members = [("element", type["element-id"], type["element"])]
    else:
        members = [("key", type["key-id"], type["key"]), ("value", type["value-id"], type["value"])]
    for name, id, below in members:
        path = f"{above}.{name}"
        yield path, id
        yield from _paths(below, path)


def is_native(fields: Iterable[NestedField]) -> bool:
    """Tell whether Spark's own reader gives the columns as the format says.

    It does not know of defaults below the top, of UUIDs, of times, nor of columns without a type.
    """
    return all(
        _is_native(field.field_type)
        and not (field.initial_default is not None and not field.field_type.is_primitive)
        for field in fields
    )


def _is_native(type: IcebergType) -> bool:
    match type:
        case StructType():
            return all(
                each.initial_default is None and _is_native(each.field_type) for each in type.fields
            )
        case ListType():
            return _is_native(type.element_type)
        case MapType():
            return _is_native(type.key_type) and _is_native(type.value_type)
    return not isinstance(type, UUIDType | UnknownType | TimeType)


def default_literal(value: Any, field: NestedField) -> str:
    """Return a default value of a column as SQL."""
    json = default_json(value, field.field_type, where=field.name)
    spark = spark_type(field.field_type).simpleString()
    match field.field_type:
        case BinaryType() | FixedType():
            return f"X'{json}'"
        case BooleanType():
            return str(json).lower()
        case StringType():
            text = str(json).replace("\\", "\\\\").replace("'", "\\'")
            return f"'{text}'"
        case TimeType():
            return f"TIME'{json}'"
        case TimestampNanoType() | TimestamptzNanoType():
            [nanos] = default_array(json, field.field_type, 1, where=field.name).cast(pa.int64())
            return f"{nanos}L"
    return f"CAST('{json}' AS {spark})"


def arrow_for_spark(type: IcebergType) -> pa.DataType:
    """Return the Arrow type in which Python hands values to Spark."""
    match type:
        case StructType():
            return pa.struct(
                [pa.field(each.name, arrow_for_spark(each.field_type)) for each in type.fields]
            )
        case ListType():
            return pa.list_(pa.field("element", arrow_for_spark(type.element_type)))
        case MapType():
            return pa.map_(arrow_for_spark(type.key_type), arrow_for_spark(type.value_type))
    from pyspark.sql.pandas.types import to_arrow_type

    return to_arrow_type(spark_type(type))


def table_schema(schema: sql.StructType) -> pa.Schema:
    """Return a schema for a new table that holds such rows; no column of it is required."""
    from pyspark.sql.pandas.types import to_arrow_type

    return pa.schema([pa.field(each.name, to_arrow_type(each.dataType)) for each in schema])
