"""Replacing a table by the rows of a query: new schema, new layout, new rows, one snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from icetree.spark.progress import telling
from icetree.spark.wap import begin, require_unaudited
from icetree.spark.write.arrange import arranged
from icetree.spark.write.fit import fit
from icetree.spark.write.options import Options
from icetree.spark.write.sink import sink
from icetree.spec.edit.new_columns import SchemaLike
from icetree.spec.edit.replace import replace_layout
from icetree.table.table import Table

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake


def replace(
    lake: SparkLake,
    name: str,
    rows: DataFrame | None,
    *,
    schema: SchemaLike,
    partition_by: Iterable[str] = (),
    order_by: Iterable[str] = (),
    properties: Mapping[str, str] | None = None,
    options: Options,
) -> Table:
    """Give a table another schema, another layout, and rows or none; its history stays."""
    table = lake.table(name)
    require_unaudited(lake.spark, table, verb="is replaced on every branch")
    transaction = begin(lake.spark, table, **options.how)
    replace_layout(
        transaction,
        schema,
        partition_by=partition_by,
        order_by=order_by,
        properties=properties or {},
    )
    metadata, store = options.over(transaction.metadata), table.files.store
    with telling(lake.spark, f"replacement of {name}"), transaction:
        written = None
        if rows is not None:
            fitting = arranged(fit(rows, metadata.schema(), table=name), metadata)
            made = sink(fitting, table=name, metadata=metadata, store=store)
            written = transaction.adopt(made.files)
        transaction.truncate()
        if written is not None:
            transaction.append_files(written)
    return table
