"""A lake on which somebody else commits each time that it looks up a table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from typing_extensions import override

from icetree.catalog.base import TableName
from icetree.catalog.memory import MemoryCatalog
from icetree.spark.lake import SparkLake
from icetree.store.local import LocalStore
from icetree.surroundings import within
from icetree.table.lake import Lake
from tests.hasty import Hasty


class BusyCatalog(MemoryCatalog):
    """A catalog whose answer is out of date when it arrives: a row more is in the table by then."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        #: How many more looks are followed by a commit.
        self.looks = 0
        self.commits = 0
        self._others = Lake(catalog=self, store=LocalStore(), warehouse=str(folder))

    @override
    def load(self, table: TableName) -> str:
        found = super().load(table)
        if self.looks > 0:
            left, self.looks = self.looks - 1, 0
            self.append(str(table))
            self.looks = left
        return found

    def append(self, table: str) -> None:
        """Commit a row of one column, as another writer does who waits for nobody's turn."""
        self.commits += 1
        row = pa.table({"id": pa.array([-self.commits], pa.int64())})
        with within(Hasty()):
            self._others.table(table).append(row)


class BusyLake(SparkLake):
    """A lake that somebody else commits to for as many `catalog.looks` as are left."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.catalog = BusyCatalog(folder)
        opened = Lake(catalog=self.catalog, store=LocalStore(), warehouse=str(folder))
        super().__init__(spark, opened)
        opened.create_namespace("db")
        self.namespace = "db"
