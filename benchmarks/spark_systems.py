"""The systems that are compared on Spark, each in its own words: the same tables, the same work.

`t` holds the events, `a` and `p` are appended to (`p` is partitioned by day), `many` has many
files.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from benchmarks.plan_tables import open_lake
from benchmarks.spark_data import COLUMNS
from benchmarks.spark_far import hand_over
from icetree.spark import SparkLake, local
from icetree.spark.types import table_schema
from icetree.spec.entry.entry import Content, Entry
from icetree.spec.entry.stats import FieldStats

#: The table of very many files that `spark_far` makes.
FAR: Final = "far"


class System(ABC):
    """A way to keep tables in a folder."""

    name: ClassVar[str]
    #: What its session has beside what all have; `{folder}` is where its tables are.
    settings: ClassVar[Mapping[str, str]] = {}

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def source(self, folder: str) -> DataFrame:
        """Return rows to write: plain Parquet."""
        return self.spark.read.parquet(folder)

    @abstractmethod
    def table(self, name: str) -> DataFrame:
        """Return a table's rows."""

    @abstractmethod
    def create(self, name: str, *, by_day: bool = False, columns: str = COLUMNS) -> None:
        """Make an empty table, of events or of other columns."""

    @abstractmethod
    def append(self, name: str, source: str) -> None:
        """Append the rows of a folder."""

    @abstractmethod
    def add_files(self, name: str, folder: str) -> None:
        """Make a table of the files of a folder, as they are."""


class Tables(System):
    """A system that can also change rows."""

    @abstractmethod
    def delete(self, name: str, where: str) -> None:
        """Delete rows."""

    @abstractmethod
    def merge(self, name: str, source: str) -> None:
        """Replace rows with equal ids, add the others."""

    @abstractmethod
    def keep(self, name: str) -> None:
        """Remember a table as it is."""

    @abstractmethod
    def reset(self, name: str) -> None:
        """Make a table what was remembered."""


class Trees(Tables):
    """A system that prunes by statistics of its own, and deletes rows by their keys."""

    @abstractmethod
    def open_far(self, far: str) -> DataFrame:
        """Return the table of very many files, as somebody who sees it for the first time."""

    @abstractmethod
    def far(self) -> DataFrame:
        """Return the table of very many files, once it was opened."""

    @abstractmethod
    def delete_keys(self, name: str, keys: str) -> None:
        """Delete the rows whose ids a file of Parquet holds, by that file."""


class Parquet(System):
    """Folders of Parquet files, read and written by Spark itself."""

    name = "Parquet"

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        super().__init__(spark, folder)
        self._by: dict[str, list[str]] = {}
        self._columns: dict[str, str] = {}

    def table(self, name: str) -> DataFrame:
        columns = self._columns.get(name, COLUMNS)
        return self.spark.read.schema(columns).parquet(str(self.folder / name))

    def create(self, name: str, *, by_day: bool = False, columns: str = COLUMNS) -> None:
        self._by[name] = ["day"] if by_day else []
        self._columns[name] = columns

    def append(self, name: str, source: str) -> None:
        rows = self.source(source).write.mode("append").partitionBy(*self._by[name])
        rows.parquet(str(self.folder / name))

    def add_files(self, name: str, folder: str) -> None:
        (self.folder / name).symlink_to(folder)


