"""Positions that deletes mark as a DataFrame: the files are read on the executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyiceberg.types import NestedField, StructType
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as sql

from icetree.errors import Unsupported
from icetree.spark.frames import empty_frame
from icetree.spark.read.arrow import batch_for_spark
from icetree.spark.ship import shipped, unshipped
from icetree.spark.types import nullable, spark_schema, spark_type
from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.inspect.position_deletes import columns, marking, positions
from icetree.table.table import Table


def position_deletes(spark: SparkSession, table: Table, snapshot: Snapshot | None) -> DataFrame:
    """Return the positions that data DVs and position delete files mark, unread."""
    fields = tuple(_known(field) for field in columns(table.metadata.shape()))
    store = table.files.store

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for sent in (value for batch in batches for value in batch.column(0)):
            [file] = unshipped(sent.as_py()).to_pylist()
            for batch in positions(file, fields, store=store):
                yield batch_for_spark(batch, fields)

    files = marking(table, snapshot)
    sent = [(shipped(files.slice(number, 1)),) for number in range(files.num_rows)]
    schema = nullable(spark_schema(fields))
    assert isinstance(schema, sql.StructType)
    if not sent:
        return empty_frame(spark, schema)
    most = min(len(sent), spark.sparkContext.defaultParallelism * 4)
    return spark.createDataFrame(sent, "file binary").repartition(most).mapInArrow(read, schema)


def _known(field: NestedField) -> NestedField:
    """Return a column without the fields that Spark has no type for."""
    if not isinstance(field.field_type, StructType):
        return field
    kept = [each for each in field.field_type.fields if _is_known(each)]
    return NestedField(field.field_id, field.name, StructType(*kept), required=False)


def _is_known(field: NestedField) -> bool:
    try:
        spark_type(field.field_type)
    except Unsupported:
        return False
    return True
