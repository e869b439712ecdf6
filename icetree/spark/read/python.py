"""The slow and certain way: our own reader on the executors, for files that Spark's cannot read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyiceberg.schema import Schema
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icetree.codec import metadata as metadata_codec
from icetree.rows.read.read import read_tasks
from icetree.spark.read.arrow import for_spark
from icetree.spark.read.listing import ORDINAL, POSITION
from icetree.spark.ship import shipped, shipped_metadata, unshipped
from icetree.spark.types import arrow_for_spark, spark_schema
from icetree.spec.schema.metadata_columns import METADATA_COLUMNS, under_other_name
from icetree.table.scan.scan import Scan
from icetree.tree.plan.tasks import Plan

_BYTES_AT_ONCE: Final = 64 * 1024 * 1024
_POS: Final = under_other_name(METADATA_COLUMNS["_pos"])


def read_in_python(
    spark: SparkSession, scan: Scan, plan: Plan, tasks: pa.Table, *, located: bool
) -> DataFrame:
    """Return the rows of some of the plan's tasks; these have `ORDINAL` as a column."""
    store, case_sensitive = scan.files.store, scan.case_sensitive
    metadata = shipped_metadata(scan.metadata)
    asked, schema_id = scan.columns, scan.schema.schema_id
    columns = Schema(*asked.fields, *([_POS] if located else []))
    # By number: names of a table may be the same to Spark.
    names = [f"column_{number}" for number in range(len(asked.fields))]
    types = [arrow_for_spark(field.field_type) for field in asked.fields]
    out = pa.schema(list(zip(names, types, strict=True)))
    deletes, residuals, metrics = shipped(plan.deletes), plan.residuals, plan.metrics

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = metadata_codec.decode(metadata, file="table metadata")
        for sent in (value for batch in batches for value in batch.column(0)):
            task = unshipped(sent.as_py())
            found = read_tasks(
                Plan(
                    tasks=task.drop_columns([ORDINAL]),
                    deletes=unshipped(deletes),
                    residuals=residuals,
                    metrics=metrics,
                ),
                store=store,
                metadata=table,
                columns=columns,
                schema=table.schema(schema_id),
                case_sensitive=case_sensitive,
                threads=1,
            )
            for batch in found:
                arrays = [
                    for_spark(batch.column(n), x.field_type) for n, x in enumerate(asked.fields)
                ]
                fields = list(out)
                if located:
                    ordinal = pa.scalar(task[ORDINAL][0].as_py(), pa.int32())
                    arrays += [pa.repeat(ordinal, batch.num_rows), batch.column(len(names))]
                    fields += [pa.field(ORDINAL, pa.int32()), pa.field(POSITION, pa.int64())]
                yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    schema = StructType()
    for name, field in zip(names, spark_schema(asked.fields), strict=True):
        schema = schema.add(name, field.dataType, True, field.metadata)
    if located:
        schema = schema.add(ORDINAL, "integer").add(POSITION, "long")
    sent = [(shipped(tasks.slice(number, 1)),) for number in range(tasks.num_rows)]
    jobs = spark.createDataFrame(sent, "task binary")
    total = sum(tasks["file_size_in_bytes"].to_pylist())
    most = max(1, min(len(sent), spark.sparkContext.defaultParallelism * 4))
    jobs = jobs.repartition(max(1, min(most, -(-total // _BYTES_AT_ONCE))))
    own = [field.name for field in asked.fields]
    return jobs.mapInArrow(read, schema).toDF(*own, *schema.names[len(own) :])