class Icetree(Trees):
    """Ours, with a catalog in SQLite."""

    name = "icetree"

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        super().__init__(spark, folder)
        self.lake = local(folder, spark=spark)
        self.lake.create_namespace("db", exist_ok=True)
        self._kept: dict[str, int] = {}

    def table(self, name: str) -> DataFrame:
        return self.lake.read(f"db.{name}")

    def create(self, name: str, *, by_day: bool = False, columns: str = COLUMNS) -> None:
        types = StructType.fromDDL(columns)
        assert isinstance(types, StructType)
        schema = table_schema(types)
        self.lake.create_table(f"db.{name}", schema, partition_by=["day"] if by_day else [])

    def append(self, name: str, source: str) -> None:
        self.lake.write(f"db.{name}", self.source(source)).append()

    def delete(self, name: str, where: str) -> None:
        self.lake.delete(f"db.{name}", where)

    def merge(self, name: str, source: str) -> None:
        merge = self.lake.merge(f"db.{name}", self.source(source), ["id"])
        merge.when_matched_update_all().when_not_matched_insert_all().run()

    def keep(self, name: str) -> None:
        self._kept[name] = self.lake.table(f"db.{name}").metadata.current_snapshot_id or 0

    def reset(self, name: str) -> None:
        self.lake.table(f"db.{name}").set_current(self._kept[name])

    def add_files(self, name: str, folder: str) -> None:
        self.create(name)
        files = sorted(Path(folder).glob("*.parquet"))
        rows = pq.read_table(files[0])
        size = files[0].stat().st_size
        stats = {id: _stats(column) for id, column in enumerate(rows.columns, 1)}
        entries = [
            Entry(
                location=file.as_uri(),
                record_count=rows.num_rows,
                file_size_in_bytes=size,
                split_offsets=[4],
                stats=stats,
            )
            for file in files
        ]
        self.lake.table(f"db.{name}").append_files(entries)

    def open_far(self, far: str) -> DataFrame:
        self._far = SparkLake(self.spark, open_lake(Path(far)))
        return self.far()

    def far(self) -> DataFrame:
        return self._far.read(f"db.{FAR}")

    def delete_keys(self, name: str, keys: str) -> None:
        with self.lake.table(f"db.{name}").transaction() as transaction:
            transaction.row_delta([_keys(Path(keys))])


class SameFiles(Icetree):
    """Spark's own reader on the files that icetree wrote: what is left is our planning."""

    name = "Parquet, our files"

    def table(self, name: str) -> DataFrame:
        folder = self.lake.table(f"db.{name}").location
        return self.spark.read.schema(COLUMNS).parquet(f"{folder}/data")


class _Statements(Tables):
    """A system that Spark's SQL reaches by itself."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        super().__init__(spark, folder)
        self._kept: dict[str, Any] = {}

    @abstractmethod
    def named(self, name: str) -> str:
        """Return what statements call a table."""

    def table(self, name: str) -> DataFrame:
        return self.spark.sql(f"SELECT * FROM {self.named(name)}")

    def append(self, name: str, source: str) -> None:
        self.spark.sql(f"INSERT INTO {self.named(name)} SELECT * FROM parquet.`{source}`")

    def delete(self, name: str, where: str) -> None:
        self.spark.sql(f"DELETE FROM {self.named(name)} WHERE {where}")

    def merge(self, name: str, source: str) -> None:
        self.spark.sql(
            f"MERGE INTO {self.named(name)} t USING parquet.`{source}` s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )


class IcebergJava(_Statements, Trees):
    """Iceberg's Spark runtime: format 3, merge on read, so that rows go by deletion vectors."""

    name = "Iceberg Java"

    settings: ClassVar[Mapping[str, str]] = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": "{folder}",
    }

    def named(self, name: str) -> str:
        return f"lake.db.{name}"

    def create(self, name: str, *, by_day: bool = False, columns: str = COLUMNS) -> None:
        self.spark.sql(
            f"CREATE TABLE {self.named(name)} ({columns}) USING iceberg "
            f"{'PARTITIONED BY (day)' if by_day else ''} TBLPROPERTIES ('format-version' = '3', "
            "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', "
            "'write.merge.mode' = 'merge-on-read')"
        )

    def keep(self, name: str) -> None:
        history = f"SELECT snapshot_id FROM {self.named(name)}.refs WHERE name = 'main'"
        self._kept[name] = self.spark.sql(history).collect()[0][0]

    def reset(self, name: str) -> None:
        self.spark.sql(f"CALL lake.system.set_current_snapshot('db.{name}', {self._kept[name]})")

    def add_files(self, name: str, folder: str) -> None:
        self.create(name)
        self.spark.sql(
            "CALL lake.system.add_files("
            f"table => 'db.{name}', source_table => '`parquet`.`{folder}`', parallelism => 2)"
        )

    def open_far(self, far: str) -> DataFrame:
        place = self.folder / "db" / FAR
        if not place.exists():
            hand_over(Path(far), FAR, place)
        self.spark.sql(f"REFRESH TABLE {self.named(FAR)}")
        return self.far()

    def far(self) -> DataFrame:
        return self.table(FAR)

    def delete_keys(self, name: str, keys: str) -> None:
        gateway: Any = self.spark.sparkContext._gateway  # noqa: SLF001
        java = gateway.jvm
        iceberg = java.org.apache.iceberg
        session = self.spark._jsparkSession  # noqa: SLF001
        table = iceberg.spark.Spark3Util.loadIcebergTable(session, self.named(name))
        ids = gateway.new_array(java.int, 1)
        ids[0] = 1
        made = iceberg.FileMetadata.deleteFileBuilder(table.spec()).ofEqualityDeletes(ids)
        made = made.withPath(keys).withFormat("parquet")
        made = made.withFileSizeInBytes(Path(keys).stat().st_size)
        made = made.withRecordCount(pq.read_metadata(keys).num_rows)
        table.newRowDelta().addDeletes(made.build()).commit()


