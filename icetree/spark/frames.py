"""Small Arrow tables as DataFrames."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType


def empty_frame(spark: SparkSession, schema: StructType) -> DataFrame:
    """Return no rows; those that come from Python would go through its workers, even none."""
    # Never as not null: whoever asks might find a reader's null there.
    columns = [
        f.lit(None).cast(each.dataType).alias(each.name, metadata=each.metadata) for each in schema
    ]
    return spark.range(0).select(*columns)


def arrow_frame(spark: SparkSession, data: pa.Table) -> DataFrame:
    """Return an Arrow table as a DataFrame; types that Spark lacks become the nearest it has."""
    plain = pa.schema([pa.field(f.name, _plain(f.type), f.nullable) for f in data.schema])
    # Without a schema, times without a zone would be taken as in the session's.
    schema = from_arrow_schema(plain, prefer_timestamp_ntz=True)
    if not data.num_rows:
        return empty_frame(spark, schema)
    return spark.createDataFrame(data.cast(plain), schema)


def _plain(type: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(type):
        return _plain(type.value_type)
    if pa.types.is_timestamp(type):
        return pa.timestamp("us", tz=type.tz)
    if pa.types.is_fixed_size_binary(type) or pa.types.is_large_binary(type):
        return pa.binary()
    if pa.types.is_large_string(type):
        return pa.string()
    if pa.types.is_unsigned_integer(type):
        return pa.int64()
    if pa.types.is_time(type):
        return pa.int64()
    if pa.types.is_struct(type):
        return pa.struct([pa.field(f.name, _plain(f.type), f.nullable) for f in type])
    if pa.types.is_map(type):
        return pa.map_(_plain(type.key_type), _plain(type.item_type))
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return pa.list_(pa.field("element", _plain(type.value_type), type.value_field.nullable))
    return type
