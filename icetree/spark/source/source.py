"""Tables as `format("icetree")`, wherever Spark runs Python: Connect, streams, notebooks.

This is the portable face, and the slow one: rows pass through Python, and Spark tells a Python data
source no columns, so all are read unless option `columns` names some. A plain scan takes about
twice as long as `SparkLake.table`, a narrow aggregate ten times. Files are skipped by option `where`, or
with `push-filters` by the query's own. Prefer `SparkLake` where it can be had.

    from icetree.spark.source import register

    register(spark)
    spark.read.format("icetree").option("catalog", uri).load("db.orders")
    rows.write.format("icetree").option("catalog", uri).mode("append").save("db.orders")
    spark.readStream.format("icetree").option("catalog", uri).load("db.orders")
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType
from typing_extensions import override

from icetree.spark.source.options import Face, Options, options


class IcetreeSource(DataSource):
    """A table of a catalog; `source.options.OPTIONS` tells what can be said of it."""

    @classmethod
    @override
    def name(cls) -> str:
        """Return what `format` calls it."""
        return "icetree"

    @override
    def schema(self) -> StructType:
        """Return the columns that are read."""
        from icetree.spark.source.read import read_schema
        from icetree.spark.source.stream import change_schema

        if self._tells_changes():
            return change_schema(self._given(Face.CHANGES, Face.CHANGE_STREAM))
        return read_schema(self._given(Face.READ, Face.STREAM))

    @override
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads a snapshot, or the changes since one."""
        from icetree.spark.source.read import PushingReader, TableReader
        from icetree.spark.source.stream import ChangesReader

        if self._tells_changes():
            return ChangesReader(self._given(Face.CHANGES), schema)
        given = self._given(Face.READ)
        return (PushingReader if given.flag("push-filters") else TableReader)(given, schema)

    @override
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return what reads snapshots as they are made."""
        from icetree.spark.source.stream import SnapshotReader

        face = Face.CHANGE_STREAM if self._tells_changes() else Face.STREAM
        return SnapshotReader(self._given(face), schema)

    @override
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return what appends rows, or puts them in the place of others."""
        from icetree.spark.source.write import TableWriter

        given = self._given(Face.OVERWRITE if overwrite else Face.APPEND)
        return TableWriter(given, overwrite=overwrite)

    @override
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return what appends micro-batches."""
        from icetree.spark.source.write import TableStreamWriter

        return TableStreamWriter(self._given(Face.STREAM_WRITE), overwrite=overwrite)

    def _tells_changes(self) -> bool:
        return self._given().flag("changes")

    def _given(self, *faces: Face) -> Options:
        return options(dict(self.options), *faces)


def register(spark: SparkSession) -> None:
    """Make `format("icetree")` known to a session."""
    spark.dataSource.register(IcetreeSource)