class Delta(_Statements):
    """Delta's Spark connector, with deletion vectors."""

    name = "Delta"

    settings: ClassVar[Mapping[str, str]] = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # It reads its log in 50 tasks, which on two cores costs seconds.
        "spark.databricks.delta.snapshotPartitions": "2",
    }
    _vectors: ClassVar[str] = "'delta.enableDeletionVectors' = 'true'"

    def named(self, name: str) -> str:
        return f"delta.`{self.folder}/{name}`"

    def create(self, name: str, *, by_day: bool = False, columns: str = COLUMNS) -> None:
        self.spark.sql(
            f"CREATE TABLE {self.named(name)} ({columns}) USING delta "
            f"{'PARTITIONED BY (day)' if by_day else ''} "
            f"TBLPROPERTIES ({self._vectors})"
        )

    def keep(self, name: str) -> None:
        history = self.spark.sql(f"DESCRIBE HISTORY {self.named(name)} LIMIT 1")
        self._kept[name] = history.collect()[0]["version"]

    def reset(self, name: str) -> None:
        self.spark.sql(f"RESTORE TABLE {self.named(name)} TO VERSION AS OF {self._kept[name]}")

    def add_files(self, name: str, folder: str) -> None:
        # Its log lies beside the files, where nobody else looks.
        (self.folder / name).symlink_to(folder)
        self.spark.sql(f"CONVERT TO DELTA parquet.`{self.folder}/{name}` NO STATISTICS")
        # Otherwise it rewrites files to delete from them, and nothing is left to compare.
        self.spark.sql(f"ALTER TABLE {self.named(name)} SET TBLPROPERTIES ({self._vectors})")


SYSTEMS: Mapping[str, type[System]] = {
    kind.name: kind for kind in (Parquet, Icetree, IcebergJava, Delta)
}


def _keys(file: Path) -> Entry:
    ids = pq.read_table(file)["id"]
    return Entry(
        location=file.as_uri(),
        content_type=Content.EQUALITY_DELETES,
        equality_ids=(1,),
        record_count=len(ids),
        file_size_in_bytes=file.stat().st_size,
        stats={1: _stats(ids)},
    )


def _stats(column: pa.ChunkedArray) -> FieldStats:
    found = pc.min_max(column).as_py()
    return FieldStats(
        lower=found["min"], upper=found["max"], tight=True, values=len(column), nulls=0
    )
